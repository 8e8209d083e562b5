// GraphPipe's dynamic program: stages with the least time of the slowest one; the planners `graphpipe` and
// `graph-exact` call it.

#include "sim/planners/graph/partition.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <memory>

#include <fmt/core.h>

#include "sim/core/diagnostic.hpp"
#include "sim/core/numbers.hpp"
#include "sim/core/stop_point.hpp"
#include "sim/planners/graph/structure.hpp"

namespace stagecraft::graph {
namespace {

/// The best stages for the first parts of a kind, given their devices and the number of stages after them.
struct Cell {
  int depth = std::numeric_limits<int>::max();  ///< Stages from the first one to the end of the model.
  double memory = kInfinity;
  int taken = 0;    ///< Parts that the last step makes a stage of; 0: it divides the last part further.
  int choice = -1;  ///< Choice of replicas for that stage.
  int devices = 0;  ///< Devices that the last step spends, as a mix.
  int join = -1;    ///< Index into PartKind::joins if the stage is such a join; else -1.
  /// Parts of a join: whole branches, parts of the cut branch, and the devices of the remaining ones of both.
  int whole = 0, cut = 0, for_others = 0, for_branch = 0;

  bool is_feasible() const { return memory < kInfinity; }
  bool better(const Cell& other) const { return depth != other.depth ? depth < other.depth : memory < other.memory; }
};

/// Cells by row and by mix of devices, in pages of neighboring mixes: most mixes of a row are asked for, or few.
class CellTable {
 public:
  CellTable(std::size_t rows, std::size_t mixes) : pages_(mixes / kPage + 1), rows_(rows) {}

  /// An entry without a value has not been solved yet.
  std::optional<Cell>& at(std::size_t row, int mix) {
    std::vector<std::unique_ptr<Page>>& pages = rows_[row];
    if (pages.empty()) pages.resize(pages_);
    std::unique_ptr<Page>& page = pages[mix / kPage];
    if (!page) page = std::make_unique<Page>();
    return (*page)[mix % kPage];
  }

 private:
  static constexpr std::size_t kPage = 16;
  using Page = std::array<std::optional<Cell>, kPage>;
  std::size_t pages_;
  std::vector<std::vector<std::unique_ptr<Page>>> rows_;
};

/// Work that a search has done, and its limit.
struct Effort {
  std::int64_t states = 0, steps = 0, most_steps = 0;
  StopCounter stops = {};
};

class DynamicProgram {
 public:
  DynamicProgram(const GraphProblem& p, const Structure& s, double max_bottleneck, Effort& effort)
      : p_(p),
        s_(s),
        mixes_(p),
        max_bottleneck_(max_bottleneck),
        effort_(effort),
        first_row_(first_rows(p, s)),
        known_(first_row_.back(), mixes_.full() + 1) {}

  /// The stages of the whole graph; empty when no division is fast enough.
  std::vector<GraphStage> run() {
    std::vector<GraphStage> parts;
    const int count = count_of(s_.root.kind);
    if (solve(s_.root.kind, count, mixes_.full(), 0).is_feasible()) collect(s_.root, count, mixes_.full(), 0, parts);
    std::reverse(parts.begin(), parts.end());
    return parts;
  }

 private:
  /// Within a kind of parts: at most all layers are after it, each in its own stage.
  static std::size_t row_of(int count, int depth_after, const GraphProblem& p) {
    return std::int64_t{count} * (p.size() + 1) + depth_after;
  }
  static std::vector<std::size_t> first_rows(const GraphProblem& p, const Structure& s) {
    std::vector<std::size_t> first{0};
    for (const PartKind& kind : s.kinds)
      first.push_back(first.back() + row_of(static_cast<int>(kind.range.size()) + 1, 0, p));
    return first;
  }

  const PartKind& kind(int k) const { return s_.kinds[k]; }
  int count_of(int k) const { return static_cast<int>(kind(k).range.size()); }
  bool series(int k) const { return kind(k).kind == Tree::Kind::Series; }

  /// True if `count` is 0 or the devices are fast enough for the first `count` parts.
  bool enough(int k, int count, int devices) const {
    if (count == 0) return true;
    return devices > 0 && mixes_.worth(devices) * max_bottleneck_ >= kind(k).work[count] * (1 - 1e-12);
  }

  Cell solve(int k, int count, int devices, int depth_after) {
    if (count == 0) return {depth_after, 0};
    effort_.stops.pass();
    if (++effort_.steps > effort_.most_steps)
      throw Infeasible("states",
                       fmt::format("the search for parts of the graph gives up after {:.2g} steps",
                                   static_cast<double>(effort_.most_steps)),
                       "fewer devices, a coarser model, more `steps`, or the planner 'spp' or 'balanced'");
    if (!enough(k, count, devices)) return {};
    std::optional<Cell>& cache = known_.at(first_row_[k] + row_of(count, depth_after, p_), devices);
    if (cache) return *cache;
    ++effort_.states;
    Cell best;
    take_stage(k, count, devices, depth_after, best);
    for (std::size_t j = 0; j < kind(k).joins.size(); ++j)
      take_join(k, static_cast<int>(j), count, devices, depth_after, best);
    if (kind(k).kind != Tree::Kind::Layer) divide_last(k, count, devices, depth_after, best);
    cache = best;
    return best;
  }

