// Rules: sums of gradients, and collectives of tensor, context and expert groups, that devices wait for. One slow link
// of such groups may explain most of what their collectives cost.

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include <fmt/core.h>

#include "sim/core/numbers.hpp"
#include "sim/core/text.hpp"
#include "sim/diagnosis/rule.hpp"
#include "sim/diagnosis/suggestions.hpp"

namespace stagecraft::diagnosis {
namespace {

using DeviceGroups = std::vector<std::vector<DeviceId>>;

/// The slowest and the fastest of links that members of groups have to their neighbors: the slowest hop of each route.
struct LinkRange {
  LinkId slowest;
  double lowest = kInfinity, highest = 0;

  double ratio() const { return slowest.valid() ? highest / lowest : 1; }
  void add(LinkId link, double bandwidth) {
    if (bandwidth < lowest) slowest = link, lowest = bandwidth;
    highest = std::max(highest, bandwidth);
  }
};

/// The links of members in one position, if the slowest is much slower than the fastest. Routes inside of nodes and
/// between them have other links by design, so each kind is compared with its own.
std::optional<LinkRange> unequal_links(const DiagnosisInput& in, const DeviceGroups& groups) {
  constexpr double kNoticeable = 1.25;
  const Cluster& cluster = in.cluster();
  const Router router(cluster);
  LinkRange inside, between;
  for (const std::vector<DeviceId>& group : groups)
    for (std::size_t i = 0; i < group.size() && group.size() > 1; ++i) {
      const DeviceId from = group[i], to = group[(i + 1) % group.size()];
      if (from == to) continue;
      LinkRange& kind = cluster.on_one_node(from, to) ? inside : between;
      LinkRange route;
      for (const Hop& hop : router.require(from, to).hops) route.add(hop.link, cluster.links[hop.link].bandwidth.value);
      if (route.slowest.valid()) kind.add(route.slowest, route.lowest);
    }
  const LinkRange& worst = inside.ratio() > between.ratio() ? inside : between;
  if (worst.ratio() < kNoticeable) return {};
  return worst;
}

void add_groups(const Mesh& mesh, AxisSet axes, DeviceGroups& groups) {
  for (std::vector<DeviceId>& group : mesh.groups(axes))
    if (group.size() > 1) groups.push_back(std::move(group));
}

/// The groups whose collectives belong to the passes of a plan: tensor, context and expert groups.
DeviceGroups groups_of_passes(const Plan& plan) {
  DeviceGroups groups;
  for (const Stage& stage : plan.stages) {
    add_groups(stage.dense, {Axis::Tensor}, groups);
    add_groups(stage.dense, {Axis::Context}, groups);
    add_groups(stage.expert, {Axis::Expert}, groups);
    add_groups(stage.expert, {Axis::Tensor}, groups);
  }
  return groups;
}

/// The groups that sum gradients, and gather weights.
DeviceGroups groups_of_sums(const Plan& plan) {
  DeviceGroups groups;
  for (const Stage& stage : plan.stages) {
    add_groups(stage.dense, {Axis::Context, Axis::Data}, groups);
    if (stage.shape.degrees.expert > 1) add_groups(stage.expert, {Axis::Data}, groups);
  }
  for (const Reduction& r : plan.reductions) groups.insert(groups.end(), r.groups.begin(), r.groups.end());
  return groups;
}

/// One link that is slower than the links of other members in the same position, if it explains most of the `cost` of
/// the collectives of these groups. `collectives` begins its sentence.
std::optional<Finding> slow_group_link(const DiagnosisInput& in, const DeviceGroups& groups,
                                       const std::string& collectives, Seconds cost) {
  constexpr double kMostOfIt = 0.5;
  const std::optional<LinkRange> links = unequal_links(in, groups);
  if (!links) return {};
  const Link& link = in.cluster().links[links->slowest];
  Seconds lost = (1 - 1 / links->ratio()) * cost;
  if (lost < kSmallLoss * in.period) return {};
  std::optional<Suggestion> faster = faster_link(in, links->slowest, links->ratio());
  if (faster) in.changed.simulate(*faster);
  if (faster && faster->run) lost = in.period - faster->run->period;
  if (lost < kMostOfIt * cost) return {};
  Finding f = finding(in, "slow-link", link.name, lost);
  f.sentence = fmt::format(
      "{} wait for {} of {}, where other links between devices of groups have {:.4g} times its bandwidth: {} of the "
      "period.",
      collectives, link.name, to_text(link.bandwidth), links->ratio(), percent(f.share));
  if (faster) f.suggestions.push_back(std::move(*faster));
  return f;
}

/// Changes for states that replicas divide: each pass gathers weights where those are divided too.
void suggest_sharding(const DiagnosisInput& in, Finding& f) {
  const PlanSpec& spec = in.experiment().plan;
  if (!spec.planner->fields->find("shard")) return;
  const Stage& first = in.plan().stages.front();
  const auto on_node = std::count_if(first.all_devices().begin(), first.all_devices().end(), [&](DeviceId d) {
    return in.cluster().on_one_node(d, first.all_devices().front());
  });
  const auto within = on_node / first.shape.degrees.group();
  if (spec.sharding == StateSharding::Weights && within > 1 && within < first.replicas() && spec.shard_within != within)
    f.suggestions.push_back({{fmt::format("plan.shard={{state: weights, within: {}}}", within)},
                             "weights divided inside each node alone (HSDP)"});
  if (spec.sharding == StateSharding::Weights)
    f.suggestions.push_back({{"plan.shard=gradients"}, "whole weights on each replica (ZeRO-2)"});
  if (spec.sharding == StateSharding::Weights || spec.sharding == StateSharding::Gradients)
    f.suggestions.push_back({{"plan.shard=optimizer"}, "whole weights and gradients on each replica (ZeRO-1)"});
  if (auto larger = larger_micro_batches(in)) f.suggestions.push_back(std::move(*larger));
}

/// Half the degree of one axis of the group, and twice of something else, on the same devices.
void suggest_smaller_group(const DiagnosisInput& in, const char* axis, int degree, Finding& f) {
  if (degree < 2 || degree % 2 != 0) return;
  const std::string half = fmt::format("plan.group.{}={}", axis, degree / 2);
  const int count = in.experiment().run.micro_batches;
  Suggestion replicas{{half, fmt::format("plan.replicas={}", 2 * in.plan().stages.front().replicas())},
                      fmt::format("half the {} parallelism and twice the replicas, in the same batch", axis)};
  for (std::string& set : batch_sets(in, in.program().mini_batch, count / 2)) replicas.sets.push_back(std::move(set));
  if (count % 2 == 0) f.suggestions.push_back(std::move(replicas));
  if (in.experiment().plan.stages)
    f.suggestions.push_back({{half, fmt::format("plan.stages={}", 2 * *in.experiment().plan.stages)},
                             fmt::format("half the {} parallelism and twice the stages", axis)});
}

/// Devices that compute a replica of a dense layer together, or of its experts.
int exchanging_devices(const Degrees& degrees) {
  return std::max(degrees.group(), degrees.expert * degrees.expert_tensor);
}

/// Changes for rows that travel to their experts: fewer copies, next to computation, or not so far.
void suggest_other_exchanges(const DiagnosisInput& in, Finding& f) {
  const PlanSpec& spec = in.experiment().plan;
  if (!spec.planner->fields->find("group")) return;
  suggest_overlap(in, {Overlap::Experts}, "exchanges of experts next to other work", f);
  if (spec.dispatcher == ExpertDispatch::AllToAll)
    f.suggestions.push_back({{"plan.group.dispatcher=per_node"}, "one copy of a row for each node (DeepEP, HybridEP)"});
  if (spec.dispatcher == ExpertDispatch::AllGather)
    f.suggestions.push_back(
        {{"plan.group.dispatcher=alltoall"}, "to each device only the rows of its experts, and not all rows"});
  const ScheduleSpec& now = in.experiment().schedule;
  const std::string schedule = now.name();
  const config::Value* pairs_now = now.options->find("overlap_moe");
  const bool has_pairs = pairs_now && config::as_bool(*pairs_now);
  if (spec.stages && !has_pairs && (schedule == "1f1b" || schedule == "interleaved")) {
    Suggestion pairs{{"run.schedule={name: interleaved, overlap_moe: true}"},
                     "a forward and a backward as one, each computing while the other exchanges rows"};
    if (schedule == "1f1b") pairs.sets.push_back(fmt::format("plan.stages={}", 2 * *spec.stages));
    f.suggestions.push_back(std::move(pairs));
  }
  if (spec.group.expert % 2 == 0)
    f.suggestions.push_back({{fmt::format("plan.group.expert={}", spec.group.expert / 2)},
                             "half the expert parallelism and twice the copies of each expert"});
}

/// Sequences of different lengths on fewer context ranks, which exchange less.
void suggest_dynamic_context(const DiagnosisInput& in, int context, Finding& f) {
  const config::Value* data = in.experiment().source->find("data");
  const bool has_halves = context > 1 && (context & (context - 1)) == 0;
  if (!data || !has_halves || data->at("pack").text == "dynamic-context" ||
      !in.experiment().software().balanced_context)
    return;
  f.suggestions.push_back({{"data.pack=dynamic-context"}, "each sequence on as many context ranks as it needs"});
}

}  // namespace

/// Sums of gradients, and gathers of updated weights, that computation does not hide; or the one link that makes them
/// long.
std::optional<Finding> gradient_sums(const DiagnosisInput& in) {
  const Seconds lost = in.period - in.idealized.without(Cost::GradientSums);
  if (lost.value <= 0) return {};
  Bytes largest;
  std::string where = "data parallelism";
  for (const Reduction& r : in.plan().reductions) {
    if (r.bytes <= largest) continue;
    largest = r.bytes;
    where = r.stages.size() == 1 ? stage_text(in, r.stages.front()) : fmt::format("tied weights '{}'", r.name);
  }
  Finding f = finding(in, "gradient-sums", where, lost);
  const bool gathers = in.experiment().plan.sharding == StateSharding::Weights;
  f.sentence =
      fmt::format("Devices wait for {}sums of gradients ({} of {}) that no computation hides: {} of the period.",
                  gathers ? "gathers of weights and " : "", to_text(largest), where, percent(f.share));
  if (auto link = slow_group_link(in, groups_of_sums(in.plan()), "Sums of gradients", lost)) f = std::move(*link);
  suggest_sharding(in, f);
  suggest_other_rank_order(in, f);
  if (in.experiment().plan.sharding == StateSharding::None)
    suggest_overlap(in, {Overlap::Gradients}, "sums of gradients next to the last backward", f);
  else
    suggest_overlap(in, {Overlap::Gradients, Overlap::Weights},
                    "sums of gradients next to the last backward, and gathers of weights next to the forward", f);
  const RunSpec& run = in.experiment().run;
  if (run.lowering.overlap && !run.buckets && in.experiment().software().buckets.cuts())
    f.suggestions.push_back({{"run.gradient_buckets=software"}, "sums in buckets, next to the last backward"});
  f.suggestions.push_back(more_micro_batches(in, 4));
  if (!in.report().links.empty()) suggest_network(in, in.report().links.front().link, 2, f);
  return f;
}

/// Collectives of tensor, context and expert groups that computation does not hide; or the one link that makes them
/// long.
std::optional<Finding> group_collectives(const DiagnosisInput& in) {
  const auto& stages = in.plan().stages;
  const Stage& widest = *std::max_element(stages.begin(), stages.end(), [](const Stage& a, const Stage& b) {
    return exchanging_devices(a.shape.degrees) < exchanging_devices(b.shape.degrees);
  });
  const Degrees& degrees = widest.shape.degrees;
  const int devices = exchanging_devices(degrees);
  if (devices < 2) return {};
  const Seconds lost = in.period - in.idealized.without(Cost::GroupCollectives);
  if (lost.value <= 0) return {};
  const std::string collectives = "Collectives inside groups of " + pluralize(devices, "device");
  Finding f = finding(in, "group-collectives", pluralize(devices, "device") + " of a group", lost);
  f.sentence = fmt::format("{} (tensor {}, context {}, expert {}) cost {} of the period.", collectives, degrees.tensor,
                           degrees.context, degrees.expert, percent(f.share));
  if (auto link = slow_group_link(in, groups_of_passes(in.plan()), collectives, lost)) f = std::move(*link);
  suggest_overlap(in, {Overlap::Tensor}, "collectives of the tensor group next to matrix products", f);
  if (degrees.expert > 1) suggest_other_exchanges(in, f);
  suggest_dynamic_context(in, degrees.context, f);
  const PlanSpec& spec = in.experiment().plan;
  if (spec.group.tensor == degrees.tensor) suggest_smaller_group(in, "tensor", degrees.tensor, f);
  if (spec.group.context == degrees.context) suggest_smaller_group(in, "context", degrees.context, f);
  return f;
}

}  // namespace stagecraft::diagnosis
