// Splits the name of a profiled range, such as `layer_3 backward`, into layer and pass; kineto.cpp and nsight_trace.cpp
// find layers in profiles by it.

#include "sim/interchange/imports/layer_ranges.hpp"

namespace stagecraft {

std::optional<LayerRange> layer_of_range(std::string text) {
  LayerRange range;
  for (const char* word : {" backward", "_backward", ".backward", ":backward"})
    if (text.ends_with(word)) {
      text.resize(text.size() - std::string(word).size());
      range.backward = true;
    }
  const std::size_t last = text.find_last_not_of("0123456789");
  if (last == std::string::npos || last + 1 == text.size()) return {};
  const std::string number = text.substr(last + 1);
  std::string name = text.substr(0, last + 1);
  if (name.size() > 1 && std::string(" _.:#-").find(name.back()) != std::string::npos) name.pop_back();
  range.name = name + "_" + number;
  return range;
}

}  // namespace stagecraft