  /// The last parts as one stage.
  void take_stage(int k, int count, int devices, int depth_after, Cell& best) {
    for (int first = count - 1; first >= 0; --first) {
      const Sums& sums = kind(k).range[first][count - 1 - first];
      bool fast = false;  // More parts only take longer to compute.
      for (const ReplicaChoice& option : mixes_.choices()) {
        if (!mixes_.within(option.mix, devices)) continue;
        const Times times = times_of(p_, sums, option.choice);
        fast |= times.busy <= max_bottleneck_;
        const double memory = memory_of(p_, sums, option.choice, depth_after + 1);
        if (times.slowest() > max_bottleneck_ || !fits(p_, memory, option.choice)) continue;
        Cell rest = solve(k, first, devices - option.mix, series(k) ? depth_after + 1 : depth_after);
        if (!rest.is_feasible()) continue;
        rest = {std::max(rest.depth, depth_after + 1), std::max(rest.memory, memory), count - first, option.choice,
                option.mix};
        if (rest.better(best)) best = rest;
      }
      if (!fast) break;
    }
  }

  /// Makes one stage of what follows parallel branches, the end of one branch and some whole branches.
  void take_join(int k, int j, int count, int devices, int depth_after, Cell& best) {
    const Join& join = kind(k).joins[j];
    if (join.part + 1 >= count) return;
    const auto& by_whole = join.stages[count - join.part - 2];
    for (std::size_t whole = 0; whole < by_whole.size(); ++whole)
      for (std::size_t cut = 0; cut < by_whole[whole].size(); ++cut)
        for (const ReplicaChoice& option : mixes_.choices()) {
          if (!mixes_.within(option.mix, devices)) continue;
          const Sums& sums = by_whole[whole][cut];
          const double memory = memory_of(p_, sums, option.choice, depth_after + 1);
          if (times_of(p_, sums, option.choice).slowest() > max_bottleneck_ || !fits(p_, memory, option.choice))
            continue;
          Cell cell{depth_after + 1, memory, count - join.part - 1, option.choice, option.mix, j};
          cell.whole = static_cast<int>(whole), cell.cut = static_cast<int>(cut) + 1;
          divide_rest(k, devices, depth_after + 1, cell, best);
        }
  }

  /// Divides the devices that a join leaves among the other branches, the rest of the cut branch and all parts before.
  void divide_rest(int k, int devices, int depth_after, const Cell& stage, Cell& best) {
    const Join& join = kind(k).joins[stage.join];
    const int left = devices - stage.devices, others = count_of(join.others) - stage.whole,
              branch = count_of(join.branch) - stage.cut;
    for (int a = 0; a <= (others > 0 ? left : 0); ++a) {
      if (!mixes_.within(a, left) || !enough(join.others, others, a) || !enough(join.branch, branch, left - a))
        continue;
      const Cell first = solve(join.others, others, a, depth_after);
      if (!first.is_feasible()) continue;
      for (int b = 0; b <= (branch > 0 ? left - a : 0); ++b) {
        if (!mixes_.within(b, left - a) || !enough(join.branch, branch, b) || !enough(k, join.part, left - a - b))
          continue;
        const Cell second = solve(join.branch, branch, b, depth_after);
        if (!second.is_feasible()) continue;
        const Cell rest = solve(k, join.part, left - a - b, std::max(first.depth, second.depth));
        if (!rest.is_feasible()) continue;
        Cell joined = stage;
        joined.depth = rest.depth;
        joined.memory = std::max({stage.memory, first.memory, second.memory, rest.memory});
        joined.for_others = a, joined.for_branch = b;
        if (joined.better(best)) best = joined;
      }
    }
  }

  /// The last part as several stages.
  void divide_last(int k, int count, int devices, int depth_after, Cell& best) {
    const int last = kind(k).parts[count - 1];
    if (kind(last).kind == Tree::Kind::Layer) return;
    for (int share = 0; share <= devices; ++share) {
      if (!mixes_.within(share, devices) || !enough(last, count_of(last), share) ||
          !enough(k, count - 1, devices - share))
        continue;
      const Cell inner = solve(last, count_of(last), share, depth_after);
      if (!inner.is_feasible()) continue;
      const Cell rest = solve(k, count - 1, devices - share, series(k) ? inner.depth : depth_after);
      if (!rest.is_feasible()) continue;
      const Cell both{std::max(inner.depth, rest.depth), std::max(inner.memory, rest.memory), 0, -1, share};
      if (both.better(best)) best = both;
    }
  }

