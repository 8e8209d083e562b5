// The search of the planner `graph-exact` over all convex partitions of a graph of layers.

#include "sim/planners/graph/exact.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <bitset>
#include <numeric>
#include <unordered_map>

#include "sim/core/diagnostic.hpp"
#include "sim/core/numbers.hpp"
#include "sim/core/stop_point.hpp"
#include "sim/core/text.hpp"
#include "sim/planners/graph/coarsen.hpp"

namespace stagecraft::graph {
namespace {

constexpr double kSlack = 1 + 1e-12;  // A sum of equal numbers in another order does not count as worse.

using LayerSet = std::bitset<kMostLayers>;

/// The first layer of a set from `layer` on; its size() without one. Only libstdc++ searches a word at a time.
std::size_t next_layer(const LayerSet& set, std::size_t layer) {
#ifdef __GLIBCXX__
  return layer == 0 ? set._Find_first() : set._Find_next(layer - 1);
#else
  while (layer < set.size() && !set[layer]) ++layer;
  return layer;
#endif
}

/// A layer that is not placed yet although a reader of it is, with the depth and path of the pipeline after it.
struct ReadyLayer {
  int layer = 0, depth = 0;
  double path = 0;
};

/// A partial partition of one set of layers.
struct Label {
  int used = 0, depth = 0;  ///< Mix of devices in use, and the number of stages of a sequence.
  double slowest = 0, path = 0;
  std::vector<ReadyLayer> next;     ///< Sorted by layer.
  int parent = -1;                  ///< The label without the stage that was placed last.
  LayerSet stage;                   ///< Layers of the stage that was placed last, in the numbering of the parent.
  ReplicaChoice option = {};        ///< Devices of the stage that was placed last.
  std::vector<std::uint8_t> moved;  ///< The parent's number of each exchangeable chain; empty: all keep their numbers.
  double bound = 0;                 ///< Lower bound on every complete partition that continues this label.
};

bool no_worse(const ReplicaMixes& mixes, const Label& a, const Label& b) {
  if (!mixes.within(a.used, b.used) || a.depth > b.depth || a.slowest > b.slowest || a.path > b.path) return false;
  for (std::size_t i = 0; i < a.next.size(); ++i)
    if (a.next[i].depth > b.next[i].depth || a.next[i].path > b.next[i].path) return false;
  return true;
}

class ExactPartitionSearch {
 public:
  ExactPartitionSearch(const GraphProblem& p, const ExactOptions& options)
      : p_(p), mixes_(p), options_(options), incumbent_(options.incumbent) {
    if (p.size() > kMostLayers)
      throw Infeasible("size", fmt::format("{} layers; the exact search takes {} at most", p.size(), kMostLayers),
                       "fuse layers with `blocks`, or take a coarser model");
    steady_ = options.bottleneck ? 1 : p.micro_batches - 1;
    fill_ = options.bottleneck ? 0 : 1;
    if (options.exchange_twins) twins_ = twin_chains(p);
    prepare_bounds();
  }

  std::optional<Partition> run() {
    by_size_.resize(p_.size() + 1);
    Label none;
    for (int layer = 0; layer < p_.size() && !options_.sequential; ++layer)
      if (p_.layers.next[layer].empty()) none.next.push_back({layer, 0, 0});
    keep(LayerSet{}, none);
    for (std::size_t size = 0; size + 1 < by_size_.size(); ++size)
      for (const int set : by_size_[size]) extend(set);
    if (by_size_.back().empty()) return {};
    const std::vector<int>& ends = labels_of_[by_size_.back().front()];
    const int best = *std::min_element(ends.begin(), ends.end(), [&](int a, int b) { return value(a) < value(b); });
    return Partition{parts_of(best), value(best), states_};
  }

 private:
  double value(double slowest, double path) const { return steady_ * slowest + fill_ * path; }
  double value(int label) const { return value(labels_[label].slowest, labels_[label].path); }

