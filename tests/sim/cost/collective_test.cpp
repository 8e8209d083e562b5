#include "sim/cost/collective.hpp"

#include <doctest/doctest.h>

#include "sim/cost/stage_cost.hpp"

namespace stagecraft::collective_test {
namespace {

/// 8 s of products, 1 s of the tensor group and 6 s of exchanges, of which the op waits for 4.
TimeByClass pass() {
  TimeByClass times;
  times.products = Seconds{8}, times.tensor = Seconds{1}, times.expert = Seconds{4};
  return times;
}

Collective exchange(double hidden, int rounds, double cost) {
  return {.axis = Axis::Expert,
          .kind = CollectiveKind::AllToAll,
          .rounds = rounds,
          .cost = Seconds{cost},
          .hidden = Seconds{hidden}};
}

Collectives exchanges() {
  Collectives list{exchange(0, 2, 1), exchange(2, 1, 4)};
  list.push_back(exchange(0, 1, 100));  // The phase across nodes starts with the one before, which has its price.
  list.back().parallel = true;
  list.push_back({.axis = Axis::Tensor, .cost = Seconds{1}});
  return list;
}

StageCollectives hiding(double share, double taken) {
  StageCollectives collectives;
  collectives.written = Written::Exchanges;
  collectives.pair_overlap = share, collectives.taken = taken;
  return collectives;
}

}  // namespace

TEST_CASE("an op as an instruction has the collectives that are no instructions") {
  CHECK(in_op(pass(), Written::None).total().value == 13);
  CHECK(in_op(pass(), Written::Exchanges).total().value == 9);
  CHECK(in_op(pass(), Written::All).total().value == 8);
  CHECK(exposed_on(Axis::Expert, exchanges()).value == 4);
}

TEST_CASE("an op takes at least its instruction and the exchanges that no pair hides, which slow it while they run") {
  CHECK(hiding(0, 0).least_time(pass(), exchanges()).value == 9 + 4);
  CHECK(hiding(0.75, 0).least_time(pass(), exchanges()).value == 9 + 1);
  CHECK(hiding(0.75, 0.1).least_time(pass(), exchanges()).value == doctest::Approx(9 + 0.1 * 3 + 1));
  // Computation of 1 s is over before 3 s of exchanges are.
  TimeByClass shorter;
  shorter.products = Seconds{1};
  CHECK(hiding(0.75, 0.5).least_time(shorter, exchanges()).value == doctest::Approx(1 / (1 - 0.5) + 1));
  CHECK(hiding(0.75, 1).least_time(shorter, exchanges()).value == doctest::Approx(1 + 3 + 1));
  // Ops that are braided hide the second of the tensor group, too.
  StageCollectives braided = hiding(0.75, 0);
  braided.written = Written::Braided, braided.braids = true;
  CHECK(in_op(pass(), Written::Braided).total().value == 8);
  CHECK(exposed_on(Axis::Tensor, exchanges()).value == 1);
  CHECK(braided.least_time(pass(), exchanges()).value == 8 + 1);
  braided.braids = false;
  CHECK(braided.least_time(pass(), exchanges()).value == 8 + 1 + 1);
  StageCollectives messages = hiding(0.75, 0.1);
  messages.written = Written::All;
  CHECK(messages.least_time(pass(), exchanges()).value == 8);
}

TEST_CASE("what is hidden of a collective depends on the work next to it, or on its pass") {
  CHECK(exchange(0.5, 2, 2).exposed().value == 1.5);
  CHECK(exchange(0.5, 2, 2).exposed_share() == 0.75);
  CHECK(exchange(3, 2, 2).exposed_share() == 0);
  CHECK(exchange(0, 1, 0).exposed_share() == 1);
  Collective weights = exchange(0, 1, 5);
  weights.ahead = true;
  CHECK(weights.exposed_share() == 0);
  CHECK(cost_of(exchanges()).value == 2 + 4 + 1);
  CHECK(exposed_of(exchanges()).value == 2 + 2 + 1);
}

TEST_CASE("equal collectives of a list are rounds of one") {
  Collectives list{exchange(0, 2, 1)};
  append(list, {exchange(0, 3, 1), exchange(1, 1, 1)}, false);
  REQUIRE(list.size() == 2);
  CHECK(list.front().rounds == 5);
  append(list, {exchange(0, 3, 1)}, true);
  CHECK(list.size() == 3);
}

TEST_CASE("times of ops without classes contain no collectives") {
  StageCost cost;
  cost.forward = Seconds{1}, cost.backward = Seconds{2}, cost.update = Seconds{3};
  CHECK(computation_times(cost).forward.value == 1);
  CHECK(least_times(cost).backward.value == 2);
  CHECK(times_in_op(cost).update.value == 3);
}

}  // namespace stagecraft::collective_test
