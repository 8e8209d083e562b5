// How many messages devices hold: what the run says, else what the planner counts on.

#include <doctest/doctest.h>

#include "sim/experiment/run.hpp"

namespace stagecraft::message_buffers_test {
namespace {

/// Received and outgoing messages.
std::pair<int, int> buffers_of(const std::string& plan, const std::vector<std::string>& run) {
  std::vector<std::string> sets = {"plan={planner: " + plan + "}"};
  sets.insert(sets.end(), run.begin(), run.end());
  const Experiment e = load_experiment("scenarios/examples/edge-inference.yaml", sets);
  const MessageBuffers buffers = lowering_of(plan_experiment(e)).buffers;
  return {buffers.received, buffers.outgoing};
}

using Pair = std::pair<int, int>;

}  // namespace

TEST_CASE("a run without a number has as many buffers as its planner counts on") {
  CHECK(buffers_of("edgepipe", {}) == Pair{3, 3});  // Two that wait and the one in progress, on each side.
  CHECK(buffers_of("edgepipe, buffers_in: 0, buffers_out: 4.5", {}) == Pair{1, 5});
  CHECK(buffers_of("balanced, stages: 8", {}) == Pair{0, 0});
}

TEST_CASE("a number in the run counts, and a sender has two at least") {
  for (const char* plan : {"edgepipe", "balanced, stages: 8"}) {
    CHECK(buffers_of(plan, {"run.buffers=1"}) == Pair{1, 2});
    CHECK(buffers_of(plan, {"run.buffers=7"}) == Pair{7, 7});
    CHECK(buffers_of(plan, {"run.buffers=unlimited"}) == Pair{0, 0});
  }
}

TEST_CASE("eager senders do not know the buffers of their receivers") {
  CHECK(buffers_of("edgepipe", {"run.transfers=eager"}) == Pair{0, 0});
  CHECK_THROWS_WITH_AS(buffers_of("edgepipe", {"run.transfers=eager", "run.buffers=2"}),
                       doctest::Contains("without knowing whether its receiver has a buffer"), InputError);
}

}  // namespace stagecraft::message_buffers_test
