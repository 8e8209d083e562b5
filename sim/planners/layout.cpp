// The planner `layout`: stages as Megatron-LM writes them (--pipeline-model-parallel-layout).

#include <fmt/core.h>

#include "sim/core/text.hpp"
#include "sim/plan/layout_letters.hpp"
#include "sim/planners/shared/chain_stages.hpp"

namespace stagecraft::planners {
namespace {

const config::MapSpec kLayoutFields = chain_fields(
    "Stages as a layout of Megatron-LM lists them.",
    config::text("layout").doc("Letters of each stage, such as Et*3|(tt|)*29,m|L: E embedding, t layer, m module for "
                               "the token after next, L scores and loss, | between stages, *N repeats."));

PlannerOptions read_layout_options(const config::Value& checked, const Cluster&) {
  const config::Value* layout = checked.find("layout");
  return std::make_shared<std::string>(layout ? layout->text : "");
}

/// The layers of the model by the letter that stands for them, in their order.
struct Parts {
  std::vector<std::vector<LayerId>> embedding, layers, modules, loss;

  std::vector<std::vector<LayerId>>& list(char letter) {
    return letter == 'E' ? embedding : letter == 't' ? layers : letter == 'm' ? modules : loss;
  }
};

Parts parts_of(const ModelGraph& model) {
  Parts parts;
  std::string module;
  for (const LayerId id : model.layers.ids()) {
    const Layer& layer = model.layers[id];
    const std::string prefix = layer.name.substr(0, layer.name.find('.') + 1);  // "mtp0."
    if (!prefix.empty()) {
      if (prefix != module) parts.modules.emplace_back();
      module = prefix;
      parts.modules.back().push_back(id);
    } else if (layer.type == "transformer_layer" || layer.type == "experts_layer") {
      parts.layers.push_back({id});
    } else {
      auto& ends = parts.layers.empty() ? parts.embedding : parts.loss;
      if (ends.empty()) ends.emplace_back();
      ends.back().push_back(id);
    }
  }
  return parts;
}

Planned plan_layout(const PlannerInput& input) {
  const std::string& text = input.options.options<std::string>();
  const std::vector<std::string> stages = stages_of_layout(text, [&](std::size_t at, const std::string& why) {
    throw InputError(
        {{input.options.where("layout"), "plan.layout", fmt::format("{} at character {} of '{}'", why, at + 1, text),
          "letters E, t, m and L, | between stages, (...) and *N", "layout"}});
  });
  Parts parts = parts_of(input.model);
  const auto refuse = [&](const std::string& why, const std::string& help) {
    throw InputError({{input.options.where("layout"), "plan.layout", why, help, "layout"}});
  };
  const std::pair<char, const char*> kLetters[] = {
      {'E', "embedding"}, {'t', "transformer layer"}, {'m', "next-token module"}, {'L', "loss"}};
  for (const auto& [letter, what] : kLetters) {
    std::ptrdiff_t written = 0;
    for (const std::string& stage : stages) written += std::count(stage.begin(), stage.end(), letter);
    const std::ptrdiff_t there = std::ssize(parts.list(letter));
    if (written != there)
      refuse(fmt::format("the layout has {} '{}', and the model has {}", written, letter, pluralize(there, what)),
             fmt::format("write {} of them", there));
  }
  ChainStages chain = place_chain(input, static_cast<int>(stages.size()));
  std::map<char, std::size_t> next;
  for (std::size_t s = 0; s < stages.size(); ++s) {
    std::vector<LayerId>& layers = chain.plan.stages[StageId{s}].shape.layers;
    for (const char letter : stages[s])
      for (const LayerId id : parts.list(letter)[next[letter]++]) layers.push_back(id);
    if (layers.empty()) refuse(fmt::format("stage {} has no layers", s), "put a letter between the bars");
  }
  Plan plan = finish_chain(std::move(chain), input);
  return {{}, std::move(plan)};
}

}  // namespace

extern const PlannerDef layout{
    .name = "layout",
    .summary = "Stages as a layout string of Megatron-LM lists them.",
    .source = "NVIDIA/Megatron-LM, --pipeline-model-parallel-layout",
    .fields = &kLayoutFields,
    .plan = plan_layout,
    .read = read_layout_options,
};

}  // namespace stagecraft::planners
