// Stashes in host memory on the emulated GPU: streams copy them next to computation, in every order that the events
// allow, and no bit changes.

#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

#include "tests/backends/cuda/run/gpu_case.hpp"
#include "tests/support/clusters.hpp"
#include "tests/support/offload.hpp"

namespace stagecraft::cuda_offload_test {
namespace {

test::Case small_case(const char* schedule) {
  test::Case c;
  c.schedule = schedule;
  c.model = test::deep_net(3);
  c.plan = test::stage_each(c.model, 6, 2);
  return c;
}

/// The program of the case with copies of a share of each stash, as if each instruction took a second.
Program offloaded(const test::Case& c, double share, int ahead) {
  Program program = c.program();
  for (Buffer& b : program.buffers)  // The costs of the case count no memory.
    if (b.kind == BufferKind::Stash) b.size = Bytes{test::kStash};
  Timeline base;
  for (const InstructionId n : program.instructions.ids())
    base.start.push_back(n.value), base.end.push_back(n.value + 0.5);
  Cluster cluster = test::star(program.devices, 1e9, 1e-5, Duplex::Unshared);
  test::add_hosts(cluster, 1e-3, 1e-3);
  return with_offloaded_stashes(program, c.plan, cluster, base, ahead, test::same_share(share));
}

}  // namespace

TEST_CASE("stashes that streams copy to the host and back give the bits of the CPU without a host") {
  for (const char* const schedule : {"gpipe", "1f1b", "zb-h1"})
    for (const double share : {0.5, 1.0})
      for (const int ahead : {1, 2}) {
        CAPTURE(schedule);
        CAPTURE(share);
        const test::Case c = small_case(schedule);
        const Timeline expected = test::on_cpu(c, c.program());
        const Program program = offloaded(c, share, ahead);
        REQUIRE(copies_stashes(program));
        for (const emulated_gpu::Machine& machine : test::machines(6)) {
          CAPTURE(machine.seed);
          const Timeline gpu = test::on_gpu(c, program, machine);
          REQUIRE(gpu.learnt->losses == expected.learnt->losses);
          REQUIRE(gpu.learnt->weights == expected.learnt->weights);
          CHECK(gpu.learnt->memory[DeviceId{0}].host.value > 0);
        }
      }
}

TEST_CASE("a device has fewer activations where the host keeps them") {
  const test::Case c = small_case("gpipe");
  const auto activations = [&](const Program& program) {
    return test::on_gpu(c, program, {}).learnt->memory[DeviceId{0}].activations.value;
  };
  CHECK(activations(offloaded(c, 1, 1)) < 0.7 * activations(c.program()));
}

TEST_CASE("a run that copies stashes has no graphs, and says why") {
  test::Case c = small_case("gpipe");
  c.timing = GpuTiming::Off;
  c.graph = true;
  const Timeline gpu = test::on_gpu(c, offloaded(c, 1, 1), {});
  CHECK(gpu.enqueued->no_graph == "stashes are copied to host memory");
  CHECK(gpu.enqueued->graphs == 0);
}

}  // namespace stagecraft::cuda_offload_test
