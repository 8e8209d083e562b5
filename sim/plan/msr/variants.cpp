#include "sim/plan/msr/variants.hpp"

#include <algorithm>

namespace stagecraft::msr {
namespace {}  // namespace

double memory_of(const Ways& ways, const std::vector<int>& chosen, int in_flight) {
  double total = 0, largest = 0;
  for (std::size_t l = 0; l < ways.size(); ++l) {
    const Way& way = ways[l][chosen[l]];
    total += way.in_flight * in_flight + way.once;
    largest = std::max(largest, way.in_turn);
  }
  return total + largest;
}

double seconds_of(const Ways& ways, const std::vector<int>& chosen) {
  double total = 0;
  for (std::size_t l = 0; l < ways.size(); ++l) total += ways[l][chosen[l]].seconds;
  return total;
}

std::vector<int> fastest_of(const Ways& ways) {
  std::vector<int> chosen;
  for (const std::vector<Way>& layer : ways)
    chosen.push_back(static_cast<int>(
        std::min_element(layer.begin(), layer.end(), [](auto& a, auto& b) { return a.seconds < b.seconds; }) -
        layer.begin()));
  return chosen;
}

std::optional<std::vector<int>> fit_layers(const Ways& ways, int in_flight, double memory) {
  std::vector<int> chosen = fastest_of(ways);
  double excess = memory_of(ways, chosen, in_flight) - memory;
  if (excess <= 0) return chosen;
  struct Change {
    double price;
    std::size_t layer;
    int variant;
  };
  const auto bytes = [&](std::size_t l, int v) { return ways[l][v].in_flight * in_flight + ways[l][v].once; };
  std::vector<Change> changes;
  for (std::size_t l = 0; l < ways.size(); ++l)
    for (int v = 0; v < static_cast<int>(ways[l].size()); ++v)
      if (const double saved = bytes(l, chosen[l]) - bytes(l, v); saved > 0)
        changes.push_back({(ways[l][v].seconds - ways[l][chosen[l]].seconds) / saved, l, v});
  std::stable_sort(changes.begin(), changes.end(), [](auto& a, auto& b) { return a.price < b.price; });
  for (const Change& change : changes) {
    const double saved = bytes(change.layer, chosen[change.layer]) - bytes(change.layer, change.variant);
    if (saved <= 0) continue;
    chosen[change.layer] = change.variant;
    if ((excess -= saved) <= 0) return chosen;
  }
  return std::nullopt;
}

std::optional<std::vector<int>> fit_stage(const Ways& ways, int in_flight, double memory) {
  std::optional<std::vector<int>> best;
  std::size_t variants = ways.front().size();
  for (const std::vector<Way>& layer : ways) variants = std::min(variants, layer.size());
  for (std::size_t v = 0; v < variants; ++v) {
    std::vector<int> chosen(ways.size(), static_cast<int>(v));
    if (memory_of(ways, chosen, in_flight) > memory) continue;
    if (!best || seconds_of(ways, chosen) < seconds_of(ways, *best)) best = std::move(chosen);
  }
  return best;
}

}  // namespace stagecraft::msr
