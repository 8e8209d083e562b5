// `software`: a stack by its name, or with switches of what runs next to computation.

#include <doctest/doctest.h>

#include <fmt/core.h>

#include "sim/experiment/run.hpp"
#include "sim/experiment/scenario.hpp"
#include "sim/experiment/software.hpp"
#include "tests/support/checked.hpp"

namespace stagecraft::software_test {
namespace {

Experiment experiment(const std::string& software, const std::vector<std::string>& more = {}) {
  std::vector<std::string> sets{"software=" + software};
  sets.insert(sets.end(), more.begin(), more.end());
  return load_experiment("examples/llama-3-8b-4x8", sets);
}

double period(const Experiment& e) { return run(compile(e), "ideal").report.period.value; }

std::string refusal(const std::string& software) {
  return test::input_error_of([&] { experiment(software); });
}

bool says(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("megatron-core overlaps what most scripts overlap, and megatron-no-overlap nothing") {
  const SoftwareStack core = experiment("megatron-core").software(),
                      none = experiment("megatron-no-overlap").software();
  CHECK(core.hides(Overlap::Gradients) == 0.9);
  CHECK(core.hides(Overlap::Weights) == 0.9);
  CHECK(core.hides(Overlap::Tensor) == 0);
  CHECK(core.hides(Overlap::Experts) == 0);
  CHECK(core.hides_regather);
  for (const Overlap f : overlap_features()) CHECK(none.hides(f) == 0);
  CHECK_FALSE(none.hides_regather);
  CHECK(period(experiment("megatron-core")) < period(experiment("megatron-no-overlap")));
}

TEST_CASE("a name of another stack with other switches is that stack, and a note says so") {
  struct Row {
    const char *name, *meaning;
  };
  for (const Row& row : {Row{"nemo-2024", "nemo"},
                         {"megatron-fsdp", "megatron-bridge"},
                         {"megatron-bridge-overlap", "{base: megatron-bridge, overlap: {experts: true}}"},
                         {"torchtitan-async-tp", "{base: torchtitan, overlap: {tensor: true}}"}}) {
    CAPTURE(row.name);
    const Experiment named = experiment(row.name), written = experiment(row.meaning);
    CHECK(named.scenario_hash == written.scenario_hash);
    CHECK(period(named) == period(written));
    const std::vector<std::string> notes = software_notes(*named.source);
    REQUIRE(notes.size() == 1);
    CHECK(notes.front() == fmt::format("software: {} is {}", row.name, row.meaning));
    CHECK(software_notes(*written.source).empty());
  }
}

TEST_CASE("each switch changes what it is about") {
  const auto with = [](const std::string& switches, const std::vector<std::string>& more = {}) {
    return experiment("{base: megatron-core, overlap: {" + switches + "}}", more);
  };
  const StageShape shape = with("").plan.shape(2);
  const auto tensor = [&](const Experiment& e) {
    return e.costs->passes(LayerId{2}, shape, DeviceTypeId{0}, whole_samples(1)).forward.time.tensor.value;
  };
  CHECK(tensor(with("tensor: true")) == doctest::Approx(0.2 * tensor(with("tensor: false"))));
  // The sum of gradients before an update, and the gather of weights after it, are a tenth where they overlap.
  const auto update = [](const Experiment& e) { return plan_experiment(e).plan.reductions.front().cost->value; };
  const double both = update(with("gradients: true, weights: true")), none = update(with("gradients: false"));
  CHECK(both == doctest::Approx(0.1 * none));
  const auto data = [](const Experiment& e) { return run(compile(e), "ideal").report.time.spent.data.value; };
  const double alone = data(with("gradients: true, weights: false"));
  CHECK(data(with("gradients: true, weights: true")) < alone);
  CHECK(alone < data(with("gradients: false")));
  // With divided weights, the gathers of a layer run next to the computation of others.
  const std::vector<std::string> fsdp{"plan.shard=weights"};
  CHECK(period(with("weights: true", fsdp)) < period(with("weights: false", fsdp)));
  CHECK(period(with("gradients: true, weights: false", fsdp)) < period(with("gradients: false", fsdp)));
  // Without sequence parallelism a group gathers a message next to computation, or before the op that reads it.
  const std::vector<std::string> whole{"plan.group.sequence=false"};
  CHECK(period(with("messages: true", whole)) < period(with("messages: false", whole)));
}

TEST_CASE("exchanges of experts are hidden where they overlap") {
  const std::vector<std::string> mixtral{"model={base: mixtral-8x7b, override: {layers: 4, sequence: 4096}}",
                                         "plan={planner: balanced, stages: 1, replicas: 8, group: {expert: 8}}",
                                         "cluster={base: superpod-h100-256, override: {nodes: 1}}"};
  const auto exchanges = [&](const char* on) {
    const Experiment e = experiment(fmt::format("{{base: megatron-core, overlap: {{experts: {}}}}}", on), mixtral);
    return run(compile(e), "ideal").report.time.spent.expert.value;
  };
  CHECK(exchanges("true") == doctest::Approx(0.1 * exchanges("false")));
}

TEST_CASE("gradients of two bytes are summed as half the bytes") {
  const auto bytes = [](const char* each) {
    const Experiment e = experiment(fmt::format("{{base: megatron-core, gradient_bytes: {}}}", each));
    return plan_experiment(e).plan.reductions.front().bytes.value;
  };
  CHECK(bytes("2") == bytes("4") / 2);
}

TEST_CASE("switches are written out, and may be set on a name alone") {
  const Scenario scenario = load_scenario("examples/llama-3-8b-4x8", {"software=megatron-core"});
  CHECK(says(config::to_yaml(scenario.tree, false),
             "software:\n  base: megatron-core\n  overlap:\n    tensor: false\n    gradients: true\n    weights: true\n"
             "    messages: true\n    experts: false\n    weight_gradients: false\n  gradient_bytes: 4\n"));
  CHECK(experiment("torchtitan", {"software.overlap.tensor=true"}).scenario_hash ==
        experiment("torchtitan-async-tp").scenario_hash);
  CHECK(experiment("nemo-2024").scenario_hash == experiment("nemo").scenario_hash);
  // What depends on a switch follows it.
  CHECK(experiment("megatron-core", {"software.overlap.gradients=false"}).software().hides(Overlap::Weights) == 0);
  CHECK(load_scenario("examples/quickstart", {"software=none"}).tree.at("software").text == "none");
}

TEST_CASE("facts of a stack are replaced one by one") {
  const auto stack = [](const char* text) { return experiment(text).software(); };
  CHECK(stack("{base: nemo, release: 25.02}").release == "25.02");
  CHECK(stack("{base: torchtitan, attention: fa3}").attention_kernel == AttentionKernel::Flash3);
  CHECK(!stack("{base: torchtitan, attention: eager}").fused_attention);
  CHECK(stack("{base: torchtitan, fsdp_overlap: 0.25}").pass_overlap == 0.25);
  CHECK(stack("{base: torchtitan, norm_traffic: 5}").norm_traffic == 5);
  CHECK(stack("{base: pytorch-eager}").norm_traffic == 14);  // scenarios/unseen/README.md says what it was fitted to.
  CHECK(stack("{base: megatron-core, release: 0.12.1}").release == "0.12");
  CHECK_FALSE(stack("{base: megatron-core, release: 0.11}").weights_in_experts);
  CHECK(stack("{base: megatron-core, fused_loss: false}").loss_forward_traffic == stack("nemo").loss_forward_traffic);
  CHECK(stack("{base: nemo, fused_loss: true}").loss_backward_traffic == stack("megatron-core").loss_backward_traffic);
  CHECK(stack("{base: megatron-2021, fused_loss: false}").loss_forward_traffic == 38);
  CHECK(period(experiment("{base: megatron-core, fused_loss: false}")) > period(experiment("megatron-core")));
  const auto gathered = [](const char* text) {
    Bytes sum;
    const PlannedExperiment p = plan_experiment(experiment(text));
    for (const Collective& c : p.costs.at(StageId{0}, 0).collectives->update) sum += c.bytes;
    return sum;
  };
  CHECK(2 * gathered("{base: megatron-core, gathered_bytes: 1}").value == gathered("megatron-core").value);
  const auto launch = [](const char* text) { return experiment(text).rules->accelerators.front().launch.value; };
  CHECK(launch("{base: megatron-core, launch: 70 us}") == doctest::Approx(70e-6));
  CHECK(launch("{base: megatron-core, graphs: true}") == 0);
  CHECK(launch("megatron-deepspeed") == doctest::Approx(54e-6));
}

TEST_CASE("what a stack does not have is refused") {
  CHECK(says(refusal("{base: plain, overlap: {tensor: true}}"), "how much of it 'plain' hides is not known"));
  CHECK(says(refusal("{base: megatron-core, overlap: {weights: true, gradients: false}}"), "it needs gradients: true"));
  CHECK(says(refusal("{base: megatron-core, overlap: {weight_gradients: true}}"), "it needs experts: true"));
  CHECK(says(refusal("{base: megatron-core, overlap: {tensors: true}}"), "did you mean 'tensor'?"));
  CHECK(says(refusal("{base: none, gradient_bytes: 2}"), "without a framework"));
  CHECK(says(refusal("{base: megatron-core, release: 25.02}"), "leave it out, or write one from 0.11 to 0.20: 0.11"));
  CHECK(says(refusal("{base: megatron-core, release: 25.02}"), "25.02 is a release of nemo"));
  CHECK(says(refusal("{base: megatron-core, release: 0.13, overlap: {experts: true}}"),
             "megatron-core 0.13 has no option for it"));
  CHECK(experiment("{base: megatron-core, release: 0.14, overlap: {experts: true}}").software().release == "0.14");
  CHECK(says(refusal("{base: plain, release: 1}"), "leave it out"));
  CHECK(says(refusal("{base: nemo, release: 23.01}"), "there are no facts of release 23.01 of 'nemo'"));
  CHECK(says(refusal("{base: torchtitan, attention: fa4}"), "did you mean 'fa"));
  CHECK(experiment("{base: megatron-core, release: 0.20}").software().name == "megatron-core");
}

}  // namespace stagecraft::software_test
