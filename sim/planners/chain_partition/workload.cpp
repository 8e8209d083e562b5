// Seconds, bytes and parameters of the layers in front of each cut, and variants of layers that fit in memory.

#include "sim/planners/chain_partition/workload.hpp"

#include <algorithm>
#include <set>

namespace stagecraft::chain_partition {
namespace {

std::vector<int> read_after(const Cuts& cuts, int cut, const Digraph& graph) {
  std::vector<int> layers;
  for (int layer = 0; layer < cuts.layers(); ++layer) {
    const std::vector<int>& users = graph.next[layer];
    if (cuts.has(cut, layer) && std::any_of(users.begin(), users.end(), [&](int user) { return !cuts.has(cut, user); }))
      layers.push_back(layer);
  }
  return layers;
}

/// For each layer, its ancestors that have another reader besides it and its ancestors.
std::vector<std::vector<int>> sent_with_each(const Digraph& graph) {
  std::vector<std::vector<int>> sent_with(graph.size());
  for (int layer = 0; layer < graph.size(); ++layer) {
    std::set<int> needed{layer};
    std::vector<int> open{layer};
    while (!open.empty()) {
      const int one = open.back();
      open.pop_back();
      for (const int input : graph.previous[one])
        if (needed.insert(input).second) open.push_back(input);
    }
    for (const int one : needed) {
      const std::vector<int>& users = graph.next[one];
      const auto elsewhere = [&](int user) { return needed.count(user) == 0; };
      if (one != layer && std::any_of(users.begin(), users.end(), elsewhere)) sent_with[layer].push_back(one);
    }
  }
  return sent_with;
}

std::vector<int> frontier(const Cuts& cuts, int cut, const Digraph& graph,
                          const std::vector<std::vector<int>>& sent_with) {
  std::set<int> layers;
  for (int layer = 0; layer < cuts.layers(); ++layer) {
    const std::vector<int>& users = graph.next[layer];
    if (!cuts.has(cut, layer) || std::any_of(users.begin(), users.end(), [&](int user) { return cuts.has(cut, user); }))
      continue;
    layers.insert(layer);
    layers.insert(sent_with[layer].begin(), sent_with[layer].end());
  }
  return {layers.begin(), layers.end()};
}

}  // namespace

std::vector<LayerAmounts> amounts_of(const CostTable& costs, DeviceTypeId device_type, const Load& load) {
  const ModelGraph& model = costs.model();
  std::vector<LayerAmounts> amounts;
  for (const LayerId l : model.layers.ids()) {
    const LayerCost cost = costs.at(l, device_type, load);
    amounts.push_back({(cost.forward + cost.backward()).value,
                       (output_of_sample(model.layers[l], load) * load.samples).value,
                       model.layers[l].parameters * model.precision.weight});
  }
  return amounts;
}

Digraph layer_graph(const ModelGraph& model) {
  Digraph graph(static_cast<int>(model.layers.size()));
  for (const LayerId l : model.layers.ids())
    for (const LayerId input : model.layers[l].inputs) graph.add(input.value, l.value);
  return graph;
}

Workload sum_up(const std::vector<LayerAmounts>& layers, const Digraph& graph, Cuts cuts, Crossing crossing) {
  Workload work{std::move(cuts), {}, {}, {}, {}};
  const auto sent_with = crossing == Crossing::Frontier ? sent_with_each(graph) : std::vector<std::vector<int>>{};
  for (int cut = 0; cut < work.cuts.count(); ++cut) {
    LayerAmounts sum;
    for (int layer = 0; layer < work.cuts.layers(); ++layer) {
      if (!work.cuts.has(cut, layer)) continue;
      const LayerAmounts& one = layers[layer];
      sum.seconds += one.seconds, sum.output += one.output, sum.parameters += one.parameters;
    }
    work.seconds.push_back(sum.seconds);
    work.outputs.push_back(sum.output);
    work.parameters.push_back(sum.parameters);
    double sent = 0;
    for (const int layer :
         crossing == Crossing::Read ? read_after(work.cuts, cut, graph) : frontier(work.cuts, cut, graph, sent_with))
      sent += layers[layer].output;
    work.crossing.push_back(sent);
  }
  return work;
}

double memory_of(const LayerVariants& ways, const std::vector<int>& chosen, int in_flight) {
  MemoryUnits stage;
  for (std::size_t l = 0; l < ways.size(); ++l) stage += ways[l][chosen[l]].memory;
  return stage_memory(stage, in_flight).total().value;
}

double seconds_of(const LayerVariants& ways, const std::vector<int>& chosen) {
  double total = 0;
  for (std::size_t l = 0; l < ways.size(); ++l) total += ways[l][chosen[l]].seconds;
  return total;
}

std::vector<int> fastest_of(const LayerVariants& ways) {
  std::vector<int> chosen;
  for (const std::vector<LayerVariant>& layer : ways)
    chosen.push_back(static_cast<int>(
        std::min_element(layer.begin(), layer.end(), [](auto& a, auto& b) { return a.seconds < b.seconds; }) -
        layer.begin()));
  return chosen;
}

std::optional<std::vector<int>> fit_layers(const LayerVariants& ways, int in_flight, double memory) {
  std::vector<int> chosen = fastest_of(ways);
  double excess = memory_of(ways, chosen, in_flight) - memory;
  if (excess <= 0) return chosen;
  struct Change {
    double price;
    std::size_t layer;
    int variant;
  };
  const auto bytes = [&](std::size_t l, int v) { return stage_memory(ways[l][v].memory, in_flight).total().value; };
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

}  // namespace stagecraft::chain_partition
