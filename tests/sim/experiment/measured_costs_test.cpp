#include "sim/experiment/measured_costs.hpp"

#include <cmath>
#include <functional>
#include <map>
#include <string>

#include <doctest/doctest.h>

#include "sim/core/numbers.hpp"
#include "sim/core/random.hpp"
#include "sim/experiment/core_sharing.hpp"
#include "sim/output/validation.hpp"

namespace stagecraft::measured_costs_test {
namespace {

CompiledExperiment compiled(const std::string& schedule = "1f1b", const std::string& latency = "0.1 ms") {
  return compile(load_experiment(
      "examples/teacher",
      {"model={builder: uniform, layers: 4, forward: 2 ms, backward: 4 ms}", "plan.stages=4", "plan.micro_batch_size=1",
       "run.micro_batches=8", "run.schedule=" + schedule, "run.iterations=6",
       "cluster.link={bandwidth: 1e9 GB/s, latency: " + latency + "}", "cluster.types.cpu-thread.launch=0 s"}));
}

/// The experiment with computations of other lengths: a run that stands for a real one.
CompiledExperiment changed(CompiledExperiment c, const std::function<double(const Instruction&)>& factor) {
  for (Instruction& i : c.program.instructions)
    if (i.is_compute()) i.duration = factor(i) * i.duration;
  return c;
}

Validation validated(const CompiledExperiment& c, const Timeline& measured, const std::string& simulator) {
  const Outcome simulated = run(c, simulator);
  Validation v = compare(c.program, simulated.timeline, simulated.report, measured, c.cluster());
  add_replay(v, c.program, execute(with_measured_times(c, measured), simulator));
  return v;
}

}  // namespace

TEST_CASE("a run whose computations take other times in each iteration has no model error, whatever the costs are") {
  for (const char* simulator : {"ideal", "fluid", "simgrid"})
    for (const char* schedule : {"1f1b", "gpipe", "zb-h1"}) {
      CAPTURE(simulator);
      CAPTURE(schedule);
      const CompiledExperiment c = compiled(schedule);
      Rng rng(7, "load");
      const CompiledExperiment real = changed(c, [&](const Instruction&) { return 1 + rng.uniform(); });
      const Validation v = validated(c, execute(real, simulator), simulator);
      REQUIRE(v.replayed.size() == 5);
      CHECK(std::abs(model_error(v).worst) < 1e-9);
      CHECK(cost_error(v) < -0.2);  // The run is slower by 1 to 2 times.
    }
}

TEST_CASE("the error of the costs is the planted one, and the verdict names the kind that made it") {
  const CompiledExperiment c = compiled();
  const Timeline slower = execute(changed(c, [](const Instruction&) { return 1.25; }), "ideal");
  // Messages keep their 0.1 ms, which are less than 1 % of an iteration of some 70 ms.
  CHECK(cost_error(validated(c, slower, "ideal")) == doctest::Approx(1 / 1.25 - 1).epsilon(0.02));
  const auto backward = [](const Instruction& i) { return i.kind == InstructionKind::Backward ? 0.8 : 1; };
  const Validation v = validated(c, execute(changed(c, backward), "ideal"), "ideal");
  CHECK(std::abs(model_error(v).worst) < 1e-9);
  const std::string text = verdict_text(v, 0.05);
  CHECK(text.find("no, not within 5 %") != std::string::npos);
  CHECK(text.ends_with("because backward took 20 % less time in the run than in the simulation\n"));
  CHECK(text.find("order, overlap and messages: within 0.0 % on every iteration; costs: +1") != std::string::npos);
}

TEST_CASE("a run in another order, or without overlap, has a model error and no error of its costs") {
  const CompiledExperiment c = compiled("1f1b", "2 ms"), other = compiled("gpipe", "2 ms");
  // GPipe has these instructions in another order, and waits for fewer messages one after another.
  const Timeline gpipe = execute(other, "ideal");
  std::map<std::string, InstructionId> by_name;
  for (const InstructionId n : other.program.instructions.ids()) by_name[to_text(other.program, n)] = n;
  Timeline measured = gpipe;
  REQUIRE(c.program.size() == other.program.size());
  for (const InstructionId n : c.program.instructions.ids()) {
    const InstructionId there = by_name.at(to_text(c.program, n));
    measured.start[n] = gpipe.start[there];
    measured.end[n] = gpipe.end[there];
  }
  const Validation order = validated(c, measured, "ideal");
  CHECK(model_error(order).median > 0.05);
  CHECK(std::abs(cost_error(order)) < 1e-9);
  CHECK(verdict_text(order, 0.05).find("in the median iteration") != std::string::npos);
  CHECK(verdict_text(order, 0.05).ends_with("costs: +0.0 %\n"));

  double now = 0;  // One computation after another.
  for (const InstructionId n : c.program.instructions.ids()) {
    measured.start[n] = now;
    measured.end[n] = now += c.program.at(n).duration.value;
  }
  const Validation overlap = validated(c, measured, "ideal");
  CHECK(model_error(overlap).median < -0.4);
  CHECK(std::abs(cost_error(overlap)) < 1e-9);
}

TEST_CASE("lengths of iterations are compared, so the error of one is not that of those after it") {
  const CompiledExperiment c = compiled("gpipe");
  Timeline measured = execute(c, "ideal");
  // Nothing runs for a second before iteration 2, so all that comes later is a second late.
  double from = kInfinity;
  for (const InstructionId n : c.program.instructions.ids())
    if (c.program.iteration_of(c.program.at(n)) == 2) from = std::min(from, measured.start[n]);
  for (const InstructionId n : c.program.instructions.ids())
    if (measured.start[n] >= from) {
      measured.start[n] += 1;
      measured.end[n] += 1;
    }
  const Validation v = validated(c, measured, "ideal");
  int off = 0;
  for (std::size_t k = 0; k < v.replayed.size(); ++k) off += std::abs(v.replayed[k] / v.iterations[k] - 1) > 1e-9;
  CHECK(off == 1);
  CHECK(std::abs(model_error(v).median) < 1e-9);
  CHECK(model_error(v).worst < -0.9);
}

TEST_CASE("cores that threads share are in the measured times, and are not shared again") {
  const CompiledExperiment c = compiled("gpipe");
  const Timeline measured = execute(on_shared_cores(c, 2), "fluid");
  const CompiledExperiment again = with_measured_times(c, measured);
  CHECK(again.program.traffic.empty());
  const Timeline replayed = execute(again, "fluid");
  for (const InstructionId n : c.program.instructions.ids())
    if (c.program.at(n).is_compute())
      CHECK(replayed.end[n] - replayed.start[n] == doctest::Approx(measured.end[n] - measured.start[n]).epsilon(1e-6));
  CHECK(execute(with_measured_times(on_shared_cores(c, 2), measured), "fluid").last_end().value ==
        doctest::Approx(replayed.last_end().value).epsilon(1e-9));
}

}  // namespace stagecraft::measured_costs_test