  /// Least seconds of each layer, least device seconds, and the longest path of the former from any source.
  void prepare_bounds() {
    for (int layer = 0; layer < p_.size(); ++layer) {
      const Sums& sums = p_.amounts[layer];
      double fastest = kInfinity, before = 0;
      for (int c = 0; c < p_.choices(); ++c) fastest = std::min(fastest, sums.seconds[c]);
      inputs_of_.emplace_back();
      for (const int input : p_.layers.previous[layer])
        inputs_of_.back().set(input), before = std::max(before, from_source_[input]);
      least_.push_back(fastest);
      work_.push_back(mixes_.least_work(p_, sums));
      from_source_.push_back(before + fastest);
    }
    total_work_ = std::accumulate(work_.begin(), work_.end(), 0.0);
    total_least_ = std::accumulate(least_.begin(), least_.end(), 0.0);
    critical_ = options_.sequential ? total_least_ : *std::max_element(from_source_.begin(), from_source_.end());
  }

  /// No stage of a plan that beats the incumbent takes longer.
  double longest_stage() const { return steady_ > 0 ? (incumbent_ - fill_ * critical_) / steady_ * kSlack : kInfinity; }

  /// Amounts of the layers outside a set.
  struct RemainingAmounts {
    double work = 0, min_seconds = 0;
  };

  void extend(int set) {
    set_ = sets_[set];
    live_.clear();
    for (const int label : labels_of_[set])
      if (promising(labels_[label])) live_.push_back(label);
    if (live_.empty()) return;
    remaining_ = {total_work_, total_least_};
    for (int layer = 0; layer < p_.size(); ++layer)
      if (set_.test(layer)) remaining_.work -= work_[layer], remaining_.min_seconds -= least_[layer];
    grow(LayerSet{}, p_.size(), Sums{});
  }

  /// Adds layers to a stage from the end of the model, each once, so that every stage is made once.
  void grow(const LayerSet& stage, int above, const Sums& sums) {
    for (int layer = above - 1; layer >= 0; --layer) {
      if (set_.test(layer) || !readers_in(layer, set_ | stage)) continue;
      LayerSet larger = stage;
      larger.set(layer);
      Sums more = sums;
      add(more, p_.amounts[layer], p_.choices());
      count();
      if (!can_be_a_stage(more)) continue;
      grow(larger, layer, more);
      place(larger, more);
    }
  }

  bool readers_in(int layer, const LayerSet& layers) const {
    for (const int reader : p_.layers.next[layer])
      if (!layers.test(reader)) return false;
    return true;
  }

  /// More layers take more of both, so what fails here fails with more of them.
  bool can_be_a_stage(const Sums& sums) const {
    for (int c = 0; c < p_.choices(); ++c)
      if (times_of(p_, sums, c).busy <= longest_stage() && fits(p_, memory_of(p_, sums, c, 1), c)) return true;
    return false;
  }

  void place(const LayerSet& stage, Sums sums) {
    stage_ = stage;
    inputs_.reset();
    double work = 0, min_seconds = 0;
    for (auto layer = next_layer(stage, 0); layer < stage.size(); layer = next_layer(stage, layer + 1)) {
      inputs_ |= inputs_of_[layer];
      work += work_[layer], min_seconds += least_[layer];
    }
    inputs_ &= ~stage;
    for (auto layer = next_layer(inputs_, 0); layer < inputs_.size(); layer = next_layer(inputs_, layer + 1))
      sums.entering += p_.output[layer];
    const RemainingAmounts rest{remaining_.work - work, remaining_.min_seconds - min_seconds};
    const LayerSet covered = set_ | stage;
    const bool complete = static_cast<int>(covered.count()) == p_.size();
    for (const ReplicaChoice& option : mixes_.choices()) {
      const Times times = times_of(p_, sums, option.choice);
      if (times.slowest() > longest_stage()) continue;
      for (const int label : live_) attach(label, covered, sums, times, option, rest, complete);
    }
  }

