#include <doctest/doctest.h>

#include "sim/experiment/core_sharing.hpp"
#include "sim/experiment/experiment.hpp"

namespace stagecraft::core_sharing_test {
namespace {

/// Layers with given times and messages without cost, so that times are whole numbers of the times of ops.
CompiledExperiment compiled(int stages, int micro_batches, const std::string& schedule = "gpipe") {
  return compile(load_experiment(
      "examples/teacher",
      {"model={builder: uniform, layers: 4, forward: 2 ms, backward: 4 ms}", "plan.stages=" + std::to_string(stages),
       "plan.micro_batch_size=1", "run.micro_batches=" + std::to_string(micro_batches), "run.schedule=" + schedule,
       "run.iterations=1", "cluster.link={bandwidth: 1e9 GB/s, latency: 0 s}", "cluster.types.cpu-thread.launch=0 s"}));
}

double makespan(const CompiledExperiment& c, const std::string& backend) {
  return run(c, backend).report.makespan.value;
}

}  // namespace

TEST_CASE("with a core for each device nothing changes") {
  const CompiledExperiment c = compiled(4, 8);
  for (const char* backend : {"fluid", "simgrid"})
    CHECK(makespan(on_shared_cores(c, 4), backend) == doctest::Approx(makespan(c, "ideal")).epsilon(1e-9));
}

TEST_CASE("with one core a run takes the sum of all its work") {
  const CompiledExperiment c = compiled(4, 8);
  double work = 0;
  for (const Instruction& i : c.program.instructions)
    if (i.is_compute()) work += i.duration.value;
  for (const char* backend : {"fluid", "simgrid"})
    CHECK(makespan(on_shared_cores(c, 1), backend) == doctest::Approx(work).epsilon(1e-6));
}

TEST_CASE("of m threads on c cores each runs at c / m of its speed") {
  // GPipe with 4 equal stages on 2 cores. A forward takes f. Micro-batch 1 enters stage 1 at f. Two stages run at full
  // speed until the third is busy, and from then on 3 and then 4 threads share 2 cores.
  const CompiledExperiment c = compiled(4, 1);
  // With one micro-batch no two stages ever compute at the same time: two cores are enough for full speed.
  for (const char* backend : {"fluid", "simgrid"})
    CHECK(makespan(on_shared_cores(c, 2), backend) == doctest::Approx(makespan(c, "ideal")).epsilon(1e-9));
  // With many micro-batches all four compute nearly always: the run approaches all work over two cores, from above.
  const CompiledExperiment many = compiled(4, 64);
  double work = 0;
  for (const Instruction& i : many.program.instructions)
    if (i.is_compute()) work += i.duration.value;
  const double shared = makespan(on_shared_cores(many, 2), "fluid");
  CHECK(shared >= work / 2 * (1 - 1e-9));
  CHECK(shared <= work / 2 * 1.05);
  CHECK(shared > 1.8 * makespan(many, "ideal"));
  CHECK(makespan(on_shared_cores(many, 2), "simgrid") == doctest::Approx(shared).epsilon(1e-6));
}

TEST_CASE("more cores are never slower") {
  const CompiledExperiment c = compiled(4, 8, "1f1b");
  double before = makespan(on_shared_cores(c, 1), "fluid");
  for (const int cores : {2, 3, 4, 8}) {
    const double now = makespan(on_shared_cores(c, cores), "fluid");
    CHECK(now <= before * (1 + 1e-9));
    before = now;
  }
}

}  // namespace stagecraft::core_sharing_test
