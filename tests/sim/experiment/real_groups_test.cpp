// Groups of devices that really run, from a scenario to weights and memory.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "sim/core/cores.hpp"
#include "sim/experiment/profile_gaps.hpp"
#include "sim/experiment/profiling.hpp"
#include "sim/experiment/real_program.hpp"
#include "sim/experiment/remarks.hpp"
#include "sim/experiment/run.hpp"
#include "tests/support/files.hpp"
#include "tests/support/trials.hpp"

namespace stagecraft::real_groups_test {

namespace {

constexpr const char* kGroups = "examples/cpu-groups";
constexpr const char* kExperts = "examples/cpu-experts";

Experiment scenario(const std::vector<std::string>& sets, const std::string& file = kGroups) {
  return load_experiment(file, sets);
}

Learnt learn(const std::vector<std::string>& sets, const std::string& file = kGroups) {
  return *execute(compile(scenario(sets, file)), "cpu").learnt;
}

double largest_difference(const std::vector<double>& ours, const std::vector<double>& theirs) {
  REQUIRE(ours.size() == theirs.size());
  double worst = 0;
  for (std::size_t i = 0; i < ours.size(); ++i) worst = std::max(worst, std::abs(ours[i] - theirs[i]));
  return worst;
}

/// Operations in the order of the model, whatever the stages.
std::vector<double> all_weights(const Learnt& learnt) {
  std::vector<double> weights;
  for (const auto& stage : learnt.weights) weights.insert(weights.end(), stage.begin(), stage.end());
  return weights;
}

std::string refusal(const std::vector<std::string>& sets, const std::string& file = kGroups) {
  try {
    execute(compile(load_experiment(file, sets)), "cpu");
  } catch (const InputError& e) {
    return e.problems().front().message;
  }
  return "accepted";
}

}  // namespace

TEST_CASE("a scenario with groups and divided states learns what it does without") {
  const std::vector<std::string> whole = {"plan={planner: balanced, stages: 1, micro_batch_size: 2}"};
  const Learnt expected = learn(whole);
  for (const std::string plan :
       {"stages: 2, replicas: 2, group: {tensor: 2, sequence: true}, shard: optimizer",
        "stages: 1, replicas: 2, group: {tensor: 4}, shard: {state: weights, reshard: true}",
        "stages: 2, replicas: 1, micro_batch_size: 2, group: {tensor: 2, context: 2, context_type: p2p}",
        "stages: 2, replicas: 2, group: {context: 2, context_type: all_gather}, shard: gradients",
        "stages: 1, replicas: 2, group: {tensor: 2, context: 2, context_type: a2a}"}) {
    CAPTURE(plan);
    const Learnt learnt = learn({"plan={planner: balanced, " + plan + "}"});
    CHECK(largest_difference(learnt.losses, expected.losses) < 1e-12);
    CHECK(largest_difference(all_weights(learnt), all_weights(expected)) < 1e-12);
  }
}

TEST_CASE("a scenario with experts on several devices learns what it does on one") {
  const Learnt expected = learn({"plan={planner: balanced, stages: 1, micro_batch_size: 4}"}, kExperts);
  for (const std::string plan :
       {"stages: 2, replicas: 2, group: {tensor: 2, sequence: true, expert: 4}",
        "stages: 2, replicas: 4, micro_batch_size: 1, group: {expert: 2}, shard: optimizer",
        "stages: 1, replicas: 2, group: {tensor: 4, sequence: true, expert: 2, expert_tensor: 2}, shard: gradients",
        "stages: 1, replicas: 2, group: {tensor: 2, sequence: true, context: 2, context_type: p2p, expert: 8}",
        "stages: 2, replicas: 2, group: {context: 2, context_type: all_gather, expert: 4}, shard: weights"}) {
    CAPTURE(plan);
    const bool small = plan.find("micro_batch_size") != std::string::npos;
    const Learnt learnt =
        learn({"plan={planner: balanced, " + plan + (small ? "}" : ", micro_batch_size: 2}")}, kExperts);
    CHECK(largest_difference(learnt.losses, expected.losses) < 1e-12);
    CHECK(largest_difference(all_weights(learnt), all_weights(expected)) < 1e-12);
  }
}

TEST_CASE("the timeline of a real run has the instructions of the program, and memory of all devices") {
  const CompiledExperiment c = compile(scenario({}));
  const Timeline timeline = execute(c, "cpu");
  CHECK(timeline.start.size() == c.program.size());
  CHECK(timeline.learnt->versions.size() == c.program.size());
  for (const InstructionId i : c.program.instructions.ids())
    for (const InstructionId before : c.program.waits_for(i)) CHECK(timeline.end[before] <= timeline.start[i] + 1e-12);
  CHECK(timeline.core_waits.size() == (timeline.core_waits.empty() ? 0 : c.program.size()));
  for (const MeasuredMemory& m : timeline.learnt->memory) CHECK(m.total.value > 0);
}

TEST_CASE("weights, gradients and states of the optimizer take what the simulation charges") {
  for (const std::string shard : {"none", "optimizer", "gradients"})
    for (const std::string group : {"{tensor: 1}", "{tensor: 2, sequence: true}", "{tensor: 4}"}) {
      CAPTURE(shard);
      CAPTURE(group);
      const bool wide = group == "{tensor: 4}";
      const CompiledExperiment c =
          compile(scenario({"plan.shard=" + shard, "plan.group=" + group, wide ? "plan.stages=1" : "plan.stages=2"}));
      const Learnt learnt = *execute(c, "cpu").learnt;
      for (const Stage& stage : c.plan.stages)
        for (int d = 0; d < std::ssize(stage.all_devices()); ++d) {
          const DeviceId device = stage.all_devices()[d];
          const ResidentMemory& charged = c.program.memory[stage.leaders[d / stage.shape.degrees.group()]];
          const MeasuredMemory& measured = learnt.memory[device];
          CHECK(measured.weights.value == doctest::Approx(charged.weights.value).epsilon(0.03));
          CHECK(measured.optimizer.value == doctest::Approx(charged.optimizer.value).epsilon(0.03));
          // What is summed with other devices is made apart first, one operation at a time.
          if (shard != "gradients")
            CHECK(measured.gradients.value == doctest::Approx(charged.gradients.value).epsilon(0.05));
        }
    }
}

namespace {

/// With layers that take less time to measure.
std::vector<std::string> small(std::vector<std::string> sets) {
  sets.insert(sets.end(), {"model.hidden=16", "model.sequence=8", "model.vocabulary=23"});
  return sets;
}

const std::vector<std::string> kOneGroup = {"plan={planner: balanced, stages: 1, group: {tensor: 2}}"};

bool any_contains(const std::vector<std::string>& lines, const std::string& words) {
  return std::any_of(lines.begin(), lines.end(),
                     [&](const std::string& line) { return line.find(words) != std::string::npos; });
}

}  // namespace

TEST_CASE("a profile of a group that was written and read back gives exactly its times in the simulation") {
  Profile profile = take_profile(compile(scenario(kOneGroup)), "cpu", 0);
  REQUIRE(profile.layers.size() == 6);  // Input, embedding, block, norm, head and loss.
  CHECK(profile.threads == 2);
  double number = 1, forward = 0, backward = 0;
  for (MeasuredLayer& layer : profile.layers) {  // Times that nothing here measured.
    CHECK(layer.group == "tensor 2");
    layer.forward = Seconds{(number += 1) * 1e-3};
    const bool reads_data = layer.layer.find("embedding") != std::string::npos;  // No layer needs that gradient.
    layer.input_gradient = layer.input_gradient.value > 0 && !reads_data ? Seconds{(number += 1) * 1e-3} : Seconds{};
    layer.weight_gradient = Seconds{(number += 1) * 1e-3};
    const double count = layer.layer.find("attention") != std::string::npos ? 4 : 1;
    forward += count * layer.forward.value;
    backward += count * (layer.input_gradient + layer.weight_gradient).value;
  }
  // Arrays of 32 rows of 64 numbers, and of 32 numbers for the loss, which a simulation counts in fp32.
  REQUIRE(profile.collectives.size() == 2);
  CHECK(profile.collectives[0].bytes.value == 32 * 8);
  CHECK(profile.collectives[1].bytes.value == 32 * 64 * 8);
  profile.collectives[0].time = Seconds{0.25};
  profile.collectives[1].time = Seconds{0.5};
  profile.operation = Seconds{0.125};
  // Each of 4 blocks sums twice in both directions, the embedding once forward, the head once backward; the loss three
  // times.
  forward += 0.125 + 9 * 0.5 + 3 * 0.25;
  backward += 0.125 + 9 * 0.5;
  const std::string file = test::own_file("group_profile.yaml", to_yaml(profile));
  std::vector<std::string> sets = kOneGroup;
  sets.push_back("profile=" + file);
  const CompiledExperiment c = compile(scenario(sets));
  const StageCost& cost = c.costs.at(StageId{0}, 0);
  CHECK(cost.forward.value == doctest::Approx(forward).epsilon(1e-9));
  CHECK(cost.backward.value == doctest::Approx(backward).epsilon(1e-9));
  CHECK(cost.passes.forward.tensor.value == doctest::Approx(9 * 0.5 + 3 * 0.25).epsilon(1e-9));
  const Timeline timeline = execute(c, "ideal");
  for (const InstructionId id : c.program.instructions.ids())
    if (c.program.at(id).kind == InstructionKind::Forward)
      CHECK(timeline.end[id] - timeline.start[id] == doctest::Approx(forward).epsilon(1e-9));
  CHECK(compile(with_profile(scenario(kOneGroup), profile)).costs.at(StageId{0}, 0).forward.value ==
        doctest::Approx(forward).epsilon(1e-9));
}

TEST_CASE("what of a group a profile lacks is named, and leaves no verdict sure") {
  const Profile whole = take_profile(compile(scenario(kOneGroup)), "cpu", 0);
  const auto notes = [](const Profile& p) { return remarks(compile(with_profile(scenario(kOneGroup), p))); };
  CHECK_FALSE(any_contains(notes(whole), "the profile lacks"));
  Profile fewer = whole;
  std::erase_if(fewer.layers, [](const MeasuredLayer& l) { return l.layer.find("attention") != std::string::npos; });
  CHECK(any_contains(notes(fewer),
                     "the profile lacks 4 layers ('l0' first) as 'tensor 2' divides them, whose times are computed"));
  Profile silent = whole;
  silent.collectives.clear();
  CHECK(any_contains(notes(silent), "the profile lacks all_reduce in ops among 2 devices, whose times are computed"));
  Profile undivided = whole;
  for (MeasuredLayer& layer : undivided.layers) layer.group.clear();
  CHECK(any_contains(notes(undivided), "as 'tensor 2' divides them"));
  std::vector<std::string> sets = kOneGroup;
  sets.emplace_back("run.iterations=3");
  const Validated v = validate_experiment(with_profile(scenario(sets), silent), "cpu", "ideal", 0);
  CHECK(any_contains(v.validation.doubts, "all_reduce in ops among 2 devices"));
  CHECK_FALSE(is_sure(v.validation, 1e9));
}

TEST_CASE("a profile has the layers and the collectives that each kind of group needs") {
  std::vector<std::pair<std::string, std::vector<CollectiveKind>>> groups{
      {"{tensor: 2, sequence: true}", {CollectiveKind::AllGather, CollectiveKind::ReduceScatter}},
      {"{context: 2, context_type: a2a}", {CollectiveKind::AllToAll}},
      {"{tensor: 2}", {CollectiveKind::AllReduce}},
      {"{context: 2, context_type: p2p}", {}},
      {"{context: 2, context_type: all_gather}", {CollectiveKind::AllGather, CollectiveKind::ReduceScatter}}};
  if (!test::all_trials()) groups.resize(2);  // Each profile takes a second; other cases have a tensor group.
  for (const auto& [group, kinds] : groups) {
    const std::string plan = "plan={planner: balanced, stages: 1, group: " + group + "}";
    CAPTURE(plan);
    const Experiment e = scenario(small({plan}));
    const Profile p = take_profile(compile(e), "cpu", 0);
    for (const CollectiveKind kind : kinds) CHECK(p.collective(kind, CollectiveUse::Ops, 2, Bytes{1000}).has_value());
    CHECK(unmeasured_in_groups(compile(with_profile(e, p))).empty());
  }
  const Experiment experts =
      scenario(small({"plan={planner: balanced, stages: 1, replicas: 2, group: {expert: 2}}"}), kExperts);
  const Profile p = take_profile(compile(experts), "cpu", 0);
  CHECK(p.threads == 2);
  CHECK(p.collective(CollectiveKind::AllToAll, CollectiveUse::Ops, 2, Bytes{1000}).has_value());
}

TEST_CASE("updates of divided states take the measured sums and gathers, in the bytes of the model") {
  const Experiment e = scenario({"plan={planner: balanced, stages: 1, replicas: 2, shard: optimizer}"});
  Profile p = take_profile(compile(e), "cpu", 0);
  CHECK(unmeasured_in_groups(compile(with_profile(e, p))).empty());
  const double parameters = e.model->parameters();
  std::erase_if(p.collectives, [&](const MeasuredCollective& c) { return c.bytes.value != 8 * parameters; });
  REQUIRE(p.collectives.size() == 2);
  for (MeasuredCollective& c : p.collectives) {
    CHECK(c.use == CollectiveUse::Parameters);
    c.time = Seconds{c.kind == CollectiveKind::AllGather ? 0.25 : 0.5};
  }
  p.updates = {{parameters / 2, Seconds{0.125}, Seconds{}}};
  p.operation = {};
  const CompiledExperiment c = compile(with_profile(e, p));
  CHECK(c.costs.at(StageId{0}, 0).update.value == doctest::Approx(0.125 + 0.25).epsilon(1e-9));
  REQUIRE(c.plan.reductions.size() == 1);
  CHECK(c.plan.reductions.front().cost->value == doctest::Approx(0.5).epsilon(1e-9));
}

namespace {

std::set<double> bytes_of_layers(const ModelGraph& model) {
  std::set<double> bytes;
  for (const Layer& layer : model.layers)
    if (layer.parameters > 0) bytes.insert(8 * layer.parameters);
  return bytes;
}

/// Sizes of the collectives of gradients or weights among two devices.
std::set<double> exchanged(const Profile& p, CollectiveKind kind) {
  std::set<double> bytes;
  for (const MeasuredCollective& c : p.collectives)
    if (c.kind == kind && c.use == CollectiveUse::Parameters && c.ranks == 2) bytes.insert(c.bytes.value);
  return bytes;
}

}  // namespace

TEST_CASE("passes of divided gradients and weights take the measured sums and gathers of their layers") {
  constexpr double kSecondsOfByte = 1e-6;
  for (const std::string shard : {"gradients", "{state: weights, reshard: true}"}) {
    CAPTURE(shard);
    const Experiment e = scenario(small({"plan={planner: balanced, stages: 1, replicas: 2, shard: " + shard + "}"}));
    Profile p = take_profile(compile(e), "cpu", 0);
    CHECK(unmeasured_in_groups(compile(with_profile(e, p))).empty());
    CHECK(exchanged(p, CollectiveKind::ReduceScatter) == bytes_of_layers(*e.model));
    CHECK((exchanged(p, CollectiveKind::AllGather) == bytes_of_layers(*e.model)) == (shard != "gradients"));
    p.latency = Seconds{1e6};  // What a message takes between threads that sleep does not price what was measured.
    const auto cost = [&](double seconds) {
      for (MeasuredCollective& c : p.collectives) c.time = Seconds{seconds * c.bytes.value};
      return compile(with_profile(e, p)).costs.at(StageId{0}, 0);
    };
    const double all_bytes = 8 * e.model->parameters(), gathers = shard == "gradients" ? 0 : 1;
    const StageCost slow = cost(2 * kSecondsOfByte), fast = cost(kSecondsOfByte);
    CHECK((slow.forward - fast.forward).value / (kSecondsOfByte * all_bytes) == doctest::Approx(gathers).epsilon(1e-6));
    CHECK((slow.backward - fast.backward).value / (kSecondsOfByte * all_bytes) ==
          doctest::Approx(1 + gathers).epsilon(1e-6));
  }
}

TEST_CASE("a validation of groups that share cores is not sure and says why") {
  std::vector<const char*> files{kExperts};
  if (test::all_trials()) files.push_back(kGroups);
  for (const char* file : files) {
    const Validated v = validate_experiment(scenario(small({"run.iterations=3"}), file), "cpu", "ideal", 0);
    CHECK(v.layers_measured == v.layers);
    if (usable_cores().count() < 8) CHECK(any_contains(v.validation.doubts, "which is not simulated with groups"));
    CHECK(!v.validation.memory.empty());
    CHECK(v.measured.report.makespan.value > 0);
  }
}

TEST_CASE("what a real run of groups cannot do is refused with a reason") {
  CHECK(refusal({"plan.replicas=1", "plan.group={tensor: 8, sequence: true}", "plan.stages=1"}) ==
        "the backend 'cpu' copies no key-value heads, and tensor 8 does not divide the 4 of layer 'l0'");
  CHECK(refusal({"model.experts.capacity=1.25"}, kExperts) ==
        "layer 'l0' of the model 'transformer' sends 80 rows in place of 2 x 32 to its experts: real backends neither "
        "drop nor "
        "pad rows");
}

TEST_CASE("an emulated run sends what a group exchanges where collectives are messages, and else sleeps for it") {
  const auto unfolded = [](std::vector<std::string> sets) {
    sets.insert(sets.end(), {"run.compute=emulated", "plan={planner: balanced, stages: 2, group: {tensor: 2}}"});
    return unfold_for_real_run(compile(scenario(sets)))->program;
  };
  const auto exchanges = [](const Program& p) {
    int count = 0;
    for (const CollectiveCall& c : p.collectives) {
      if (c.purpose != Purpose::TensorActivation) continue;
      CHECK(c.members == 2);
      CHECK(c.rounds == 1);
      CHECK(p.at(c.member(0)).device != p.at(c.member(1)).device);
      ++count;
    }
    return count;
  };
  const Program priced = unfolded({}), sent = unfolded({"run.collectives=flows", "run.detail=layers"});
  CHECK(exchanges(priced) == 0);
  CHECK(exchanges(sent) > 0);
  const auto computing = [](const Program& p) {
    double seconds = 0;
    for (const Instruction& i : p.instructions)
      if (i.is_compute()) seconds += i.duration.value;
    return seconds;
  };
  CHECK(computing(sent) < computing(priced));
}

TEST_CASE("a folded run has the times of the first device of each group") {
  const CompiledExperiment c =
      compile(scenario({"run.compute=emulated", "run.collectives=flows", "run.detail=layers", "run.iterations=2",
                        "plan={planner: balanced, stages: 2, group: {tensor: 2}}"}));
  const Timeline timeline = execute(c, "cpu");
  REQUIRE(timeline.start.size() == c.program.size());
  for (const InstructionId i : c.program.instructions.ids())
    for (const InstructionId before : c.program.waits_for(i)) CHECK(timeline.start[i] >= timeline.end[before]);
}

}  // namespace stagecraft::real_groups_test
