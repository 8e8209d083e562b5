// Messages that wait for memory in real runs: the same bits as without a limit, and no device holds more.

#include <doctest/doctest.h>

#include "tests/backends/real/oracle.hpp"
#include "tests/backends/real/run_case.hpp"
#include "tests/support/held_messages.hpp"

namespace stagecraft::message_buffers_test {
namespace {

test::RealRun run(std::string_view schedule, const ModelGraph& model, const Plan& plan, MessageBuffers buffers,
                  bool one_thread = false) {
  LoweringOptions lowering;
  lowering.buffers = buffers;
  const WeightsRule& flush = test::policy("flush");
  return test::really_run(test::real_program(schedule, plan, flush, 4, nullptr, lowering), model, plan, flush,
                          test::training_of(OptimizerKind::Adam, 0.01, "teacher"), one_thread);
}

}  // namespace

TEST_CASE("a real run with few buffers learns the same bits and holds no more messages than it may") {
  const ModelGraph model = test::deep_net(4, 6, 8, 3);
  const Plan plan = test::stage_each(model, 8);
  for (const char* schedule : {"gpipe", "1f1b", "eager-1f1b", "zb-h1", "graph"}) {
    const test::RealRun unlimited = run(schedule, model, plan, {});
    for (const int buffers : {1, 2, 3})
      for (const bool one_thread : {false, true}) {
        CAPTURE(schedule);
        CAPTURE(buffers);
        const test::RealRun limited = run(schedule, model, plan, message_buffers(buffers), one_thread);
        CHECK(limited.learnt().losses == unlimited.learnt().losses);
        CHECK(limited.learnt().weights == unlimited.learnt().weights);
        const test::HeldMessages most_held = test::held_messages(limited.program, limited.timeline);
        CHECK(most_held.received <= buffers);
        CHECK(most_held.outgoing <= std::max(buffers, 2));
      }
  }
}

TEST_CASE("branches that join have buffers of their own for each edge") {
  const test::Branched b = test::branched(3, 4);
  const test::RealRun unlimited = run("graph", b.model, b.plan, {});
  const test::RealRun limited = run("graph", b.model, b.plan, message_buffers(1));
  CHECK(limited.learnt().losses == unlimited.learnt().losses);
  CHECK(limited.learnt().weights == unlimited.learnt().weights);
  CHECK(test::held_messages(limited.program, limited.timeline).received == 1);
}

}  // namespace stagecraft::message_buffers_test
