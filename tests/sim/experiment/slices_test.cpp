// Sequences that come in slices, from a scenario: what adds up, what SlimPipe keeps, and what cannot be cut.

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "sim/experiment/packed_data.hpp"
#include "sim/experiment/run.hpp"

namespace stagecraft::scenario_slices_test {
namespace {

CompiledExperiment compiled(const std::vector<std::string>& sets) {
  return compile(load_experiment("examples/sliced-sequences", sets));
}
Outcome simulated(const std::vector<std::string>& sets) { return run(compiled(sets), "ideal"); }

Diagnostic problem(const std::vector<std::string>& sets) {
  try {
    compiled(sets);
  } catch (const InputError& e) {
    return e.problems().front();
  }
  return {};
}

}  // namespace

TEST_CASE("one slice is the whole sequence, to the last bit") {
  const std::vector<std::string> plain{"plan.chunks=1", "run.schedule=1f1b"};
  const Outcome whole = simulated(plain),
                cut = simulated({"plan.chunks=1", "run.schedule={name: seq1f1b, slices: 1, cut: true}"});
  CHECK(whole.timeline.end == cut.timeline.end);
  CHECK(whole.report.throughput == cut.report.throughput);
  CHECK(whole.report.rates->of_peak == cut.report.rates->of_peak);
}

TEST_CASE("slices have the samples, tokens and model FLOPs of the whole sequences") {
  const Outcome whole = simulated({"plan.chunks=1", "run.schedule=1f1b"}), cut = simulated({});
  const auto per_iteration = [](const Outcome& o, double rate) { return rate * o.report.period.value; };
  CHECK(per_iteration(cut, cut.report.throughput) ==
        doctest::Approx(per_iteration(whole, whole.report.throughput)).epsilon(1e-12));
  CHECK(per_iteration(cut, cut.report.rates->tokens_per_second) ==
        doctest::Approx(per_iteration(whole, whole.report.rates->tokens_per_second)).epsilon(1e-12));
  CHECK(per_iteration(cut, cut.report.rates->of_peak) ==
        doctest::Approx(per_iteration(whole, whole.report.rates->of_peak)).epsilon(1e-12));
}

// Published: a rank keeps (1 + ahead (p - 1) / (v n)) / p of the activations of a micro-batch. The whole stash of a
// sequence is that of a rank that keeps one, p times; ends of the model are the rest.
TEST_CASE("slimpipe keeps (1 + ahead (p - 1) / (v n)) / p of a sequence's activations on the first rank, within 5 %") {
  const Outcome gpipe = simulated({"plan.chunks=1", "run.schedule=1f1b", "run.global_batch=1"});
  double sequence = 0;
  for (const PipelineRank& rank : gpipe.report.ranks) sequence += rank.memory.stash.value;
  for (const int ahead : {1, 2})
    for (const int slices : {8, 16, 32}) {
      const Outcome o =
          simulated({"run.schedule.slices=" + std::to_string(slices), "run.schedule.ahead=" + std::to_string(ahead)});
      const double published = (1 + ahead * 7 / (2.0 * slices)) / 8;
      CHECK(o.report.ranks.front().memory.stash.value / sequence == doctest::Approx(published).epsilon(0.05));
    }
}

TEST_CASE("shared attention makes slices equal; without, the period is longer and the diagnosis says so") {
  const Outcome shared = simulated({}), alone = simulated({"run.schedule.exchange=false"});
  CHECK(alone.report.period > shared.report.period);
  CHECK(compiled({}).plan.loads.classes.size() == 1);
  CHECK(compiled({"run.schedule.exchange=false"}).plan.loads.classes.size() == 16);
}

TEST_CASE("keys and values of slices stay where their slices are recomputed or offloaded") {
  const std::vector<std::string> full{"plan.recompute=full"};
  const CompiledExperiment recomputed = compiled(full);
  const StageId middle{3};
  const Stage& stage = recomputed.plan.stage(middle);
  // Rows of a slice, 8 heads of 128 numbers of keys and as many of values, in 16 bits, over a tensor group of 4.
  const double rows = 131072.0 / 16, each = rows * 2 * 8 * 128 * 2 / 4;
  const StageCost& cost = recomputed.costs.at(middle, 0, 0);
  CHECK(cost.memory.stash.value ==
        doctest::Approx(cost.entering.value + each * static_cast<double>(stage.shape.layers.size())).epsilon(1e-9));
  const CompiledExperiment none = compiled({});
  CHECK(cost.memory.whole_stash().value ==
        doctest::Approx(none.costs.at(middle, 0, 0).memory.stash.value).epsilon(1e-9));

  const CompiledExperiment offloaded =
      compiled({"cluster.host={memory: 4 TiB, down: {bandwidth: 10 TB/s}}", "plan.offload={activations: 100 %}"});
  const double stash = none.costs.at(middle, 0, 0).memory.stash.value;
  int moved = 0;
  for (const Buffer& b : offloaded.program.buffers) {
    if (b.kind != BufferKind::Host || offloaded.program.at(b.allocated_by).stage != middle) continue;
    CHECK(b.size.value == doctest::Approx(stash - each * static_cast<double>(stage.shape.layers.size())).epsilon(1e-6));
    ++moved;
  }
  CHECK(moved > 0);

  // The inside of attention reads queries, keys and values, of which the queries alone may go.
  const CompiledExperiment queries =
      compiled({"cluster.host={memory: 4 TiB, down: {bandwidth: 10 TB/s}}", "plan.offload={modules: [core_attn]}"});
  const Bytes inputs = module_inputs(queries.model(), stage.shape, queries.plan.loads.classes.front(), {"core_attn"},
                                     &queries.experiment.costs->rules());
  moved = 0;
  for (const Buffer& b : queries.program.buffers) {
    if (b.kind != BufferKind::Host || queries.program.at(b.allocated_by).stage != middle) continue;
    CHECK(b.size.value ==
          doctest::Approx(inputs.value - each * static_cast<double>(stage.shape.layers.size())).epsilon(1e-6));
    ++moved;
  }
  CHECK(moved > 0);
}

TEST_CASE("another schedule has the sequences whole again") {
  const Experiment cut = load_experiment("examples/sliced-sequences", {});
  CHECK(cut.run.micro_batches == 64);
  const Experiment whole =
      with_order(cut, schedule_spec(get_from(schedules::catalog(), "schedule", "gpipe")), cut.weights);
  CHECK(whole.run.micro_batches == 4);
  CHECK(whole.run.packs == nullptr);
}

TEST_CASE("what cannot be cut is refused at its place") {
  ModelGraph encoder = *load_experiment("examples/sliced-sequences", {}).model;
  require_slices(encoder, 16);
  for (Operation& op : encoder.layers[LayerId{3}].operations) op.causal = false;
  CHECK_THROWS_WITH_AS(require_slices(encoder, 16), doctest::Contains("looks at later tokens"), InputError);
  CHECK(problem({"model=resnet50", "plan.group={}"}).message.find("no sequences of tokens") != std::string::npos);
  CHECK(problem({"run.schedule.slices=65536", "model.sequence=4096"}).message.find("cannot be cut") !=
        std::string::npos);
  CHECK(problem({"run.schedule.slices=7"}).message.find("cannot be cut into 7 equal slices") != std::string::npos);
  CHECK_THROWS_AS(compiled({"run.schedule.slices=2"}), Infeasible);
  CHECK(compiled({"run.schedule.slices=4"}).plan.loads.classes.size() == 1);
  CHECK(problem({"run.schedule.cut=false"}).help == "cut: true");
  try {
    compiled({"plan.chunks=1", "run.schedule={name: seq1f1b, slices: 4}", "run.global_batch=5",
              "data={lengths: {kind: equal, length: 4096}}"});
    FAIL("five packs are no sequences of four slices");
  } catch (const Infeasible& e) {
    CHECK(e.problem().message.find("5 packs of a replica are no whole number of sequences of 4 slices") !=
          std::string::npos);
    CHECK(e.problem().help.find("run.schedule.cut: true, which cuts each pack into 4 slices") != std::string::npos);
  }
  CHECK(problem({"plan.micro_batch_size=2"}).message.find("one sequence or slice of it") != std::string::npos);
}

}  // namespace stagecraft::scenario_slices_test
