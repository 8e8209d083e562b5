// The fields of an instruction depend on its kind; reading a field of another kind is an error.

#include <doctest/doctest.h>

#include "sim/core/diagnostic.hpp"
#include "tests/support/road.hpp"

namespace stagecraft::accessors_test {
namespace {

Program two_replicas() {
  Plan plan = test::dag_plan(2, 4, {{0, 1}}, 10);
  plan.stages[StageId{0}].micro_batch_size = plan.stages[StageId{1}].micro_batch_size = 2;
  plan.stages[StageId{1}].place_on({DeviceId{1}, DeviceId{2}});
  LoweringOptions options;
  options.iterations = 2;
  return test::program_of("1f1b", plan, uniform_costs(plan, test::times(1, 1)), options);
}

}  // namespace

TEST_CASE("each kind of instruction has its own fields") {
  const Program p = two_replicas();
  const auto at = [&](std::string_view text) { return p.at(test::find(p, text)); };
  CHECK(at("0F3").micro_batch() == 3);
  CHECK(at("0F3").version() == 1);
  CHECK(at("0U1").update() == 1);
  CHECK(at("0U1").version() == 2);
  CHECK(p.version_of(at("0U1")) == 2);
  CHECK(p.version_of(at("0>2:0F3")) == 0);
  CHECK(at("0>2:0F3").micro_batch() == 3);
  CHECK(p.iteration_of(at("0>2:0F3")) == 1);
  CHECK(at("1AR1").update() == 1);
  CHECK(p.collective(at("1AR1")).members == 2);
  CHECK(p.moves_gradient(at("1>0:1B0")));
  CHECK_FALSE(p.moves_gradient(at("0>1:0F0")));
}

TEST_CASE("reading a field of another kind is an error") {
  const Program p = two_replicas();
  const auto at = [&](std::string_view text) { return p.at(test::find(p, text)); };
  CHECK_THROWS_AS(at("0U0").micro_batch(), InternalError);
  CHECK_THROWS_AS(at("0F0").update(), InternalError);
  CHECK_THROWS_AS(at("0>1:0F0").version(), InternalError);
  CHECK_THROWS_AS(at("0F0").transfer(), InternalError);
  CHECK_THROWS_AS(at("0>1:0F0").collective(), InternalError);
  CHECK_THROWS_AS(p.transfer(at("1AR0")), InternalError);
  CHECK_THROWS_AS(p.prediction(at("0F0")), InternalError);
}

TEST_CASE("messages of the same samples share a shape, whatever their micro-batch") {
  const Program p = two_replicas();
  CHECK(p.transfers.size() == 16);
  CHECK(p.transfer_shapes.size() == 4);  // To and from each of two replicas.
  const Transfer& second = p.transfer(p.at(test::find(p, "0>2:0F3")));
  CHECK(p.shape(second).rows == RowRange{1, 1});
  CHECK(p.rows(second) == RowRange{7, 1});
  CHECK(p.receiving_stage(second) == StageId{1});
  CHECK(p.receiving_micro_batch(second) == 3);
  CHECK(to_text(p, second.producer) == "0F3");
  CHECK(to_text(p, second.consumer) == "1F3");
}

}  // namespace stagecraft::accessors_test
