// Finds where a pipeline may be cut: sets of layers that contain the inputs of all their layers.

#include "sim/planners/chain_partition/cuts.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <set>

#include "sim/core/diagnostic.hpp"
#include "sim/core/stop_point.hpp"
#include "sim/core/text.hpp"

namespace stagecraft::chain_partition {
namespace {

using Set = std::vector<std::uint64_t>;

bool holds(const Set& set, int layer) { return set[layer / 64] >> (layer % 64) & 1; }

void insert(Set& set, int layer) { set[layer / 64] |= std::uint64_t{1} << (layer % 64); }

int size_of(const Set& set) {
  int size = 0;
  for (const std::uint64_t word : set) size += std::popcount(word);
  return size;
}

/// Each layer with all that it needs.
std::vector<Set> needs(const Digraph& graph, std::size_t words) {
  std::vector<Set> sets(graph.size(), Set(words, 0));
  const auto order = topological_order(graph);
  STAGECRAFT_CHECK(order.has_value());
  for (const int layer : *order) {
    insert(sets[layer], layer);
    for (const int input : graph.previous[layer])
      for (std::size_t w = 0; w < words; ++w) sets[layer][w] |= sets[input][w];
  }
  return sets;
}

/// Every model of this many layers has at least one cut more, in front of each layer and after the last.
void refuse_too_many_layers(int layers, int max_cuts) {
  if (layers < max_cuts) return;
  throw Infeasible("size",
                   fmt::format("a model of {} can be cut in {} places or more; {} is the most",
                               pluralize(layers, "layer"), layers + 1, max_cuts),
                   "merge layers, or take the planner 'balanced' or 'spp'");
}

/// The order of the layers if there is only one, because each reads the one before it; else empty.
std::vector<int> chain_of(const Digraph& graph) {
  const auto order = topological_order(graph);
  STAGECRAFT_CHECK(order.has_value());
  for (std::size_t i = 1; i < order->size(); ++i) {
    const std::vector<int>& inputs = graph.previous[(*order)[i]];
    if (std::find(inputs.begin(), inputs.end(), (*order)[i - 1]) == inputs.end()) return {};
  }
  return *order;
}

/// Sets grown from nothing by one layer after the other with all that it needs, where `may_grow(set, layer)`.
template <class MayGrow>
Cuts grown(const Digraph& graph, int max_cuts, MayGrow&& may_grow) {
  refuse_too_many_layers(graph.size(), max_cuts);
  Cuts cuts(graph.size());
  const std::vector<Set> needed = needs(graph, cuts.words());
  std::set<Set> visited{Set(cuts.words(), 0)};
  std::vector<Set> sets{Set(cuts.words(), 0)};
  for (std::size_t next = 0; next < sets.size(); ++next) {
    for (int layer = 0; layer < graph.size(); ++layer) {
      if (holds(sets[next], layer) || !may_grow(sets[next], layer)) continue;
      stop_point();
      Set set = sets[next];
      for (std::size_t w = 0; w < set.size(); ++w) set[w] |= needed[layer][w];
      if (!visited.insert(set).second) continue;
      sets.push_back(std::move(set));
      if (static_cast<int>(sets.size()) > max_cuts)
        throw Infeasible(
            "size", fmt::format("the branches of the model can be cut in more than {}", pluralize(max_cuts, "way")),
            "cut along the order of the model with `cuts: listed`, or merge layers");
    }
  }
  std::stable_sort(sets.begin(), sets.end(), [](const Set& a, const Set& b) { return size_of(a) < size_of(b); });
  for (const Set& set : sets) cuts.add(set);
  return cuts;
}

}  // namespace

bool Cuts::has(int cut, int layer) const { return bits_[at(cut) + (layer / 64)] >> (layer % 64) & 1; }

int Cuts::size_of(int cut) const {
  int size = 0;
  for (std::size_t w = 0; w < words_; ++w) size += std::popcount(bits_[at(cut) + w]);
  return size;
}

bool Cuts::contains(int larger, int smaller) const {
  for (std::size_t w = 0; w < words_; ++w)
    if (bits_[at(smaller) + w] & ~bits_[at(larger) + w]) return false;
  return true;
}

std::vector<int> Cuts::layers_between(int smaller, int larger) const {
  std::vector<int> between;
  for (int layer = 0; layer < layers_; ++layer)
    if (has(larger, layer) && !has(smaller, layer)) between.push_back(layer);
  return between;
}

void Cuts::add(const Set& set) {
  STAGECRAFT_CHECK(set.size() == words_);
  bits_.insert(bits_.end(), set.begin(), set.end());
  ++count_;
}

std::vector<std::uint64_t> Cuts::set_of(int cut) const {
  const auto first = bits_.begin() + static_cast<std::ptrdiff_t>(at(cut));
  return {first, first + static_cast<std::ptrdiff_t>(words_)};
}

Cuts all_cuts(const Digraph& graph, int max_cuts) {
  const std::vector<int> chain = chain_of(graph);
  if (chain.empty()) return grown(graph, max_cuts, [](const Set&, int) { return true; });
  refuse_too_many_layers(graph.size(), max_cuts);
  Cuts cuts(graph.size());
  Set set(cuts.words(), 0);
  cuts.add(set);
  for (const int layer : chain) {
    insert(set, layer);
    cuts.add(set);
  }
  return cuts;
}

Cuts cuts_after_first(const Digraph& graph, int max_cuts) {
  Cuts cuts = grown(graph, max_cuts, [&](const Set& set, int layer) {
    const std::vector<int>& inputs = graph.previous[layer];
    return std::any_of(inputs.begin(), inputs.end(), [&](int input) { return holds(set, input); }) ||
           (layer == 0 && size_of(set) == 0);
  });
  if (static_cast<int>(cuts.layers_between(0, cuts.count() - 1).size()) == graph.size()) return cuts;
  throw Infeasible("cuts", "some layers are not reached from the first one, where the search starts",
                   "search all cuts with `cuts: all`");
}

Cuts listed_cuts(int layers) {
  Cuts cuts(layers);
  Set set(cuts.words(), 0);
  cuts.add(set);
  for (int layer = 0; layer < layers; ++layer) {
    insert(set, layer);
    cuts.add(set);
  }
  return cuts;
}

Cuts evenly_spaced(const Cuts& nested, const std::vector<double>& weights, int count) {
  std::vector<double> weight_of;  // The layers of each cut.
  double sum = 0;
  for (int cut = 0; cut < nested.count(); ++cut) {
    if (cut > 0)
      for (const int layer : nested.layers_between(cut - 1, cut)) sum += weights[layer];
    weight_of.push_back(sum);
  }
  Cuts spaced(nested.layers());
  spaced.add(nested.set_of(0));
  for (int cut = 1, next = 1; cut < nested.count(); ++cut) {
    if (cut + 1 < nested.count() && weight_of[cut] < sum * next / count) continue;
    spaced.add(nested.set_of(cut));
    while (weight_of[cut] >= sum * next / count && next < count) ++next;
  }
  return spaced;
}

}  // namespace stagecraft::chain_partition
