#include "models/layer_names.hpp"

#include <fmt/format.h>

#include "sim/core/text.hpp"

namespace stagecraft {

void LayerNames::add(const std::string& name, LayerId id) {
  known_.emplace(name, id);
  names_.push_back(name);
  last_ = {id};
}

std::vector<LayerId> LayerNames::inputs_of(const config::Value& layer, const std::string& path,
                                           config::Problems& problems) const {
  const config::Value* list = layer.find("inputs");
  if (!list) return last_;
  std::vector<LayerId> layers;
  for (std::size_t i = 0; i < list->items.size(); ++i) {
    const config::Value& word = list->items[i];
    const auto found = known_.find(word.text);
    if (found != known_.end())
      layers.push_back(found->second);
    else
      problems.add(word.where, fmt::format("{}.inputs[{}]", path, i),
                   fmt::format("no layer in front of this one is called '{}'", word.text), suggest(word.text, names_),
                   "unknown-layer");
  }
  return layers;
}

}  // namespace stagecraft