  /// Appends the stages of a solution to `parts`, from the end to the beginning.
  void collect(const PartNode& node, int count, int devices, int depth_after, std::vector<GraphStage>& parts) {
    if (count == 0) return;
    const Cell cell = solve(node.kind, count, devices, depth_after);
    if (cell.join >= 0) return collect_join(node, count, devices, depth_after, cell, parts);
    const int left = devices - cell.devices;
    if (cell.taken > 0) {
      add_part(layers_of(node, count - cell.taken, count), cell, parts);
      return collect(node, count - cell.taken, left, series(node.kind) ? depth_after + 1 : depth_after, parts);
    }
    const PartNode& last = node.parts[count - 1];
    const int joined = count_of(last.kind);
    collect(last, joined, cell.devices, depth_after, parts);
    collect(node, count - 1, left,
            series(node.kind) ? solve(last.kind, joined, cell.devices, depth_after).depth : depth_after, parts);
  }

  void collect_join(const PartNode& node, int count, int devices, int depth_after, const Cell& cell,
                    std::vector<GraphStage>& parts) {
    const Join& join = kind(node.kind).joins[cell.join];
    const Fork fork = apart(node.parts[join.part], join);
    const int others = count_of(join.others), branch = count_of(join.branch);
    std::vector<int> layers = layers_of(node, join.part + 1, count);
    for (const auto& more :
         {layers_of(fork.others, others - cell.whole, others), layers_of(fork.branch, branch - cell.cut, branch)})
      layers.insert(layers.end(), more.begin(), more.end());
    add_part(std::move(layers), cell, parts);
    collect(fork.branch, branch - cell.cut, cell.for_branch, depth_after + 1, parts);
    collect(fork.others, others - cell.whole, cell.for_others, depth_after + 1, parts);
    const int depth = std::max(solve(join.branch, branch - cell.cut, cell.for_branch, depth_after + 1).depth,
                               solve(join.others, others - cell.whole, cell.for_others, depth_after + 1).depth);
    collect(node, join.part, devices - cell.devices - cell.for_branch - cell.for_others, depth, parts);
  }

  void add_part(std::vector<int> layers, const Cell& cell, std::vector<GraphStage>& parts) const {
    std::sort(layers.begin(), layers.end());
    const bool types = !p_.of_type.empty();
    const int stage = cell.devices;
    parts.push_back({std::move(layers), cell.choice, types ? mixes_.of_type(stage) : std::vector<int>{}});
  }

  const GraphProblem& p_;
  const Structure& s_;
  const ReplicaMixes mixes_;
  double max_bottleneck_;
  Effort& effort_;
  std::vector<std::size_t> first_row_;  ///< [kind] Its first row in known_; after the last kind their number.
  CellTable known_;
};

/// Every time that the slowest stage can have, rising.
std::vector<double> times_that_stages_have(const GraphProblem& p, const Structure& s) {
  std::vector<double> times;
  const double min_time = least_bottleneck(p) * (1 - 1e-12);
  const auto note = [&](const Sums& sums) {
    for (int c = 0; c < p.choices(); ++c)
      if (const double time = times_of(p, sums, c).slowest(); time >= min_time && p.replicas[c] <= p.devices)
        times.push_back(time);
  };
  for (const PartKind& kind : s.kinds) {
    for (const auto& from : kind.range) std::for_each(from.begin(), from.end(), note);
    for (const Join& join : kind.joins)
      for (const auto& by_whole : join.stages)
        for (const auto& by_cut : by_whole) std::for_each(by_cut.begin(), by_cut.end(), note);
  }
  std::sort(times.begin(), times.end());
  times.erase(std::unique(times.begin(), times.end()), times.end());
  return times;
}

}  // namespace

std::optional<Partition> partition(const GraphProblem& p, std::int64_t most_steps) {
  if (p.size() > kMostLayersInParts)
    throw Infeasible("size",
                     fmt::format("{} layers are more than the {} that are looked at as parts of a graph", p.size(),
                                 kMostLayersInParts),
                     "a coarser model, or the planner 'balanced'");
  const Structure structure = structure_of(p, decompose(p.layers).tree);
  const std::vector<double> times = times_that_stages_have(p, structure);
  std::optional<Partition> best;
  Effort effort{.most_steps = most_steps};
  std::size_t low = 0, high = times.size();
  while (low < high) {
    // The largest first: when memory forbids all, no other time needs a look.
    const std::size_t middle = best ? low + (high - low) / 2 : high - 1;
    std::vector<GraphStage> parts = DynamicProgram(p, structure, times[middle], effort).run();
    if (parts.empty() && !best) return {};
    if (parts.empty())
      low = middle + 1;
    else
      best = Partition{std::move(parts), times[middle]}, high = middle;
  }
  if (best) best->states = effort.states;
  return best;
}

}  // namespace stagecraft::graph
