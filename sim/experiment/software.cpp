// Turns `software`, `run.precision` and `run.collectives` of a scenario into the CostRules of its experiment, and lets
// the stack decide whether attention of a transformer is fused.

#include "sim/experiment/software.hpp"

#include <algorithm>

#include <fmt/core.h>

#include "sim/cluster/device_presets.hpp"
#include "sim/cluster/link_collectives.hpp"
#include "sim/experiment/curves.hpp"

namespace stagecraft {

using config::Value;

namespace {

/// What a cluster says of a device type otherwise than its preset: rates scale the figures of the file, and an
/// efficiency takes the place of all shares of products.
Accelerator with_changes(const DeviceType& type, Accelerator a) {
  const DeviceType preset = device_type_of(a);
  for (FormatFacts& f : a.formats) f.peak = f.peak * (type.peak / preset.peak);
  a.memory_rate = a.memory_rate * (type.memory_bandwidth / preset.memory_bandwidth);
  if (type.launch != preset.launch) a.launch = type.launch;
  if (type.efficiency == preset.efficiency) return a;
  for (FormatFacts& f : a.formats) f.share = type.efficiency, f.half_depth = 0, f.calibrated = false;
  a.multiprocessors = 0;
  return a;
}

NumberFormat format_of(const Value& run, const IdVector<DeviceTypeId, Accelerator>& accelerators) {
  const Value* precision = run.find("precision");
  if (!precision)
    return std::all_of(accelerators.begin(), accelerators.end(),
                       [](const Accelerator& a) { return a.has(NumberFormat::Bf16); })
               ? NumberFormat::Bf16
               : NumberFormat::Fp16;
  const NumberFormat format = *parse_number_format(precision->text);
  for (const Accelerator& a : accelerators)
    if (!a.has(format))
      throw InputError({{precision->where, "run.precision",
                         fmt::format("{} has no figures for products in {}", a.name, precision->text),
                         "a format of its file in topologies/devices: stagecraft list devices", "precision"}});
  return format;
}

}  // namespace

std::shared_ptr<const CostRules> read_cost_rules(const Value& tree, const std::shared_ptr<const Cluster>& cluster) {
  const Value* software = tree.find("software");
  const Value* collectives = tree.at("run").find("collectives");
  if (!software || software->text == "none") {
    if (collectives && collectives->text == "cost")
      throw InputError({{collectives->where, "run.collectives", "only a software stack says what collectives cost",
                         "write software: plain, or collectives: flows", "software"}});
    return rules_without_software(*cluster);
  }
  auto rules = std::make_shared<CostRules>();
  rules->software = software_stack(software->text);
  const Value* precision = tree.at("run").find("precision");
  const NumberFormat asked = precision ? *parse_number_format(precision->text) : NumberFormat::Bf16;
  for (const DeviceType& type : cluster->types) {
    std::optional<Accelerator> preset = find_device_preset(type.preset);
    rules->accelerators.push_back(preset && preset->has_kernels() ? with_changes(type, std::move(*preset))
                                                                  : accelerator_from_rates(type, asked, *cluster));
    rules->accelerators.back().curves = curves_of(tree.at("cluster"), type);
  }
  rules->format = format_of(tree.at("run"), rules->accelerators);
  rules->node = node_shape(*cluster);
  rules->links = std::make_shared<const LinkCollectives>(cluster);
  rules->flows = collectives && collectives->text == "flows";
  // A device that does one thing at a time has its exchanges inside of its ops, and no pair hides them.
  if (const Value* overlap = tree.at("run").find("overlap"); overlap && !config::as_bool(*overlap))
    rules->software.pair_overlap = 0;
  const Value* detail = tree.at("run").find("detail");
  rules->lists_rounds = detail && detail->text == "layers";
  return rules;
}

void add_software(Value& scenario, std::string name, std::string origin) {
  std::vector<config::Member>& members = scenario.members;
  const auto run = std::find_if(members.begin(), members.end(), [](const auto& m) { return m.key == "run"; });
  members.insert(std::next(run), {"software", scenario.where, Value::scalar(std::move(name), {}, std::move(origin))});
}

void settle_attention(Value& tree) {
  Value& model = *tree.find("model");
  if (model.at("builder").text != "transformer") return;
  Value* written = model.find("flash_attention");
  if (written && written->origin.empty()) return;
  const Value* software = tree.find("software");
  const bool is_priced = software && software->text != "none";
  if (written && !is_priced) return;
  const bool fused = is_priced && software_stack(software->text).fused_attention;
  Value value = Value::scalar(fused ? "true" : "false", model.where, is_priced ? "computed" : "default");
  if (written) {
    *written = std::move(value);
    return;
  }
  // In the order of the field table, so that the resolved text reads back as the same scenario.
  const auto tied =
      std::find_if(model.members.begin(), model.members.end(), [](const config::Member& m) { return m.key == "tied"; });
  model.members.insert(tied + 1, {"flash_attention", model.where, std::move(value)});
}

}  // namespace stagecraft
