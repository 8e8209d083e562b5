// Lists what the groups of a plan need and a profile has not measured, for notes of reports and doubts of `validate`.

#include "sim/experiment/profile_gaps.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include <fmt/core.h>

#include "sim/core/text.hpp"
#include "sim/plan/overlap.hpp"

namespace stagecraft {
namespace {

/// Looks up what the stages of a plan need.
class GapFinder {
 public:
  explicit GapFinder(const PlannedExperiment& p) : p_(p), costs_(*p.experiment.costs) {}

  std::vector<std::string> gaps() {
    for (const StageId s : p_.plan.stages.ids()) {
      const Stage& stage = p_.plan.stages[s];
      const StageShape& shape = stage.shape;
      type_ = p_.cluster().devices[stage.leaders.front()].type;
      const bool has_group = shape.degrees.divides() || shape.sharding != StateSharding::None;
      if (!has_group || !costs_.is_profiled(type_) || !costs_.rules().software.prices) continue;
      if (shape.degrees.divides()) add_layers(shape, load_at_once(stage, 0));
      add_collectives(shape, p_.costs.at(s, 0));
    }
    std::vector<std::string> list;
    for (const auto& [group, names] : layers_)
      list.push_back(fmt::format("{} as '{}' divides {}",
                                 names.size() == 1 ? fmt::format("the layer '{}'", names.front())
                                                   : fmt::format("{} layers ('{}' first)", names.size(), names.front()),
                                 group, names.size() == 1 ? "it" : "them"));
    for (const auto& [use, kind, ranks] : collectives_)
      list.push_back(fmt::format("{} {} among {} devices", name(kind),
                                 use == CollectiveUse::Ops ? "in ops" : "of gradients and weights", ranks));
    return list;
  }

 private:
  void add_layers(const StageShape& shape, const Load& load) {
    for (const LayerId id : shape.layers) {
      const Layer& layer = p_.model().layers[id];
      if (!layer.has_shapes() || costs_.measured(id, shape, type_, load)) continue;
      std::vector<std::string>& names = layers_[group_text(shape.degrees, shape.exchange)];
      if (std::find(names.begin(), names.end(), layer.name) == names.end()) names.push_back(layer.name);
    }
  }

  void add_collectives(const StageShape& shape, const StageCost& cost) {
    if (!cost.collectives) return;
    for (const Collective& c : cost.collectives->joined()) {
      const GroupShape group = group_of(c, shape, costs_.rules().node);
      const PriceSource from = costs_.rules().price(c, group, type_).from;
      if (from != PriceSource::Nothing && from != PriceSource::Profile)
        collectives_.emplace(use_of(c), c.kind, group.ranks);
    }
  }

  const PlannedExperiment& p_;
  const CostTable& costs_;
  DeviceTypeId type_;
  std::map<std::string, std::vector<std::string>> layers_;  ///< By the text of the group.
  std::set<std::tuple<CollectiveUse, CollectiveKind, int>> collectives_;
};

}  // namespace

std::vector<std::string> unmeasured_in_groups(const PlannedExperiment& p) { return GapFinder(p).gaps(); }

}  // namespace stagecraft
