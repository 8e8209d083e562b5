// Arrays that edges carry between stages of one device: by hand for whole stages and for the tasks of three layers, and
// by the intervals between tasks.

#include <doctest/doctest.h>

#include <map>
#include <random>

#include "tests/support/checked.hpp"
#include "tests/support/listing.hpp"
#include "tests/support/road.hpp"
#include "tests/support/tasks.hpp"

namespace stagecraft::edge_arrays_test {
namespace {

Program program_of(const test::Tasks& tasks, int slack, int iterations) {
  const ScheduleDef& def = get_from(schedules::catalog(), "schedule", "layerpipe");
  const config::Value options = test::checked("{slack: " + std::to_string(slack) + "}", *def.fields);
  const StageCosts costs = uniform_costs(tasks.plan, test::times(1, 0));
  const Schedule order = build_schedule(
      def, {.plan = tasks.plan, .costs = costs, .iterations = iterations, .options = read_options(def, &options)});
  LoweringOptions lowering;
  lowering.iterations = iterations;
  return test::lowered(order, tasks.plan, costs, lowering, "stash", false);
}

/// Copies of a tensor that waits on one device: in all, at most at a time, and now. copies_of() has them by the stage
/// that allocates the tensor and the stage that frees it.
struct Copies {
  int total = 0, peak = 0, now = 0;
};
std::map<std::pair<StageId, StageId>, Copies> copies_of(const Program& program) {
  std::map<InstructionId, std::vector<std::pair<std::pair<StageId, StageId>, int>>> changes;
  for (const Buffer& b : program.buffers) {
    CHECK(b.kind != BufferKind::Stash);  // No tensor is the whole stash of a stage.
    if (b.kind != BufferKind::Boundary) continue;
    const std::pair<StageId, StageId> ends{program.at(b.allocated_by).stage, program.at(b.freed_by).stage};
    changes[b.allocated_by].push_back({ends, 1});
    changes[InstructionId{b.freed_by.value + 1}].push_back({ends, -1});
  }
  std::map<std::pair<StageId, StageId>, Copies> counts;
  for (const auto& [when, list] : changes)
    for (const auto& [ends, change] : list) {
      Copies& c = counts[ends];
      c.total += change > 0, c.now += change;
      c.peak = std::max(c.peak, c.now);
    }
  return counts;
}

/// Intervals that each task is behind the first: the longest path, where a hop to another device takes `hop`.
std::vector<int> interval_offsets(const Plan& plan, int hop) {
  std::vector<int> depths(plan.stages.size(), 0);
  for (bool changed = true; changed;) {
    changed = false;
    for (const StageEdge& e : plan.edges) {
      const bool apart = plan.stage(e.from).leaders != plan.stage(e.to).leaders;
      const int needed = depths[e.from.value] + (apart ? hop : 0);
      int& depth = depths[e.to.value];
      if (depth < needed) depth = needed, changed = true;
    }
  }
  return depths;
}

}  // namespace

TEST_CASE("an array that edges name stays on its device, once, until the last stage there has used it") {
  Plan plan = chain_plan(3, 1, 1);
  plan.edges = {
      {StageId{0}, StageId{1}, Bytes{10}, 0}, {StageId{0}, StageId{2}, Bytes{10}, 0}, {StageId{1}, StageId{2}, {}}};
  const auto arrays = [&] {
    std::map<std::pair<std::string, std::string>, double> sizes;
    const Program program = program_of({plan, {}, {}, {}}, 0, 1);
    for (const Buffer& b : program.buffers)
      if (b.size.value > 0) sizes[{to_text(program, b.allocated_by), to_text(program, b.freed_by)}] += b.size.value;
    return sizes;
  };
  using Sizes = decltype(arrays());
  CHECK(arrays() == Sizes{{{"0F0", "2F0"}, 10}});
  plan.edges[1].array = 1;
  CHECK(arrays() == Sizes{{{"0F0", "1F0"}, 10}, {{"0F0", "2F0"}, 10}});
  plan.edges[0].array = plan.edges[1].array = -1;
  CHECK(arrays() == Sizes{});
}

// Stages: 0 F0, 1 dW0, 2 F1, 3 dX1, 4 dW1, 5 F2, 6 dX2, 7 dW2, then the updates.
TEST_CASE("three layers on one device keep each tensor once, until the last task that needs it") {
  const Program program = program_of(test::tasks_of({{0, 0, 0, 10}, {0, 0, 0, 20, 5}, {0, 0, 0, 30, 7}}, 1), 1, 1);
  std::map<std::pair<std::string, std::string>, double> sizes;
  for (const Buffer& b : program.buffers)
    sizes[{to_text(program, b.allocated_by), to_text(program, b.freed_by)}] += b.size.value;
  const std::map<std::pair<std::string, std::string>, double> expected{
      {{"0F0", "4F0"}, 10},  // The input of layer 1, for F1 and dW1.
      {{"2F0", "7F0"}, 20},  // The input of layer 2, for F2 and dW2.
      {{"2F0", "3F0"}, 5},   // What layer 1 keeps.
      {{"5F0", "6F0"}, 7},   // What layer 2 keeps,
      {{"5F0", "7F0"}, 30},  // and the gradient of the loss, for dX2 and dW2.
      {{"6F0", "4F0"}, 20},  // The gradient for layer 1, for dX1 and dW1.
      {{"3F0", "1F0"}, 10},  // The gradient for layer 0, for dW0.
  };
  CHECK(sizes == expected);
}

// Stages: 0 F0, 1 dW0, 2 F1, 3 dX1, 4 F2, 5 dX2, 6 dW2, then the updates.
TEST_CASE("a layer without weights keeps its input from its forward to its input gradient") {
  const Program program = program_of(test::tasks_of({{0, 0, 0, 10}, {0, 0, -1, 20, 10}, {0, 0, 0, 30, 7}}, 1), 1, 1);
  std::map<std::pair<std::string, std::string>, double> sizes;
  for (const Buffer& b : program.buffers)
    sizes[{to_text(program, b.allocated_by), to_text(program, b.freed_by)}] += b.size.value;
  const std::map<std::pair<std::string, std::string>, double> expected{
      {{"0F0", "2F0"}, 10},  // The input of layer 1, for F1 alone,
      {{"2F0", "3F0"}, 10},  // which keeps it.
      {{"2F0", "6F0"}, 20},  // The input of layer 2, for F2 and dW2.
      {{"4F0", "5F0"}, 7},   // What layer 2 keeps,
      {{"4F0", "6F0"}, 30},  // and the gradient of the loss, for dX2 and dW2.
      {{"5F0", "3F0"}, 20},  // The gradient for layer 1, for dX1.
      {{"3F0", "1F0"}, 10},  // The gradient for layer 0, for dW0.
  };
  CHECK(sizes == expected);
}

TEST_CASE("a layer on each device keeps 2S(1 + slack) + 1 copies, with S layers after it") {
  for (const int layers : {2, 3, 5})
    for (const int slack : {0, 1, 2}) {
      CAPTURE(layers);
      CAPTURE(slack);
      std::vector<test::TaskCosts> places;
      for (int l = 0; l < layers; ++l) places.push_back({l, l, l, 10, 5});
      const test::Tasks tasks = test::tasks_of(places, 2);
      const auto counts = copies_of(program_of(tasks, slack, 20));
      for (int l = 1; l < layers; ++l) {
        const auto at = static_cast<std::size_t>(l);
        const Copies& c = counts.at({tasks.forward[at], tasks.input_gradient[at]});
        CHECK(c.peak == 2 * (layers - 1 - l) * (1 + slack) + 1);
        CHECK(c.total == 40);
        CHECK(c.now == 0);
      }
    }
}

TEST_CASE("tasks keep as many copies as intervals from the first task to the last, and none at the end") {
  std::mt19937 random(7);
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  int tensors = 0;
  for (int trial = 0; trial < 100; ++trial) {
    const int layers = 1 + below(6), devices = 1 + below(4), slack = below(3), micro_batches = 1 + below(3);
    std::vector<test::TaskCosts> places;
    for (int l = 0; l < layers; ++l)
      places.push_back(
          {below(devices), below(devices), l > 0 && below(4) == 0 ? -1 : below(devices), 10, below(2) * 5.0});
    const test::Tasks tasks = test::tasks_of(places, micro_batches);
    const Program program = program_of(tasks, slack, 60);
    const std::vector<int> when = interval_offsets(tasks.plan, 1 + slack);
    for (const auto& [ends, copies] : copies_of(program)) {
      const auto maker = ends.first.value, last = ends.second.value;
      CHECK(copies.peak % (when[last] - when[maker] + 1) == 0);
      CHECK(copies.total % (60 * micro_batches) == 0);
      CHECK(copies.peak / (when[last] - when[maker] + 1) == copies.total / (60 * micro_batches));
      CHECK(copies.now == 0);
      ++tensors;
    }
  }
  CHECK(tensors > 300);
}

}  // namespace stagecraft::edge_arrays_test
