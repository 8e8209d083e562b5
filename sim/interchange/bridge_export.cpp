// Writes a plan as a recipe of Megatron-Bridge with overrides: the arguments of Megatron-LM in which it differs from
// the nearest recipe of the same model.

#include <algorithm>

#include <fmt/core.h>

#include "sim/core/diagnostic.hpp"
#include "sim/core/text.hpp"
#include "sim/interchange/bridge.hpp"
#include "sim/interchange/bridge_keys.hpp"
#include "sim/interchange/bridge_recipe.hpp"

namespace stagecraft {
namespace {

/// "model.tensor_model_parallel_size=8" for the argument of a section, as it is set or taken away.
std::string override_of(const std::string& section, const std::string& option,
                        const std::optional<std::string>& value) {
  const std::string key = bridge_key_of(section, option);
  const bool is_inverted = bridge_key(key).is_inverted;
  if (find_megatron_option(option)->max_words == 0)
    return fmt::format("{}={}", key, value.has_value() != is_inverted ? "true" : "false");
  const bool is_degree = option.ends_with("-size") && option.find("virtual") == std::string::npos;
  if (!value) return key + (is_degree ? "=1" : "=null");
  const bool is_list = option == "recompute-modules" || option == "offload-modules";
  std::string words = *value;
  if (is_list) std::replace(words.begin(), words.end(), ' ', ',');
  return fmt::format("{}={}", key, is_list ? "[" + words + "]" : words);
}

std::string format_of(const ArgumentList& arguments) {
  for (const auto& [precision, bridge, options] : bridge_formats()) {
    const ArgumentList named(options);
    bool is_equal = true;
    for (const char* option : format_options()) is_equal = is_equal && named.find(option) == arguments.find(option);
    if (is_equal) return bridge;
  }
  return "";
}

/// The overrides that turn the arguments of a recipe into the arguments of a plan.
std::vector<std::string> overrides_from(const ArgumentList& recipe, const ArgumentList& plan) {
  std::vector<std::string> overrides;
  for (const BridgeNames& list : planned_options())
    for (const std::string& option : list.words()) {
      const std::optional<std::string> value = plan.find(option);
      if (recipe.find(option) == value) continue;
      const bool is_switched = option == "cpu-offloading-num-layers";  // Its number alone offloads nothing.
      if (is_switched) overrides.push_back(fmt::format("model.cpu_offloading={}", value.has_value()));
      if (value || !is_switched) overrides.push_back(override_of(std::string(list.section), option, value));
    }
  if (const std::string format = format_of(plan); format != format_of(recipe) && !format.empty())
    overrides.push_back("mixed_precision=" + format);
  return overrides;
}

/// Whether both have the layers of one model. A plan writes its vocabulary as it is padded.
bool has_shape_of(const ArgumentList& recipe, const ArgumentList& plan) {
  const bool has_experts = recipe.find("num-experts").has_value();
  for (const char* option : {"num-layers", "hidden-size", "num-attention-heads", "num-query-groups", "num-experts",
                             has_experts ? "moe-ffn-hidden-size" : "ffn-hidden-size"})
    if (recipe.find(option) != plan.find(option)) return false;
  const std::string of_recipe = recipe.find("vocab-size").value_or("0"),
                    of_plan = plan.find("vocab-size").value_or("0");
  const double words = std::stod(of_recipe), padded = std::stod(of_plan);
  return padded >= words && padded <= 1.1 * words;
}

}  // namespace

FrameworkConfiguration bridge_overrides(const PlannedExperiment& p) {
  FrameworkConfiguration written = megatron_arguments(p);
  const ArgumentList plan(join(split(written.text, '\n'), " "));
  const int devices = static_cast<int>(devices_of(p.plan).size());
  const Recipe* nearest = nullptr;
  std::vector<std::string> overrides;
  for (const Recipe& r : published_recipes()) {
    if (!is_of_bridge(r)) continue;
    const ArgumentList recipe(megatron_words(r));
    if (!has_shape_of(recipe, plan)) continue;
    std::vector<std::string> needed = overrides_from(recipe, plan);
    const int replicas = p.plan.stages.front().shape.degrees.replicas;
    const bool is_scaled =
        replicas != r.replicas() && recipe.find("global-batch-size") == plan.find("global-batch-size");
    if (is_scaled) needed.push_back(override_of("train", "global-batch-size", plan.find("global-batch-size")));
    const bool is_nearer = !nearest || needed.size() < overrides.size() ||
                           (needed.size() == overrides.size() && r.devices == devices && nearest->devices != devices);
    if (is_nearer) nearest = &r, overrides = std::move(needed);
  }
  if (!nearest)
    throw InputError(
        fmt::format("export bridge: no recipe of scenarios/recipes/recipes.csv trains '{}'", p.model().name),
        "export megatron, whose options are overrides of a recipe of your own");
  const int limit = most_on_a_node(devices_of(p.plan), p.cluster()), each = devices % limit == 0 ? limit : 1;
  std::string text = fmt::format(
      "# Megatron-Bridge 0.7: what follows scripts/training/train.sh, a recipe and what this plan overrides in it.\n"
      "--nodes {} --gpus-per-node {} --recipe {}\n",
      devices / each, each, bridge_name(*nearest));
  for (const std::string& one : overrides) text += one + "\n";
  erase_if(written.notes, [](const std::string& note) { return note.starts_with("routers "); });  // A recipe has one.
  return {std::move(text), std::move(written.notes)};
}

}  // namespace stagecraft
