#include "models/onnx/owners.hpp"

#include <algorithm>
#include <map>

#include "models/onnx/readable.hpp"

namespace stagecraft::onnx {
namespace {

/// The initializers behind the inputs of a step whose gradient is wanted, each once.
std::vector<int> weights_of(const Walk& walk, const Step& step) {
  std::vector<int> found, open;
  std::map<int, bool> seen;
  const auto visit = [&](const Step& from) {
    for (std::size_t i = 0; i < from.inputs.size(); ++i) {
      const int id = from.inputs[i];
      if (!walk.wants_gradient(from, i) || !walk.values[id].weights) continue;
      if (seen.emplace(id, true).second) open.push_back(id);
    }
  };
  visit(step);
  while (!open.empty()) {
    const int id = open.back();
    open.pop_back();
    const int made_by = walk.values[id].step;
    if (made_by < 0 || walk.steps[made_by].inputs.empty())
      found.push_back(id);
    else
      visit(walk.steps[made_by]);
  }
  return found;
}

}  // namespace

void give_weights(const Walk& walk, const std::vector<const Step*>& steps, Layer* layers) {
  std::map<int, std::vector<std::size_t>> users;
  for (std::size_t s = 0; s < steps.size(); ++s)
    for (const int id : weights_of(walk, *steps[s])) users[id].push_back(s);
  std::vector<int> shared;
  const auto numbers = [&](int id) { return walk.values[id].tensor.numbers(); };
  for (const auto& [id, readers] : users) {
    layers[readers.front()].parameters += numbers(id);
    if (readers.size() > 1) shared.push_back(id);
  }
  std::stable_sort(shared.begin(), shared.end(), [&](int a, int b) { return numbers(a) > numbers(b); });
  for (const int id : shared)
    for (const std::size_t s : users[id]) {
      // Only with the layer that owns it: a layer has one tie.
      const std::string word = readable(walk.values[id].name);
      std::string& owner = layers[users[id].front()].tie;
      if (owner.empty()) owner = word;
      if (owner == word && layers[s].tie.empty()) layers[s].tie = word;
    }
}

}  // namespace stagecraft::onnx
