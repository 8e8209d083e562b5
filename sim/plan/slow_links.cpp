#include "sim/plan/slow_links.hpp"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "sim/cluster/link_collectives.hpp"

namespace stagecraft {
namespace {

using DeviceGroups = std::vector<std::vector<DeviceId>>;

/// The groups whose members divide a state among them, one after the other in each group that has copies of it.
DeviceGroups divided(const DeviceGroups& groups, int copies) {
  if (copies == 1) return groups;
  DeviceGroups parts;
  for (const std::vector<DeviceId>& group : groups) {
    const std::size_t size = group.size() / static_cast<std::size_t>(copies);
    for (std::size_t first = 0; first + size <= group.size(); first += size)
      parts.emplace_back(group.begin() + static_cast<std::ptrdiff_t>(first),
                         group.begin() + static_cast<std::ptrdiff_t>(first + size));
  }
  return parts;
}

bool spans_nodes(const DeviceGroups& groups, const Cluster& cluster) {
  for (const std::vector<DeviceId>& group : groups)
    for (const DeviceId d : group) {
      const Device &first = cluster.devices[group.front()], &device = cluster.devices[d];
      if (d != group.front() && (device.host.empty() || device.host != first.host)) return true;
    }
  return false;
}

/// Whether a group of the stage, which has collectives in its passes, is on several nodes.
bool has_links_between_nodes(const Stage& stage, const Cluster& cluster) {
  const Degrees& d = stage.shape.degrees;
  const auto is_far = [&](const Mesh& mesh, AxisSet axes) { return spans_nodes(mesh.groups(axes), cluster); };
  return (d.tensor > 1 && is_far(stage.dense, {Axis::Tensor})) ||
         (d.context > 1 && is_far(stage.dense, {Axis::Context})) ||
         (d.expert > 1 && is_far(stage.expert, {Axis::Expert})) ||
         (d.expert_tensor > 1 && is_far(stage.expert, {Axis::Tensor})) ||
         (stage.shape.sums_each_pass() && is_far(stage.dense, {Axis::Context, Axis::Data}));
}

/// What the links between the devices of a stage permit its collectives.
class StageLinks {
 public:
  StageLinks(const Stage& stage, const CostRules& rules, DeviceTypeId type)
      : stage_(stage), rules_(rules), type_(type) {}

  Seconds least_time(const OpCollective& c) {
    if (rules_.is_measured(c.kind, use_of(c), group_of(c, stage_.shape, rules_.node), type_)) return {};
    if (c.part != GroupPart::Whole && c.part != GroupPart::InsideCopies) return {};  // Priced by shape alone.
    const auto [entry, is_new] = floors_.try_emplace({c.axis, c.of_experts, c.kind});
    using Carried = LinkCollectives::Carried;
    if (is_new) {  // Divided state is gathered and summed in rings, and a measured time knows what it ran as.
      const bool is_ring = c.axis == Axis::Data && !has_curve(c);
      entry->second = rules_.links->floor(c.kind, groups_of(c), is_ring ? Carried::AsRing : Carried::OncePerNode);
    }
    return entry->second.time(c.bytes);
  }

 private:
  bool has_curve(const OpCollective& c) const {
    return rules_.has_curve(c.kind, group_of(c, stage_.shape, rules_.node), type_);
  }

  DeviceGroups groups_of(const OpCollective& c) const {
    switch (c.axis) {
      case Axis::Tensor:
        return stage_.dense.groups({Axis::Tensor});
      case Axis::Context:
        return stage_.dense.groups({Axis::Context});
      case Axis::Expert:
        return stage_.expert.groups(c.kind == CollectiveKind::AllToAll ? AxisSet{Axis::Expert} : AxisSet{Axis::Tensor});
      case Axis::Data:
        return divided(
            c.of_experts ? stage_.expert.groups({Axis::Data}) : stage_.dense.groups({Axis::Context, Axis::Data}),
            c.part == GroupPart::InsideCopies ? stage_.shape.shard_copies() : 1);
    }
    return {};
  }

  const Stage& stage_;
  const CostRules& rules_;
  DeviceTypeId type_;
  std::map<std::tuple<Axis, bool, CollectiveKind>, LinkFloor> floors_;
};

Seconds& of_axis(TimeByClass& parts, Axis axis) {
  switch (axis) {
    case Axis::Tensor:
      return parts.tensor;
    case Axis::Context:
      return parts.context;
    case Axis::Expert:
      return parts.expert;
    case Axis::Data:
      break;
  }
  return parts.data;
}

/// Lengthens the waits of a pass that its collectives exceed.
void lengthen(TimeByClass& pass, const OpCollectives& collectives, StageLinks& links, bool gathers_ahead) {
  TimeByClass floors;
  for (const OpCollective& c : collectives) {
    const bool is_hidden_by_pass = c.axis == Axis::Data;
    const Seconds hidden = is_hidden_by_pass ? Seconds{} : (1 - c.exposed) * c.cost;
    of_axis(floors, c.axis) += c.rounds * std::max(Seconds{}, links.least_time(c) - hidden);
  }
  for (const Axis axis : {Axis::Tensor, Axis::Context, Axis::Expert})
    of_axis(pass, axis) = std::max(of_axis(pass, axis), of_axis(floors, axis));
  // Weights that are gathered ahead, and gradients, move while the pass computes.
  const Seconds computes = gathers_ahead ? pass.total() - pass.data : Seconds{};
  pass.data = std::max(pass.data, floors.data - computes);
}

/// What hides it at its price hides as many seconds of it.
void lengthen(OpCollective& c, Seconds least_time) {
  if (least_time <= c.cost) return;
  const Seconds hidden = (1 - c.exposed) * c.cost;
  c.exposed = 1 - hidden / least_time;
  c.cost = least_time;
}

}  // namespace

void wait_for_slow_links(const Stage& stage, const CostTable& costs, DeviceTypeId type, double samples,
                         StageCost& cost) {
  const CostRules& rules = *costs.rules();
  if (!rules.links || rules.flows || stage.all_devices().size() < 2 || stage.shape.task != StageTask::Whole) return;
  if (!has_links_between_nodes(stage, costs.cluster())) return;
  const EachPass<OpCollectives> lists = layer_collectives(costs, stage.shape, type, samples);
  StageLinks links(stage, rules, type);
  LayerPasses& p = cost.passes;
  const bool ahead = rules.software.gathers_ahead;
  for (const auto& [pass, list] :
       {std::pair(&p.forward, &lists.forward), std::pair(&p.input_gradient, &lists.input_gradient),
        std::pair(&p.weight_gradient, &lists.weight_gradient), std::pair(&p.backward, &lists.backward)})
    lengthen(*pass, *list, links, ahead);
  p.recompute = p.forward;  // As an op, which repeats the whole forward.
  cost.forward = p.forward.total();
  cost.input_gradient = p.input_gradient.total();
  cost.weight_gradient = p.weight_gradient.total();
  cost.backward = p.backward.total();
  cost.recompute = p.recompute.total();
  if (!cost.collectives) return;
  auto collectives = std::make_shared<StageCollectives>(*cost.collectives);
  for (OpCollectives* list :
       {&collectives->passes.forward, &collectives->passes.input_gradient, &collectives->passes.weight_gradient,
        &collectives->passes.backward, &collectives->passes.recompute})
    for (OpCollective& c : *list) lengthen(c, links.least_time(c));
  cost.collectives = std::move(collectives);
}

}  // namespace stagecraft
