// A scenario is read once into values, which all commands share.

#include "sim/experiment/experiment.hpp"

#include <doctest/doctest.h>

#include "sim/experiment/run.hpp"
#include "sim/search/plan_table.hpp"
#include "sim/search/schedule_table.hpp"
#include "sim/weights/optimizer_state.hpp"

namespace stagecraft::experiment_test {
namespace {

Experiment teacher(const std::vector<std::string>& sets = {}) { return load_experiment("examples/teacher", sets); }

}  // namespace

TEST_CASE("run, plan and compare give one plan the same verdict in memory that only the optimizer's choice makes fit") {
  // With Adam's two moments, which models assume, no stages fit; with SGD, which keeps none, eight do.
  for (const char* planner : {"piper", "graphpipe"})
    for (const char* memory : {"24 KiB", "28 KiB", "32 KiB"}) {
      CAPTURE(planner);
      CAPTURE(memory);
      const Experiment e = teacher({"training.optimizer=sgd", "plan={planner: " + std::string(planner) +
                                                                  ", micro_batch_size: 4, memory: " + memory + "}"});
      const CompiledExperiment c = compile(e);
      const PlanTable plans = compare_plans(e, {.planners = planner});
      const ScheduleTable schedules = compare_schedules(e, {.schedules = "1f1b"});
      REQUIRE(plans.rows.front().ran());
      REQUIRE(schedules.rows.front().ran());
      CHECK(plans.rows.front().stages == c.plan.stage_count());
      CHECK(schedules.rows.front().stages == c.plan.stage_count());
    }
}

TEST_CASE("forwards alone compute no loss, unless a task is judged by it") {
  const auto schedule = [](const char* name) {
    return schedule_spec(get_from(schedules::catalog(), "schedule", name));
  };
  const Scenario scenario = load_scenario("examples/edge-inference", {});
  const Experiment forwards = read_experiment(scenario);
  CHECK(!forwards.model->find("loss"));
  const Experiment trains = with_order(forwards, schedule("1f1b"), weights_spec("auto"));
  REQUIRE(trains.model->find("loss"));
  CHECK(trains.model->layers.size() == forwards.model->layers.size() + 1);
  CHECK(compile(trains).plan.stages.size() == 8);
  CHECK(!with_order(trains, schedule("inference"), weights_spec("auto")).model->find("loss"));
  CHECK(
      read_experiment(load_scenario("examples/edge-inference", {"run.schedule=1f1b"}), &forwards).model->find("loss"));
  CHECK(!read_experiment(scenario, &trains).model->find("loss"));
  CHECK(teacher({"run.schedule=inference"}).model->find("loss"));
  CHECK(load_experiment("examples/explicit-replicas", {"run.schedule=inference"}).model->find("loss"));
}

TEST_CASE("without losses in its middle, a model keeps all other layers and what they read") {
  const std::string layers =
      "model={builder: transformer, kind: gpt, layers: 2, hidden: 64, heads: 4, sequence: 32, vocabulary: 128, "
      "norm: rms, gated: true, bias: false, positions: rotary, precision: mixed, next_tokens: 1}";
  const auto model = [&](const char* schedule) {
    return load_experiment("examples/quickstart", {layers, std::string("run.schedule=") + schedule}).model;
  };
  const auto whole = model("1f1b"), without = model("inference");
  std::size_t losses = 0;
  for (const Layer& layer : whole->layers) {
    losses += layer.type == "softmax_xent";
    const std::optional<LayerId> there = without->find(layer.name);
    CHECK(there.has_value() == (layer.type != "softmax_xent"));
    if (!there) continue;
    REQUIRE(without->layers[*there].inputs.size() == layer.inputs.size());
    for (std::size_t i = 0; i < layer.inputs.size(); ++i)
      CHECK(without->layers[without->layers[*there].inputs[i]].name == whole->layers[layer.inputs[i]].name);
  }
  CHECK(losses == 2);
  CHECK(without->layers.size() == whole->layers.size() - 2);
}

TEST_CASE("a variant with another order shares the model, the cluster and the cost table") {
  const Experiment e = teacher();
  const ScheduleDef& gpipe = get_from(schedules::catalog(), "schedule", "gpipe");
  const Experiment variant = with_order(e, schedule_spec(gpipe), e.weights);
  CHECK(variant.model == e.model);
  CHECK(variant.cluster == e.cluster);
  CHECK(variant.costs == e.costs);
  CHECK(variant.schedule.name() == "gpipe");
  CHECK(e.schedule.name() == "1f1b");
  CHECK_FALSE(e.scenario_hash.empty());
  CHECK(variant.scenario_hash.empty());
}

TEST_CASE("a scenario shares equal parts with the one before it, and nothing else") {
  const auto read = [](const std::vector<std::string>& sets, const Experiment* previous) {
    return read_experiment(load_scenario("examples/teacher", sets), previous);
  };
  const std::vector<std::string> adam = {"training.optimizer=adam"};
  const Experiment first = read(adam, nullptr);
  struct Case {
    std::vector<std::string> sets;
    bool model, cluster;
  };
  for (const Case& c : {Case{{"training.optimizer=adam", "run.schedule=gpipe"}, true, true},
                        Case{{"training.optimizer=sgd"}, false, true},
                        Case{{"training.optimizer=adam", "cluster=ring-8"}, true, false}}) {
    CAPTURE(c.sets.back());
    const Experiment second = read(c.sets, &first);
    CHECK((second.model == first.model) == c.model);
    CHECK((second.cluster == first.cluster) == c.cluster);
    CHECK((second.costs == first.costs) == (c.model && c.cluster));
    CHECK(run(compile(second), "ideal").report.makespan ==
          run(compile(read(c.sets, nullptr)), "ideal").report.makespan);
  }
}

TEST_CASE("automatic weights policies change with the schedule, chosen ones do not") {
  const ScheduleDef& two_bw = get_from(schedules::catalog(), "schedule", "2bw");
  const Experiment left = teacher({"run.iterations=5"});
  CHECK(with_order(left, schedule_spec(two_bw), left.weights).weights.name() == "2bw");
  const Experiment chosen = teacher({"run.iterations=5", "weights=flush"});
  try {
    with_order(chosen, schedule_spec(two_bw), chosen.weights);
    FAIL("flush keeps one version, and 2bw never drains");
  } catch (const InputError& e) {
    CHECK(e.problems().front().code == "weights");
  }
}

TEST_CASE("a policy with its own momentum adds memory for it to the model") {
  const Experiment e = teacher({"training.optimizer=sgd", "run.iterations=5", "run.schedule=pipedream"});
  const Experiment predicts = with_order(e, e.schedule, weights_spec("pipeoptim"));
  const OptimizerStateTensors state = state_tensors(e.training.optimizer.kind, predicts.weights.rule);
  CHECK(predicts.model->precision.optimizer == predicts.model->precision.weight * (state.count() - state.bare));
  CHECK(&predicts.costs->model() == predicts.model.get());
}

TEST_CASE("a variant equals the scenario with those settings") {
  Experiment variant = teacher();
  variant.run.micro_batches = 16;
  variant.plan.micro_batch_size = 2;
  variant.plan.stages = 4;
  const Experiment written = teacher({"run.micro_batches=16", "plan.micro_batch_size=2", "plan.stages=4"});
  CHECK(run(compile(variant), "ideal").report.makespan == run(compile(written), "ideal").report.makespan);
}

TEST_CASE("an order that recomputes by itself keeps what enters a stage, not the whole stash") {
  const auto peak = [](std::vector<std::string> sets) {
    const Outcome outcome = run(compile(load_experiment("examples/quickstart", std::move(sets))), "ideal");
    Bytes largest;
    for (const DeviceReport& d : outcome.report.devices) largest = std::max(largest, d.memory.total);
    return largest.value;
  };
  const double whole = peak({"run.schedule=gpipe"});
  const double recomputed = peak({"run.schedule=gpipe", "plan.recompute=full"});
  const double by_order = peak({"run.schedule={name: gpipe, keep_last: true}"});
  CHECK(recomputed < whole / 2);
  CHECK(by_order < whole / 2);
  CHECK(by_order >= recomputed);  // The last micro-batch keeps everything until its backward, the first to run.
}

TEST_CASE("a plan as text reads back to the same plan") {
  const Experiment e = load_experiment("examples/quickstart", {"plan.recompute=full"});
  const std::string text = to_text(e.plan, *e.cluster);
  CHECK(text ==
        "{planner: balanced, micro_batch_size: 2, recompute: full, stages: 4, replicas: 1, devices: [\"h100-0.gpu0\", "
        "\"h100-0.gpu1\", \"a100-0.gpu0\", \"a100-0.gpu1\"]}");
  const Experiment again = load_experiment("examples/quickstart", {"plan=" + text});
  CHECK(to_text(again.plan, *again.cluster) == text);
}

}  // namespace stagecraft::experiment_test
