#include "sim/experiment/plan_collectives.hpp"

#include "sim/cost/stage_cost.hpp"
#include "sim/plan/overlap.hpp"

namespace stagecraft {
namespace {

class CollectiveFinder {
 public:
  CollectiveFinder(const PlannedExperiment& p, const Stage& stage, DeviceTypeId type)
      : p_(p), stage_(stage), shape_(stage.shape), rules_(*p.experiment.costs->rules()), type_(type) {}

  std::vector<PlanCollective> list() {
    const Degrees& d = shape_.degrees;
    const EachPass<OpCollectives> lists =
        layer_collectives(*p_.experiment.costs, shape_, type_, static_cast<double>(samples_at_once(stage_, 0)));
    for (const OpCollectives* pass : {&lists.forward, &lists.input_gradient, &lists.weight_gradient})
      for (const OpCollective& c : *pass) add_of_op(c);
    const DeviceParameters parameters = device_parameters(shape_.layers, d, p_.model());
    for (const OpCollectives& update : {sum_of_gradients(parameters.dense, parameters.experts, shape_, rules_, type_),
                                        gather_of_weights(parameters.dense, parameters.experts, shape_, rules_, type_)})
      for (const OpCollective& c : update) add(CollectiveUse::Parameters, c, group_of(c, shape_, rules_.node));
    // See add_gathers() of stage_cost.cpp.
    if (d.tensor > 1 && !d.sequence && rules_.software.exposed_messages > 0 && p_.plan.stages.size() > 1)
      for (const StageEdge& edge : p_.plan.edges)
        if (&p_.plan.stage(edge.to) == &stage_)
          add(CollectiveUse::Ops, {.kind = CollectiveKind::AllGather, .bytes = edge.bytes},
              tensor_group(d, rules_.node));
    return std::move(list_);
  }

 private:
  void add_of_op(const OpCollective& c) {
    if (c.part == GroupPart::AcrossNodes) return;  // Cards alone price it.
    add(use_of(c), c, group_of(c, shape_, rules_.node));
  }

  void add(CollectiveUse use, const OpCollective& c, const GroupShape& group) {
    if (group.ranks > 1) list_.push_back({use, c.kind, group, c.bytes});
  }

  const PlannedExperiment& p_;
  const Stage& stage_;
  const StageShape& shape_;
  const CostRules& rules_;
  DeviceTypeId type_;
  std::vector<PlanCollective> list_;
};

}  // namespace

std::vector<PlanCollective> collectives_of(const PlannedExperiment& p, const Stage& stage, DeviceTypeId type) {
  return CollectiveFinder(p, stage, type).list();
}

}  // namespace stagecraft
