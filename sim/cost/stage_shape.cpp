// The names of kinds of recomputation, and the shape of a part of the vocabulary.

#include "sim/cost/stage_shape.hpp"

#include <algorithm>
#include <span>
#include <utility>

#include "sim/core/text.hpp"

namespace stagecraft {
namespace {

using NamedRecomputation = std::pair<std::string_view, Recomputation>;

constexpr NamedRecomputation kWords[] = {{"none", Recomputation::None}, {"selective", Recomputation::Selective},
                                         {"full", Recomputation::Full}, {"layers", Recomputation::Layers},
                                         {"half", Recomputation::Half}, {"outputs", Recomputation::Outputs}};

constexpr NamedRecomputation kModules[] = {{"core_attn", Recomputation::Selective},
                                           {"layernorm", Recomputation::Norms},
                                           {"moe_act", Recomputation::ExpertActivations},
                                           {"mla_up_proj", Recomputation::UpProjections},
                                           {"mlp", Recomputation::DenseLayers},
                                           {"moe", Recomputation::Experts},
                                           {"shared_experts", Recomputation::SharedExperts}};

std::optional<Recomputation> find_named(std::span<const NamedRecomputation> list, std::string_view name) {
  const auto at = std::find_if(list.begin(), list.end(), [&](const auto& named) { return named.first == name; });
  return at == list.end() ? std::nullopt : std::optional(at->second);
}

}  // namespace

std::string to_text(Recomputation r) {
  for (const auto& [word, kind] : kWords)
    if (kind == r) return std::string(word);
  std::vector<std::string> modules;
  for (const auto& [module, kind] : kModules)
    if (recomputes(r, kind)) modules.emplace_back(module);
  return "[" + join(modules) + "]";
}

std::optional<Recomputation> parse_recomputation(std::string_view word) { return find_named(kWords, word); }

const std::vector<std::string>& recomputation_modules() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> list;
    for (const auto& [module, kind] : kModules) list.emplace_back(module);
    return list;
  }();
  return names;
}

std::optional<Recomputation> recomputation_module(std::string_view name) { return find_named(kModules, name); }

StageShape vocabulary_shape(const StageShape& stage) {
  StageShape shape = stage;
  shape.layers = std::exchange(shape.vocabulary, {});
  shape.degrees.tensor *= stage.vocabulary_ranks;
  shape.recomputation = Recomputation::None;
  return shape;
}

}  // namespace stagecraft
