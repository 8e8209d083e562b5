// Turns `software`, `run.precision` and `run.collectives` of a scenario into the CostRules of its experiment, and lets
// the stack decide whether attention of a transformer is fused.

#include "sim/experiment/software.hpp"

#include <algorithm>

#include <fmt/core.h>

#include "sim/cluster/device_presets.hpp"
#include "sim/cluster/link_collectives.hpp"
#include "sim/config/override.hpp"
#include "sim/core/text.hpp"
#include "sim/cost/device_figures.hpp"
#include "sim/experiment/curves.hpp"

namespace stagecraft {

using config::Problems;
using config::Value;

namespace {

/// What a cluster says of a device type otherwise than its preset: rates scale the figures of the file, and an
/// efficiency takes the place of all shares of products.
Accelerator with_changes(const DeviceType& type, Accelerator a) {
  const DeviceType preset = a.type;
  for (FormatFacts& f : a.formats) f.peak = f.peak * (type.peak / preset.peak);
  a.type.memory_bandwidth = preset.memory_bandwidth * (type.memory_bandwidth / preset.memory_bandwidth);
  if (type.launch != preset.launch) a.launch = type.launch, a.has_launch = true;
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

constexpr std::string_view kStandsFor = "formerly ";  ///< Origin of the base of a name for another stack.

/// A value that the scenario has, and not one that an earlier reading completed.
const Value* written_in(const Value* map, std::string_view key) {
  const Value* value = map ? map->find(key) : nullptr;
  return value && value->origin.empty() ? value : nullptr;
}

/// The feature without which frameworks do not have this one: a weight gradient is delayed into an exchange that
/// overlaps, and weights are gathered into the forward where gradients are summed next to the backward.
std::string_view needed_by(Overlap feature) {
  if (feature == Overlap::WeightGradients) return "experts";
  return feature == Overlap::Weights ? "gradients" : "";
}

/// Every switch, in the order of the field table: as it is written, or as the stack has it.
Value all_switches(const Value* given, const SoftwareStack& stack, const Where& where, Problems& problems) {
  Value map;
  map.kind = Value::Kind::Map;
  map.where = given ? given->where : where;
  const OverlapSwitches& usual = stack.base.empty() ? stack.overlap : software_stack(stack.base).overlap;
  for (const Overlap f : overlap_features()) {
    const std::string name(name_of(f)), path = "software.overlap." + name;
    const std::string_view needed = needed_by(f);
    const Value* needed_value = map.find(needed);
    const bool may_be = !needed_value || config::as_bool(*needed_value);
    const Value* written = written_in(given, name);
    const bool on = written ? config::as_bool(*written) : stack.overlap[f] && may_be;
    if (written && on && !stack.can_overlap(f))
      problems.add(written->where, path, fmt::format("how much of it '{}' hides is not known", stack.name),
                   "leave it out, or take another stack: stagecraft explain " + path, "overlap");
    if (const std::string_view since = stack.overlap_since[f];
        written && on && !stack.release.empty() && !since.empty() && is_before(stack.release, since))
      problems.add(written->where, path, fmt::format("{} {} has no option for it", stack.name, stack.release),
                   fmt::format("leave it out, or write release: {} or a later one", since), "release");
    if (written && on && !may_be)
      problems.add(written->where, path, fmt::format("it needs {}: true", needed),
                   fmt::format("{}: true, or {}: false", needed, name), "overlap");
    // A name of a stack with other switches is not there when the text is read again.
    const bool stays = written || on != usual[f];
    Value value = Value::scalar(on ? "true" : "false", written ? written->where : where, stays ? "" : "default");
    map.members.push_back({name, value.where, std::move(value)});
  }
  return map;
}

/// The stack in the release that the scenario names.
SoftwareStack in_release(const Value& software, SoftwareStack stack, Problems& problems) {
  const Value* release = software.find("release");
  if (!release) return stack;
  try {
    return at_release(std::move(stack), release->text);
  } catch (const InputError& error) {
    const Diagnostic& d = error.problems().front();
    problems.add(release->where, "software.release", d.message, d.help, "release");
    return software_stack(software.at("base").text);
  }
}

/// Facts of the stack that a scenario replaces, next to the switches of overlap.
constexpr const char* kReplacedFacts[] = {"release",      "attention",    "launch",     "graphs",
                                          "fsdp_overlap", "norm_traffic", "fused_loss", "gathered_bytes"};

void replace_facts(const Value& software, SoftwareStack& stack) {
  if (const Value* release = software.find("release")) stack = at_release(std::move(stack), release->text);
  if (const Value* word = software.find("attention")) set_attention(stack, word->text);
  if (const Value* launch = software.find("launch")) stack.launch.fill(config::as_seconds(*launch));
  if (const Value* graphs = software.find("graphs")) stack.graphs = config::as_bool(*graphs);
  if (const Value* share = software.find("fsdp_overlap")) stack.pass_overlap = config::as_real(*share);
  if (const Value* traffic = software.find("norm_traffic")) stack.norm_traffic = config::as_real(*traffic);
  if (const Value* fused = software.find("fused_loss")) set_fused_loss(stack, config::as_bool(*fused));
  if (const Value* bytes = software.find("gathered_bytes")) stack.gathered_bytes = config::as_real(*bytes);
}

}  // namespace

SoftwareStack software_of(const Value& tree) {
  const Value* software = tree.find("software");
  if (!software || (software->is_scalar() && software->text == "none")) return no_software_stack();
  if (software->is_scalar()) return software_stack(software->text);
  SoftwareStack stack = software_stack(software->at("base").text);
  replace_facts(*software, stack);
  const Value* overlap = software->find("overlap");
  for (const Overlap f : overlap_features())
    if (const Value* on = overlap ? overlap->find(name_of(f)) : nullptr) set_overlap(stack, f, config::as_bool(*on));
  if (const Value* bytes = software->find("gradient_bytes"); bytes && config::as_real(*bytes) != stack.gradient_bytes)
    set_gradient_bytes(stack, config::as_real(*bytes));
  return stack;
}

void settle_software(Value& tree, Problems& problems) {
  if (!tree.has("software")) add_software(tree, "plain", "default");
  Value& software = *tree.find("software");
  Value base = software.is_scalar() ? software : software.at("base");
  if (base.text == "none") {
    for (const config::Member& m : software.members)
      if (m.key != "base")
        problems.add(m.where, "software." + m.key, "without a framework there is nothing that it changes",
                     "base: plain, or another name of `stagecraft list software`", "software");
    software = std::move(base);
    return;
  }
  const SoftwareStack stack = in_release(software, software_stack(base.text), problems);
  Value settled;
  settled.kind = Value::Kind::Map;
  settled.where = software.where;
  const Value* bytes = written_in(&software, "gradient_bytes");
  Value overlap = all_switches(software.find("overlap"), stack, base.where, problems);
  const Value gradient_bytes =
      bytes ? *bytes : Value::scalar(fmt::format("{:g}", stack.gradient_bytes), base.where, "default");
  if (!stack.base.empty()) base.origin = std::string(kStandsFor) + base.text, base.text = stack.base;
  settled.members = {{"base", base.where, base}};
  for (const char* fact : kReplacedFacts)
    if (const Value* value = software.find(fact)) settled.members.push_back({fact, value->where, *value});
  settled.members.push_back({"overlap", overlap.where, std::move(overlap)});
  settled.members.push_back({"gradient_bytes", gradient_bytes.where, gradient_bytes});
  software = std::move(settled);
}

std::vector<std::string> replaced_facts(const Value& tree) {
  std::vector<std::string> facts;
  const Value& software = tree.at("software");
  if (software.is_scalar()) return facts;
  for (const char* fact : kReplacedFacts)
    if (const Value* value = written_in(&software, fact); value && fact != std::string_view("release"))
      facts.push_back(fmt::format("software.{}: {}", fact, config::to_set_text(*value)));
  return facts;
}

std::vector<std::string> software_notes(const Value& tree) {
  std::vector<std::string> notes;
  const SoftwareStack now = software_of(tree);
  if (!now.prices) return notes;
  const std::string& origin = tree.at("software").at("base").origin;
  if (origin.starts_with(kStandsFor)) {
    const SoftwareStack& named = software_stack(origin.substr(kStandsFor.size()));
    std::string on;
    for (const Overlap f : overlap_features())
      if (named.overlap[f] && !software_stack(named.base).overlap[f])
        on += fmt::format("{}{}: true", on.empty() ? "" : ", ", name_of(f));
    notes.push_back(on.empty()
                        ? fmt::format("software: {} is {}", named.name, named.base)
                        : fmt::format("software: {} is {{base: {}, overlap: {{{}}}}}", named.name, named.base, on));
  }
  if (now.overlap[Overlap::WeightGradients])
    notes.emplace_back("software.overlap.weight_gradients changes neither time nor memory here");
  return notes;
}

std::shared_ptr<const CostRules> read_cost_rules(const Value& tree, const std::shared_ptr<const Cluster>& cluster) {
  SoftwareStack software = software_of(tree);
  const Value* collectives = tree.at("run").find("collectives");
  if (!software.prices) {
    if (collectives && collectives->text == "cost")
      throw InputError({{collectives->where, "run.collectives", "only a software stack says what collectives cost",
                         "write software: plain, or collectives: flows", "software"}});
    return rules_without_software(*cluster);
  }
  auto rules = std::make_shared<CostRules>();
  rules->software = std::move(software);
  const Value* precision = tree.at("run").find("precision");
  const NumberFormat asked = precision ? *parse_number_format(precision->text) : NumberFormat::Bf16;
  for (const DeviceType& type : cluster->types) {
    std::optional<Accelerator> preset = find_device_preset(type.preset);
    rules->accelerators.push_back(preset && preset->has_kernels()
                                      ? with_changes(type, figures_for(std::move(*preset), rules->software))
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
  const SoftwareStack software = software_of(tree);
  if (written && !software.prices) return;
  const bool fused = software.prices && software.fused_attention;
  Value value = Value::scalar(fused ? "true" : "false", model.where, software.prices ? "computed" : "default");
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
