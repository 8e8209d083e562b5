// The field `weights` of a scenario: its words and maps, the rule it becomes, and the schedules it refuses.

#include <doctest/doctest.h>

#include "sim/experiment/run.hpp"
#include "sim/weights/policy.hpp"
#include "tests/support/checked.hpp"

namespace stagecraft::weights_test {
namespace {

Experiment loaded(const std::string& schedule, const std::string& weights, const std::vector<std::string>& more = {}) {
  std::vector<std::string> sets = {"run.schedule=" + schedule, "weights=" + weights};
  sets.insert(sets.end(), more.begin(), more.end());
  return load_experiment("examples/quickstart", sets);
}

std::string refusal(const std::string& schedule, const std::string& weights) {
  return test::input_error_of([&] { loaded(schedule, weights); });
}

const WeightsRule& paper(std::string_view name) { return get_from(weights::catalog(), "weights policy", name).paper; }

}  // namespace

TEST_CASE("the policy auto is the schedule's own") {
  const std::pair<const char*, const char*> goes[] = {
      {"1f1b", "flush"}, {"gpipe", "flush"}, {"2bw", "2bw"}, {"pipedream", "stash"}};
  for (const auto& [schedule, policy] : goes) {
    const Experiment scenario = loaded(schedule, "auto");
    CHECK(scenario.weights.name() == policy);
    CHECK(scenario.weights.rule == paper(policy));
    CHECK(scenario.source->at("weights").at("policy").text == policy);
  }
  CHECK(load_experiment("examples/quickstart", {}).weights.name() == "flush");
}

TEST_CASE("a weights policy is a word or a map, and one field can be set") {
  CHECK(loaded("pipedream", "naive").weights.rule == paper("naive"));
  CHECK(loaded("pipedream", "{policy: spectrain}").weights.rule == paper("spectrain"));
  const WeightsRule released = *get_from(weights::catalog(), "", "pipeoptim").as_released;
  CHECK(loaded("pipedream", "{policy: pipeoptim, fidelity: as_released}").weights.rule == released);
  CHECK(loaded("pipedream", "{policy: pipeoptim}", {"weights.fidelity=as_released"}).weights.rule == released);
  const Experiment custom =
      loaded("pipedream", "{policy: custom, forward_weights: predict, predictor: {horizon: exact}}");
  CHECK(custom.weights.name() == "custom");
  CHECK(custom.weights.rule.forward == ForwardWeights::Predict);
}

TEST_CASE("the weights rule of a resolved scenario reads back unchanged") {
  const Experiment first = loaded("pipedream", "{policy: custom, backward_weights: reconstruct}");
  config::Problems problems;
  const config::Value again = config::check(
      config::parse_yaml(config::to_yaml(*first.source, false), "again", problems), scenario_fields(), "", problems);
  CHECK(problems.list().empty());
  const config::Value& map = again.at("weights");
  CHECK(rule_of(get_from(weights::catalog(), "", map.at("policy").text), map) == first.weights.rule);
}

TEST_CASE("one version needs a drain every iteration") {
  CHECK(refusal("pipedream", "flush").find("never drains the pipeline") != std::string::npos);
  CHECK(refusal("2bw", "flush").find("[write weights: 2bw]") != std::string::npos);
  CHECK(refusal("{name: pipedream, drain_every: 2}", "flush").find("does not drain the pipeline every iteration") !=
        std::string::npos);
  CHECK(loaded("{name: pipedream, drain_every: 1}", "flush").weights.name() == "flush");
}

TEST_CASE("predictions that assume old weights are refused where every iteration drains") {
  for (const WeightsDef* def : weights::catalog()) {
    CAPTURE(def->name);
    const std::string name(def->name), why = refusal("1f1b", name);
    const bool blind = def->paper.predicts() && def->paper.horizon != Horizon::Exact;
    CHECK((why == "nothing") == !blind);
    if (blind) CHECK(why.find("[write schedule: pipedream, or weights: flush]") != std::string::npos);
    if (!def->needs_flush) CHECK(refusal("pipedream", name) == "nothing");
  }
  CHECK(refusal("{name: pipedream, drain_every: 1}", "pipeoptim") != "nothing");
}

TEST_CASE("the optimizer decides how many states a prediction reads") {
  CHECK(loaded("pipedream", "pipeoptim").run.lowering.optimizer_states == 2);  // Adam, when nothing is said
  const Experiment momentum = loaded("pipedream", "pipeoptim", {"training={optimizer: momentum}"});
  CHECK(momentum.run.lowering.optimizer_states == 1);
  CHECK(momentum.run.lowering.keeps_momentum);
}

TEST_CASE("versions and weight buffers of a real run equal the plan") {
  const std::vector<std::string> small = {
      "model={builder: mlp, widths: [8, 8, 8, 8, 8, 8, 8, 8, 4], activation: tanh, loss: mean_square}",
      "plan.micro_batch_size=2", "run.iterations=10", "training.task=teacher"};
  const std::pair<const char*, const char*> orders[] = {
      {"pipedream", "1"}, {"pipedream", "2"}, {"{name: pipedream, drain_every: 4}", "3"}, {"2bw", "3"}};
  int runs = 0;
  for (const WeightsDef* def : weights::catalog())
    for (const char* fidelity : {"paper", "as_released"})
      for (const auto& order : orders) {
        const auto& schedule = order.first;
        const auto& micro_batches = order.second;
        if (def->needs_flush || (def->name == "2bw" && std::string_view(micro_batches) != "3")) continue;
        std::vector<std::string> sets = small;
        sets.push_back(std::string("run.micro_batches=") + micro_batches);
        const std::string weights = "{policy: " + std::string(def->name) + ", fidelity: " + fidelity + "}";
        CAPTURE(weights);
        CAPTURE(schedule);
        CAPTURE(micro_batches);
        const Experiment scenario = loaded(schedule, weights, sets);
        const CompiledExperiment p = compile(scenario);
        const Timeline timeline = execute(p, "cpu", true);
        REQUIRE(timeline.learnt.has_value());
        for (std::size_t d = 0; d < p.program.memory.size(); ++d)
          CHECK(timeline.learnt->memory[DeviceId{d}].weight_buffers == p.program.memory[DeviceId{d}].weight_buffers);
        bool same = true;
        for (const InstructionId n : p.program.instructions.ids())
          if (const Instruction& i = p.program.instructions[n]; i.is_compute())
            same = same && timeline.learnt->versions[n] == p.program.version_of(i);
        CHECK(same);
        ++runs;
      }
  CHECK(runs == (12 * 4 + 2) * 2);
}

}  // namespace stagecraft::weights_test