  void attach(int from, const LayerSet& covered, const Sums& sums, const Times& times, const ReplicaChoice& option,
              const RemainingAmounts& rest, bool complete) {
    const Label& before = labels_[from];
    const int left = mixes_.full() - before.used, used = before.used + option.mix;
    count();
    if (!mixes_.within(option.mix, left) || (option.mix == left && !complete)) return;
    int depth = before.depth;
    double path = options_.sequential ? before.path : 0;
    if (!options_.sequential)
      for (const ReadyLayer& next : before.next)
        if (stage_.test(next.layer)) depth = std::max(depth, next.depth), path = std::max(path, next.path);
    ++depth, path += times.once();
    if (!fits(p_, memory_of(p_, sums, option.choice, depth), option.choice)) return;

    Label& label = draft_;
    label.used = used;
    label.slowest = std::max(before.slowest, times.slowest());
    label.path = std::max(before.path, path);
    const double slowest =
        complete ? label.slowest : std::max(label.slowest, rest.work / mixes_.worth(left - option.mix));
    double longest = label.path + (options_.sequential ? rest.min_seconds : 0);
    label.bound = value(slowest, longest);
    if (!promising(label)) return;
    if (options_.sequential) {
      label.depth = depth;
    } else {
      set_next(label.next, before, depth, path);
      for (const ReadyLayer& next : label.next) longest = std::max(longest, next.path + from_source_[next.layer]);
      label.bound = value(slowest, longest);
      if (!promising(label)) return;
    }
    label.parent = from;
    label.stage = stage_;
    label.option = option;
    if (complete) incumbent_ = std::min(incumbent_, value(label.slowest, label.path));
    LayerSet set = covered;
    exchange(set, label);
    keep(set, label);
  }

  /// What is ready once stage_ is placed after `before`, sorted by layer.
  void set_next(std::vector<ReadyLayer>& ready, const Label& before, int depth, double path) const {
    ready.clear();
    LayerSet added = inputs_;
    for (const ReadyLayer& next : before.next) {
      if (stage_.test(next.layer)) continue;
      ready.push_back(next);
      if (!inputs_.test(next.layer)) continue;
      ready.back().depth = std::max(next.depth, depth);
      ready.back().path = std::max(next.path, path);
      added.reset(next.layer);
    }
    if (added.none()) return;
    for (auto layer = next_layer(added, 0); layer < added.size(); layer = next_layer(added, layer + 1))
      ready.push_back({static_cast<int>(layer), depth, path});
    std::sort(ready.begin(), ready.end(), by_layer);
  }
  static bool by_layer(const ReadyLayer& a, const ReadyLayer& b) { return a.layer < b.layer; }

  /// Sorts exchangeable chains by the number of placed layers, then by the pipeline after the next layer, and notes the
  /// old number of each chain; of none if the order stays.
  void exchange(LayerSet& set, Label& label) {
    std::vector<ReadyLayer>& next = label.next;
    label.moved.clear();
    bool any = false;
    for (const TwinChains& chains : twins_) {
      std::vector<State>& states = chain_states_;
      states.clear();
      for (std::size_t c = 0; c < chains.size(); ++c) states.push_back(state_of(chains[c], set, next, c));
      std::sort(states.begin(), states.end(), [](const State& a, const State& b) {
        if (a.placed != b.placed) return a.placed > b.placed;
        if (a.next.depth != b.next.depth) return a.next.depth < b.next.depth;
        return a.next.path != b.next.path ? a.next.path < b.next.path : a.chain < b.chain;
      });
      for (std::size_t c = 0; c < chains.size(); ++c) {
        label.moved.push_back(static_cast<std::uint8_t>(states[c].chain));
        any |= states[c].chain != c;
        for (std::size_t i = 0; i < chains[c].size(); ++i) set.set(chains[c][i], i < states[c].placed);
        if (states[c].place < next.size()) states[c].next.layer = chains[c][states[c].placed];
      }
      for (const State& state : states)
        if (state.place < next.size()) next[state.place] = state.next;
    }
    if (any)
      std::sort(next.begin(), next.end(), by_layer);
    else
      label.moved.clear();
  }

  struct State {
    /// Number of the chain, its number of placed layers, and the position of `next` in its list, or the list's size.
    std::size_t chain = 0, placed = 0, place = 0;
    ReadyLayer next;
  };
  static State state_of(const std::vector<int>& chain, const LayerSet& set, const std::vector<ReadyLayer>& next,
                        std::size_t index) {
    State state{index, 0, next.size(), {}};
    while (state.placed < chain.size() && set.test(chain[state.placed])) ++state.placed;
    if (state.placed == chain.size()) return state;
    for (std::size_t n = 0; n < next.size(); ++n)
      if (next[n].layer == chain[state.placed]) state.place = n, state.next = next[n];
    return state;
  }

