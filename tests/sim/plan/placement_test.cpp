#include "sim/plan/placement.hpp"
#include "tests/support/checked.hpp"

#include <doctest/doctest.h>

namespace stagecraft::placement_test {
namespace {

std::vector<int> ranks(Placement placement, int stages, int ranks) {
  std::vector<int> numbers;
  for (int s = 0; s < stages; ++s) numbers.push_back(rank_of(placement, s, ranks));
  return numbers;
}

}  // namespace

TEST_CASE("each placement gives a rank to every stage") {
  CHECK(ranks(Placement::Linear, 3, 3) == std::vector<int>{0, 1, 2});
  CHECK(ranks(Placement::Loop, 6, 3) == std::vector<int>{0, 1, 2, 0, 1, 2});
  CHECK(ranks(Placement::V, 6, 3) == std::vector<int>{0, 1, 2, 2, 1, 0});
  CHECK(ranks(Placement::Wave, 8, 2) == std::vector<int>{0, 1, 1, 0, 0, 1, 1, 0});
  CHECK(ranks(Placement::Bidirectional, 6, 3) == std::vector<int>{0, 1, 2, 2, 1, 0});
}

TEST_CASE("every placement reads back from its name") {
  for (const Placement p :
       {Placement::Any, Placement::Linear, Placement::Loop, Placement::V, Placement::Wave, Placement::Bidirectional})
    CHECK(parse_placement(to_text(p)) == p);
  CHECK_FALSE(parse_placement("auto"));
}

TEST_CASE("the ranks of a placement divide the stages into an allowed number of chunks") {
  CHECK(ranks_for({Placement::Linear, {1, 1}}, 6, 8) == 6);
  CHECK(ranks_for({Placement::Linear, {1, 1}}, 6, 5) == 0);
  CHECK(ranks_for({Placement::Loop, {1, kManyChunks}}, 8, 6) == 4);
  CHECK(ranks_for({Placement::Loop, {2, kManyChunks}}, 8, 8) == 4);
  CHECK(ranks_for({Placement::Loop, {4, 4}}, 8, 8) == 2);
  CHECK(ranks_for({Placement::V, {2, 2}}, 7, 8) == 0);
  CHECK(ranks_for({Placement::V, {2, 2}}, 8, 3) == 0);
  CHECK(ranks_for({Placement::Wave, {2, kManyChunks, 2}}, 16, 4) == 4);
}

TEST_CASE("a range of chunks has a minimum, a maximum and a step") {
  const ChunkRange wave{2, kManyChunks, 2}, two{2, 2};
  CHECK(wave.has(2));
  CHECK(wave.has(8));
  CHECK_FALSE(wave.has(3));
  CHECK_FALSE(wave.has(0));
  CHECK(two.has(2));
  CHECK_FALSE(two.has(4));
}

TEST_CASE("a plan of two chains has every micro-batch once, in turns") {
  const Plan plan = placed_plan(Placement::Bidirectional, 2, 2, 6, 2);
  CHECK(plan.stage_count() == 4);
  CHECK(plan.edges.size() == 2);
  CHECK(plan.edges[1].from == StageId{2});
  CHECK(plan.stages[StageId{0}].micros == std::vector<int>{0, 1, 4, 5});
  CHECK(plan.stages[StageId{3}].micros == std::vector<int>{2, 3});
  CHECK(plan.stages[StageId{3}].leaders == std::vector<DeviceId>{DeviceId{0}});
  CHECK(placed_plan(Placement::Bidirectional, 2, 2, 6).stage(StageId{2}).micros == std::vector<int>{3, 4, 5});
  CHECK(plan.stages[StageId{1}].twin == StageId{3});
  CHECK(plan.stages[StageId{3}].twin == StageId{1});
  CHECK(plan.different_stages() == 2);
  check_plan(plan);
}

TEST_CASE("copies of a stage name each other, do the same work and divide the micro-batches") {
  const Plan good = placed_plan(Placement::Bidirectional, 2, 2, 6, 2);
  const auto error = [&](auto&& spoil) {
    Plan plan = good;
    spoil(plan);
    return test::input_error_of([&] { check_plan(plan); });
  };
  CHECK(error([](Plan& p) { p.stages[StageId{3}].twin = StageId{0}; }).find("does not name it in turn") !=
        std::string::npos);
  CHECK(error([](Plan& p) { p.stages[StageId{3}].twin = StageId{3}; }).find("is no other stage") != std::string::npos);
  CHECK(error([](Plan& p) { p.stages[StageId{3}].twin = StageId{4}; }).find("is no other stage") != std::string::npos);
  CHECK(error([](Plan& p) { p.stages[StageId{3}].twin = StageId{}; }).find("does not name it in turn") !=
        std::string::npos);
  CHECK(error([](Plan& p) { p.stages[StageId{3}].shape.layers = {LayerId{0}}; }).find("has other layers") !=
        std::string::npos);
  CHECK(error([](Plan& p) { p.stages[StageId{3}].micro_batch_size = 2; }).find("another size") != std::string::npos);
  CHECK(error([](Plan& p) { p.stages[StageId{3}].micros = {2}; }).find("do not divide the micro-batches") !=
        std::string::npos);
  CHECK(error([](Plan& p) { p.stages[StageId{3}].micros = {1, 2, 3}; }).find("do not divide") != std::string::npos);
}

TEST_CASE("a plan with the V placement is one chain") {
  const Plan plan = placed_plan(Placement::V, 3, 2, 4);
  CHECK(plan.stage_count() == 6);
  CHECK(plan.edges.size() == 5);
  CHECK(plan.stages[StageId{4}].leaders == std::vector<DeviceId>{DeviceId{1}});
  CHECK(plan.device_count() == 3);
  CHECK(plan.stages[StageId{5}].micros.empty());
}

}  // namespace stagecraft::placement_test
