#include "sim/experiment/software.hpp"

#include <fmt/format.h>

#include "sim/experiment/library.hpp"

namespace stagecraft {

using config::Value;

namespace {

NumberFormat format_of(const Value& run, const IdVector<DeviceTypeId, Accelerator>& accelerators) {
  const Value* precision = run.find("precision");
  if (!precision) return accelerators[DeviceTypeId{0}].wide_format();
  const NumberFormat format = *parse_number_format(precision->text);
  for (const Accelerator& a : accelerators)
    if (!a.has(format))
      throw InputError({{precision->where, "run.precision",
                         fmt::format("{} has no figures for products in {}", a.name, precision->text),
                         "a format of its file in topologies/devices: stagecraft list devices", "precision"}});
  return format;
}

}  // namespace

std::shared_ptr<const CostRules> read_cost_rules(const Value& tree, const Cluster& cluster) {
  const Value* software = tree.find("software");
  const Value* collectives = tree.at("run").find("collectives");
  if (!software || software->text == "none") {
    if (collectives && collectives->text == "cost")
      throw InputError({{collectives->where, "run.collectives", "only a software stack says what collectives cost",
                         "write software: plain, or collectives: flows", "software"}});
    return nullptr;
  }
  auto rules = std::make_shared<CostRules>();
  rules->software = software_stack(software->text);
  const Value* precision = tree.at("run").find("precision");
  const NumberFormat asked = precision ? *parse_number_format(precision->text) : NumberFormat::Bf16;
  for (const DeviceType& type : cluster.types) {
    const std::string file = type.preset.empty() ? "" : find_file(FileKind::Device, type.preset, "");
    rules->accelerators.push_back(file.empty() ? accelerator_from_rates(type, asked, cluster) : load_accelerator(file));
  }
  rules->format = format_of(tree.at("run"), rules->accelerators);
  rules->node = node_shape(cluster);
  return rules;
}

}  // namespace stagecraft
