// Versions of weights that plans of single tasks hold, against closed forms.

#include <doctest/doctest.h>

#include "sim/weights/reads.hpp"
#include "tests/support/checked.hpp"
#include "tests/support/schedules.hpp"
#include "tests/support/tasks.hpp"
#include "tests/support/weights.hpp"

namespace stagecraft::task_needs_test {
using test::TaskCosts;
using test::Tasks;
using test::tasks_of;

namespace {

IdVector<StageId, StageNeeds> needs(const Tasks& t, int slack, const WeightsRule& rule = test::policy("stash")) {
  constexpr int kIntervals = 400;  // Far more than the delay of any task.
  const ScheduleDef& def = get_from(schedules::catalog(), "schedule", "layerpipe");
  const config::Value options = test::checked("{slack: " + std::to_string(slack) + "}", *def.fields);
  const StageCosts costs = uniform_costs(t.plan, test::times(1, 0));
  const Schedule order = build_schedule(def, {.plan = t.plan,
                                              .costs = costs,
                                              .iterations = kIntervals / t.plan.mini_batch,
                                              .options = read_options(def, &options)});
  const WeightReads reads(order, t.plan, rule);
  IdVector<StageId, StageNeeds> result;
  for (const StageId s : t.plan.stages.ids()) result.push_back(reads.needs(s, 0));
  return result;
}

int buffers(const IdVector<StageId, StageNeeds>& stage_needs, StageId s) { return stage_needs[s].buffers; }
int ceil_of(int a, int b) { return (a + b - 1) / b; }

}  // namespace

// A micro-batch's gradient comes back to a layer with S later layers 2S intervals after its forward when a hop takes
// one (LayerPipe2, delay 2S), and 2S (1 + slack) intervals with a slack. That is the number of micro-batches in flight;
// T of them share a version, so they need at most ceil(2S (1 + slack) / T) versions older than the newest.
TEST_CASE("a layer on each device keeps 1 + ceil(2S(1 + slack) / T) versions, with S layers after it") {
  for (const int layers : {1, 2, 4, 8, 16})
    for (const int micro_batches : {1, 2, 3, 8})
      for (const int slack : {0, 1, 2}) {
        CAPTURE(layers);
        CAPTURE(micro_batches);
        CAPTURE(slack);
        std::vector<TaskCosts> places;
        for (int l = 0; l < layers; ++l) places.push_back({l, l, l});
        const Tasks t = tasks_of(places, micro_batches);
        const auto result = needs(t, slack);
        for (int l = 0; l < layers; ++l) {
          const auto at = static_cast<std::size_t>(l);
          const int layers_after = layers - 1 - l;
          const int expected = l == 0 ? 1 : 1 + ceil_of(2 * layers_after * (1 + slack), micro_batches);
          CHECK(buffers(result, l == 0 ? t.forward[at] : t.input_gradient[at]) == expected);
          CHECK(buffers(result, t.weight_gradient[at]) == 0);  // It works on the newest of those.
          if (l > 0) CHECK(buffers(result, t.forward[at]) == 0);
        }
      }
}

TEST_CASE("forwards and both gradients on a device each: the input gradients' device keeps more") {
  for (const int micro_batches : {1, 2, 3, 8})
    for (const int slack : {0, 1, 3}) {
      CAPTURE(micro_batches);
      CAPTURE(slack);
      const Tasks t = tasks_of({{0, 1, 2}, {0, 1, 2}, {0, 1, 2}}, micro_batches);
      const auto result = needs(t, slack);
      for (const std::size_t l : {1U, 2U}) {
        // New weights come to both in the same interval; the gradient comes one hop after the forward.
        CHECK(buffers(result, t.input_gradient[l]) == 1 + ceil_of(1 + slack, micro_batches));
        CHECK(buffers(result, t.forward[l]) == 1);
        CHECK(buffers(result, t.weight_gradient[l]) == 1);
      }
    }
}

TEST_CASE("an input gradient reads its newest weights if the forward gets them a hop earlier") {
  for (const int micro_batches : {1, 2, 8})
    for (const int slack : {0, 1, 3}) {
      const Tasks t = tasks_of({{0, 1, 0}, {0, 1, 0}}, micro_batches);
      CHECK(buffers(needs(t, slack), t.input_gradient[1]) == 1);
    }
}

TEST_CASE("the newest weights are one copy, LayerPipe2's three, and some policies refuse tasks") {
  const Tasks t = tasks_of({{0, 0, 0}, {1, 1, 1}, {2, 2, 2}}, 1);
  const StageId middle = t.input_gradient[1];
  CHECK(buffers(needs(t, 0, WeightsRule{}), middle) == 1);
  CHECK(buffers(needs(t, 0, test::policy("layerpipe2")), middle) == 3);  // Newest, average, what they make.
  CHECK(needs(t, 0)[middle].delay == 2);
  for (const char* name : {"vertical-sync", "spectrain", "xpipe"}) {
    CAPTURE(name);
    CHECK(test::input_error_of([&] { needs(t, 0, test::policy(name)); }).find("stages of this plan do single tasks") !=
          std::string::npos);
  }
}

}  // namespace stagecraft::task_needs_test