  bool promising(const Label& label) const { return label.bound <= incumbent_ * kSlack; }

  void keep(const LayerSet& set, const Label& label) {
    const auto entry = index_.emplace(set, static_cast<int>(sets_.size()));
    if (entry.second) {
      sets_.push_back(set);
      labels_of_.emplace_back();
      by_size_[set.count()].push_back(entry.first->second);
    }
    std::vector<int>& others = labels_of_[entry.first->second];
    for (const int other : others)
      if (no_worse(mixes_, labels_[other], label)) return;
    std::erase_if(others, [&](int other) { return no_worse(mixes_, label, labels_[other]); });
    others.push_back(static_cast<int>(labels_.size()));
    labels_.push_back(label);
  }

  void count() {
    stops_.pass();
    if (++states_ <= options_.most_states) return;
    throw Infeasible("states",
                     fmt::format("more than {} of {} on {}",
                                 pluralize(static_cast<std::int64_t>(options_.most_states), "partial plan"),
                                 pluralize(p_.size(), "layer"), pluralize(p_.devices, "device")),
                     "fuse layers with `blocks`, allow more `states`, or take the planner 'graphpipe'");
  }

  /// Labels renumber exchangeable chains at every step; undoing the steps from the end of the model gives the real
  /// layers.
  std::vector<GraphStage> parts_of(int last) const {
    std::vector<int> labels;
    for (int label = last; labels_[label].parent >= 0; label = labels_[label].parent) labels.push_back(label);
    std::reverse(labels.begin(), labels.end());
    std::vector<int> real(p_.size());
    std::iota(real.begin(), real.end(), 0);
    std::vector<GraphStage> parts;
    for (const int label : labels) {
      const Label& step = labels_[label];
      GraphStage part{
          {}, step.option.choice, p_.of_type.empty() ? std::vector<int>{} : mixes_.of_type(step.option.mix)};
      for (int layer = 0; layer < p_.size(); ++layer)
        if (step.stage.test(layer)) part.layers.push_back(real[layer]);
      std::sort(part.layers.begin(), part.layers.end());
      parts.push_back(std::move(part));
      real = renumbered(real, step.moved);
    }
    std::reverse(parts.begin(), parts.end());
    return parts;
  }

  std::vector<int> renumbered(const std::vector<int>& real, const std::vector<std::uint8_t>& moved) const {
    std::vector<int> result = real;
    std::size_t first = 0;
    for (const TwinChains& chains : twins_) {
      for (std::size_t c = 0; c < chains.size() && !moved.empty(); ++c)
        for (std::size_t i = 0; i < chains[c].size(); ++i) result[chains[c][i]] = real[chains[moved[first + c]][i]];
      first += chains.size();
    }
    return result;
  }

  const GraphProblem& p_;
  const ReplicaMixes mixes_;
  const ExactOptions& options_;
  double incumbent_, steady_ = 0, fill_ = 0;
  std::vector<TwinChains> twins_;
  std::vector<double> least_, work_, from_source_;
  std::vector<LayerSet> inputs_of_;  ///< [layer]
  double total_work_ = 0, total_least_ = 0, critical_ = 0;

  std::vector<Label> labels_;
  std::vector<LayerSet> sets_;
  std::vector<std::vector<int>> labels_of_, by_size_;
  std::unordered_map<LayerSet, int> index_;
  std::int64_t states_ = 0;
  StopCounter stops_;

  LayerSet set_;                ///< The set that extend() works on.
  std::vector<int> live_;       ///< The promising labels of set_.
  RemainingAmounts remaining_;  ///< Amounts of the layers outside set_.

  // What place() works on; most labels are no better than those at hand, so each is made in the same memory.
  LayerSet stage_, inputs_;  ///< The new stage, and the layers outside it that it reads.
  Label draft_;
  std::vector<State> chain_states_;
};

}  // namespace

std::optional<Partition> search_exact(const GraphProblem& p, const ExactOptions& options) {
  return ExactPartitionSearch(p, options).run();
}

}  // namespace stagecraft::graph
