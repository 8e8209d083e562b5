// The measured collectives that a cluster names: reads them, gives them to the costs, and notes what they price.

#include "sim/experiment/curves.hpp"

#include <algorithm>
#include <set>

#include <fmt/core.h>

#include "sim/config/library.hpp"
#include "sim/core/text.hpp"
#include "sim/experiment/references.hpp"

namespace stagecraft {

using config::Problems;
using config::Value;

std::vector<config::Field> curve_fields_of_cluster() {
  return {config::any("collectives")
              .optional()
              .beside_base()
              .doc("Measured times of collectives, with `software`: a name that `stagecraft list curves` shows, or a "
                   "file. A "
                   "group takes the curve of its kind, its number of devices and of nodes; between measured sizes it "
                   "is interpolated, above the largest the last rate holds. Below the smallest size, and for groups "
                   "without a curve, the constants of the device type, or the links, say the time."),
          config::list("collective_systems", config::text("system"))
              .optional()
              .beside_base()
              .doc("The systems of that file whose curves are taken. Default: all of the device type.")};
}

void expand_curves(Value& cluster, Problems& problems) {
  Value* given = cluster.find("collectives");
  if (!given) return;
  if (given->is_map()) {
    *given = config::check(*given, collective_curve_fields(), "cluster.collectives", problems);
    return;
  }
  if (!given->is_scalar())
    return problems.add(given->where, "cluster.collectives", "a list cannot stand here",
                        "write the name of a file of curves", "wrong-type");
  const std::string file = find_file(FileKind::Curves, given->text, given->where.file);
  if (file.empty()) {
    const std::string near = suggest(given->text, file_names(FileKind::Curves));
    return problems.add(given->where, "cluster.collectives",
                        fmt::format("there are no measured collectives '{}'", given->text),
                        near.empty() ? "stagecraft list curves shows those that are there" : near, "unreadable-file");
  }
  Value root = config::parse_yaml_file(file, problems);
  if (problems.empty() && check_schema_line(root, "collectives", problems))
    root = config::check(root, collective_curve_fields(), "", problems);
  *given = std::move(root);
}

namespace {

bool is_named(const Value* systems, const std::string& system) {
  if (!systems) return true;
  return std::any_of(systems->items.begin(), systems->items.end(),
                     [&](const Value& name) { return name.text == system; });
}

void refuse_unknown_systems(const Value& systems, const std::vector<CollectiveCurve>& curves) {
  std::vector<std::string> names;
  for (const CollectiveCurve& c : curves) names.push_back(c.system);
  for (const Value& system : systems.items)
    if (std::find(names.begin(), names.end(), system.text) == names.end())
      throw InputError(
          {{system.where, "cluster.collective_systems", fmt::format("no curve is of a system '{}'", system.text),
            suggest(system.text, names), "unknown-name"}});
}

std::string text_of(CollectiveKind kind, int ranks, int nodes) {
  return fmt::format("{} among {} on {}", name(kind), pluralize(ranks, "device"), pluralize(nodes, "node"));
}

}  // namespace

std::vector<CollectiveCurve> curves_of(const Value& cluster, const DeviceType& type) {
  std::vector<CollectiveCurve> list;
  const Value *given = cluster.find("collectives"), *systems = cluster.find("collective_systems");
  if (!given) return list;
  const std::vector<CollectiveCurve> every = read_collective_curves(*given);
  if (systems) refuse_unknown_systems(*systems, every);
  const std::string& device = type.preset.empty() ? type.name : type.preset;
  for (const CollectiveCurve& c : every) {
    if ((!c.device.empty() && c.device != device) || !is_named(systems, c.system)) continue;
    const auto rival = std::find_if(list.begin(), list.end(), [&](const CollectiveCurve& o) {
      return o.kind == c.kind && o.ranks == c.ranks && o.nodes == c.nodes;
    });
    if (rival != list.end())
      throw InputError({{given->where, "cluster.collectives",
                         fmt::format("two curves are of {}: '{}' and '{}'", text_of(c.kind, c.ranks, c.nodes),
                                     rival->system, c.system),
                         "name the systems to take in cluster.collective_systems", "curves"}});
    list.push_back(c);
  }
  return list;
}

namespace {

/// The sources of the collectives of a plan, each text once.
struct CurveUse {
  std::set<std::string> measured, computed;
};

CurveUse find_uses(const PlannedExperiment& p) {
  CurveUse uses;
  const CostRules& rules = p.experiment.costs->rules();
  for (const StageId s : p.plan.stages.ids()) {
    const Stage& stage = p.plan.stages[s];
    const StageCost& cost = p.costs.at(s, 0);
    if (!cost.collectives) continue;
    const DeviceTypeId type = p.cluster().devices[stage.leaders.front()].type;
    for (const Collective& c : cost.collectives->joined()) {
      const GroupShape group = group_of(c, stage.shape, rules.node);
      const PriceSource from = rules.price(c, group, type).from;
      if (from == PriceSource::Nothing || from == PriceSource::Profile) continue;  // The profile comes first.
      const CollectiveCurve* curve = find_curve(rules.accelerators[type].curves, c.kind, group);
      const std::string text = text_of(c.kind, group.ranks, group.nodes());
      if (!curve)
        uses.computed.insert(text);
      else if (curve->time_of(c.bytes))
        uses.measured.insert(fmt::format("{} ('{}', {})", text, curve->system, curve->source));
      else
        uses.computed.insert(fmt::format("{} below {}", text, to_text(curve->points.front().bytes)));
    }
  }
  return uses;
}

std::string joined(const std::set<std::string>& texts) {
  return join(std::vector<std::string>(texts.begin(), texts.end()));
}

}  // namespace

std::vector<std::string> notes_on_curves(const PlannedExperiment& p) {
  if (!p.experiment.source->at("cluster").has("collectives")) return {};
  if (!p.experiment.software().prices)
    return {
        "the measured collectives of the cluster are not used: only a software stack prices collectives (software: "
        "plain)"};
  if (p.experiment.rules->flows)
    return {
        "the measured collectives of the cluster are not used: with run.collectives: flows they are messages on the "
        "links"};
  const CurveUse uses = find_uses(p);
  std::vector<std::string> notes;
  if (!uses.measured.empty()) notes.push_back("measured collectives: " + joined(uses.measured));
  if (!uses.computed.empty())
    notes.push_back("collectives without a measured time, which the constants of the devices or the links price: " +
                    joined(uses.computed));
  return notes;
}

}  // namespace stagecraft
