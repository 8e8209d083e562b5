#include "sim/cost/op_collectives.hpp"

#include <doctest/doctest.h>

#include "sim/cost/stage_cost.hpp"

namespace stagecraft::op_collectives_test {
namespace {

/// 8 s of products, 1 s of the tensor group and 6 s of exchanges, of which the op waits for 4.
TimeByClass pass() {
  TimeByClass times;
  times.products = Seconds{8}, times.tensor = Seconds{1}, times.expert = Seconds{4};
  return times;
}

OpCollective exchange(double exposed, int rounds, double cost) {
  return {.axis = Axis::Expert,
          .kind = CollectiveKind::AllToAll,
          .exposed = exposed,
          .rounds = rounds,
          .cost = Seconds{cost}};
}

OpCollectives exchanges() {
  OpCollectives list{exchange(1, 2, 1), exchange(0.5, 1, 4)};
  list.push_back(exchange(1, 1, 100));  // The phase across nodes starts with the one before, which has its price.
  list.back().parallel = true;
  list.push_back({.axis = Axis::Tensor, .cost = Seconds{1}});
  return list;
}

StageCollectives hiding(double share, double taken) {
  StageCollectives collectives;
  collectives.pair_overlap = share, collectives.taken = taken;
  return collectives;
}

}  // namespace

TEST_CASE("an op as an instruction has the collectives that are no instructions") {
  CHECK(in_op(pass(), Written::None).total().value == 13);
  CHECK(in_op(pass(), Written::Exchanges).total().value == 9);
  CHECK(in_op(pass(), Written::All).total().value == 8);
  CHECK(StageCollectives::exposed_exchanges(exchanges()).value == 4);
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
  StageCollectives messages = hiding(0.75, 0.1);
  messages.flows = true;
  CHECK(messages.least_time(pass(), exchanges()).value == 8);
}

TEST_CASE("times of ops without classes contain no collectives") {
  StageCost cost;
  cost.forward = Seconds{1}, cost.backward = Seconds{2}, cost.update = Seconds{3};
  CHECK(computation_times(cost).forward.value == 1);
  CHECK(least_times(cost).backward.value == 2);
  CHECK(times_in_op(cost).update.value == 3);
}

}  // namespace stagecraft::op_collectives_test
