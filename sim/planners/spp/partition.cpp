// The search of the planner `spp`: orders devices in a line that avoids slow links, divides the layers over it by a
// dynamic program, and computes the iteration of a division in list order.

#include "sim/planners/spp/partition.hpp"

#include <algorithm>
#include <numeric>

#include <fmt/core.h>

#include "sim/cluster/phases.hpp"
#include "sim/core/activity.hpp"
#include "sim/core/diagnostic.hpp"
#include "sim/core/numbers.hpp"
#include "sim/core/stop_point.hpp"

namespace stagecraft::spp {
namespace {

/// Groups of devices such that all links between groups are equally slow, and slower than some path inside each; one
/// group if the slowest links separate nothing. O(n^2).
std::vector<std::vector<int>> groups_of(const Bandwidths& bandwidth, const std::vector<int>& devices) {
  double slowest = kInfinity;
  for (const int a : devices)
    for (const int b : devices)
      if (a != b) slowest = std::min(slowest, bandwidth[a][b]);
  std::vector<std::vector<int>> groups;
  std::vector<int> left = devices;
  while (!left.empty()) {
    std::vector<int> group{left.front()};
    left.erase(left.begin());
    for (std::size_t i = 0; i < group.size(); ++i) {
      const auto joined =
          std::stable_partition(left.begin(), left.end(), [&](int d) { return bandwidth[group[i]][d] <= slowest; });
      group.insert(group.end(), joined, left.end());
      left.erase(joined, left.end());
    }
    std::sort(group.begin(), group.end());
    groups.push_back(std::move(group));
  }
  return groups;
}

std::vector<int> ordered(const Bandwidths& bandwidth, std::vector<int> devices) {
  if (devices.size() <= 2) return devices;
  const std::vector<std::vector<int>> groups = groups_of(bandwidth, devices);
  if (groups.size() == devices.size()) return devices;
  if (groups.size() > 1) {  // Every order of the groups crosses the slowest links as seldom as possible.
    std::vector<int> line;
    for (const std::vector<int>& group : groups) {
      const std::vector<int> part = ordered(bandwidth, group);
      line.insert(line.end(), part.begin(), part.end());
    }
    return line;
  }
  const auto [one_side, other_side] = least_cut(bandwidth, devices);
  std::vector<int> a = ordered(bandwidth, one_side), b = ordered(bandwidth, other_side), best;
  double fastest = -1;
  for (int way = 0; way < 4; ++way) {
    if (way % 2 == 1) std::reverse(b.begin(), b.end());
    if (way == 2) std::reverse(a.begin(), a.end());
    const double junction = bandwidth[a.back()][b.front()];
    if (junction <= fastest) continue;
    fastest = junction;
    best = a;
    best.insert(best.end(), b.begin(), b.end());
  }
  return best;
}

}  // namespace

std::pair<std::vector<int>, std::vector<int>> least_cut(const Bandwidths& bandwidth, const std::vector<int>& devices) {
  const std::size_t n = devices.size();
  std::vector<std::vector<double>> weight(n, std::vector<double>(n, 0));
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j < n; ++j)
      if (i != j) weight[i][j] = bandwidth[devices[i]][devices[j]];
  std::vector<std::vector<int>> merged;
  for (const int d : devices) merged.push_back({d});
  std::vector<std::size_t> left(n);
  std::iota(left.begin(), left.end(), std::size_t{0});
  std::vector<int> side;
  double min_cut = kInfinity;
  while (left.size() > 1) {  // One phase: the last vertex, cut off from all others, is a candidate.
    std::vector<double> tied(n, 0);
    std::vector<bool> added(n, false);
    std::size_t before = left.front(), last = left.front();
    for (std::size_t step = 0; step < left.size(); ++step) {
      std::size_t next = n;
      for (const std::size_t v : left)
        if (!added[v] && (next == n || tied[v] > tied[next])) next = v;
      added[next] = true;
      before = last, last = next;
      for (const std::size_t v : left)
        if (!added[v]) tied[v] += weight[next][v];
    }
    if (tied[last] < min_cut) min_cut = tied[last], side = merged[last];
    merged[before].insert(merged[before].end(), merged[last].begin(), merged[last].end());
    for (const std::size_t v : left)
      if (v != before) weight[before][v] = weight[v][before] += weight[last][v];
    left.erase(std::find(left.begin(), left.end(), last));
  }
  std::vector<int> rest;
  std::sort(side.begin(), side.end());
  for (const int d : devices)
    if (!std::binary_search(side.begin(), side.end(), d)) rest.push_back(d);
  return {rest, side};
}

std::vector<int> order_devices(const Bandwidths& bandwidth) {
  std::vector<int> devices(bandwidth.size());
  std::iota(devices.begin(), devices.end(), 0);
  return ordered(bandwidth, devices);
}

namespace {

double slowest_inside(const LineProblem& p, int first, int count) {
  const int begin = first / p.group, end = begin + count / p.group;
  double min_bandwidth = kInfinity;
  for (int a = begin; a < end; ++a) {
    if (!p.inside.empty()) min_bandwidth = std::min(min_bandwidth, p.inside[a]);
    for (int b = a + 1; b < end; ++b) min_bandwidth = std::min(min_bandwidth, p.bandwidth[a][b]);
  }
  return min_bandwidth;
}

double slowest_between(const LineProblem& p, int first, int count, int next, int next_count) {
  double min_bandwidth = kInfinity;
  for (int a = first / p.group; a < (first + count) / p.group; ++a)
    for (int b = next / p.group; b < (next + next_count) / p.group; ++b)
      min_bandwidth = std::min(min_bandwidth, p.bandwidth[a][b]);
  return min_bandwidth;
}

/// [device]: the first one that takes as long for all layers.
std::vector<int> first_alike(const LineProblem& p) {
  std::vector<int> firsts, alike;
  for (int d = 0; d < p.devices(); ++d) {
    const auto first = std::find_if(firsts.begin(), firsts.end(), [&](int other) {
      return p.forward[other] == p.forward[d] && p.backward[other] == p.backward[d];
    });
    alike.push_back(first == firsts.end() ? d : *first);
    if (first == firsts.end()) firsts.push_back(d);
  }
  return alike;
}

std::size_t choice_of(const LineProblem& p, int replicas) {
  return std::find(p.replicas.begin(), p.replicas.end(), replicas) - p.replicas.begin();
}

constexpr double kMostCells = 6e7;             ///< 1 GB.
constexpr double kPartitionMostStates = 3e12;  ///< An upper bound; most of them are pruned.

/// The slowest links between consecutive devices, [end of devices][choice] or with the choice of the devices before.
struct SlowestLinks {
  std::vector<std::vector<double>> inside;                ///< Infinite where a single device has no links.
  std::vector<std::vector<std::vector<double>>> between;  ///< [choice of the devices before]; 0: they are too few.
};

/// [unit][unit]: the slowest link between devices of the two.
Bandwidths between_units(const LineProblem& p) {
  const int each = p.unit / p.group, groups = p.units() * each;
  Bandwidths slowest(p.units(), std::vector<double>(p.units(), kInfinity));
  for (int a = 0; a < groups; ++a) {
    std::vector<double>& row = slowest[a / each];
    if (!p.inside.empty()) row[a / each] = std::min(row[a / each], p.inside[a]);
    for (int b = 0; b < groups; ++b)
      if (a != b) row[b / each] = std::min(row[b / each], p.bandwidth[a][b]);
  }
  return slowest;
}

/// Every choice has twice the devices of the one before, so its slowest link follows from its halves, and
/// links are looked at once for each choice: O(choices * units^2).
SlowestLinks slowest_links(const LineProblem& p) {
  const int choices = static_cast<int>(p.replicas.size()), units = p.units();
  SlowestLinks links;
  links.inside.assign(p.devices() + 1, std::vector<double>(choices, kInfinity));
  links.between.assign(p.devices() + 1, std::vector<std::vector<double>>(choices));
  Bandwidths slowest = between_units(p);  // [unit][unit]: from there to as many units as the choice has.
  for (int c = 0; c < choices; ++c) {
    const int width = p.replicas[c] / p.unit;
    for (int u = 0; c > 0 && u < units; ++u)
      for (int v = 0; v + width <= units; ++v) slowest[u][v] = std::min(slowest[u][v], slowest[u][v + width / 2]);
    for (int first = 0; first + width <= units; ++first) {
      const int end = first + width;
      double& inside = links.inside[end * p.unit][c];
      if (c == 0) inside = slowest[first][first];
      std::vector<double>& between = links.between[end * p.unit][c];
      double rate = kInfinity;
      for (int b = 0, before = 0; b < choices; ++b) {
        const int needed = p.replicas[b] / p.unit;
        for (; before < std::min(needed, first); ++before) rate = std::min(rate, slowest[first - 1 - before][first]);
        between.push_back(first < needed ? 0 : rate);
      }
    }
  }
  for (int c = 1; c < choices; ++c)
    for (int end = p.replicas[c]; end <= units * p.unit; end += p.unit) {
      const int half = p.replicas[c - 1];
      links.inside[end][c] =
          std::min({links.inside[end - half][c - 1], links.inside[end][c - 1], links.between[end][c - 1][c - 1]});
    }
  return links;
}

class DynamicProgram {
 public:
  DynamicProgram(const LineProblem& p, std::int64_t& states)
      : p_(p), states_(states), choices_(static_cast<int>(p.replicas.size())) {
    different_.assign(p.devices() + 1, std::vector<std::vector<int>>(choices_));
    const std::vector<int> alike = first_alike(p);
    for (int end = p.unit; end <= p.devices(); end += p.unit)
      for (int c = 0; c < choices_; ++c)
        for (int d = std::max(0, end - p.replicas[c]); end >= p.replicas[c] && d < end; ++d)
          if (std::vector<int>& list = different_[end][c]; std::find(list.begin(), list.end(), alike[d]) == list.end())
            list.push_back(alike[d]);
  }

  std::vector<Division> run() {
    const int most_parts = std::min(p_.layers(), p_.units());
    refuse_too_large(most_parts);
    links_ = slowest_links(p_);
    table_.assign(most_parts, std::vector<Cell>(std::int64_t{p_.layers() + 1} * choices_ * (p_.units() + 1)));
    for (int used = p_.unit; used <= p_.devices(); used += p_.unit) {
      activity_.count(states_, "states");
      for (int choice = 0; choice < choices_ && p_.replicas[choice] <= used; ++choice) add_last_part(choice, used);
    }
    std::vector<Division> divisions;
    for (int parts = 1; parts <= most_parts; ++parts) divisions.push_back(best(parts));
    return divisions;
  }

 private:
  struct Cell {
    double bottleneck = kInfinity;
    int layers_before = 0, choice_before = 0;
  };
  void refuse_too_large(int most_parts) const {
    const double cells = 1.0 * most_parts * (p_.layers() + 1) * choices_ * (p_.units() + 1);
    const double states = cells * choices_ * p_.layers() / 2;
    if (cells <= kMostCells && states <= kPartitionMostStates) return;
    throw Infeasible("size",
                     fmt::format("the search needs a table of {:.0e} cells and up to {:.0e} states; {:.0e} and {:.0e} "
                                 "are the most",
                                 cells, states, kMostCells, kPartitionMostStates),
                     "fewer layers or devices, or the planner 'balanced'");
  }
  /// Layers are next to each other, because a part is tried with all cuts before it.
  std::size_t index(int layers, int choice, int used) const {
    return (std::int64_t{choice} * (p_.units() + 1) + used / p_.unit) * (p_.layers() + 1) + layers;
  }

  /// Seconds of layers [from, to) on the slowest of the devices in front of `end`, with the share of the all-reduce.
  double part_time(int from, int to, int choice, int end) const {
    const int r = p_.replicas[choice];
    double slowest = 0;
    for (const int d : different_[end][choice]) {
      const auto &f = p_.forward[d][choice], &b = p_.backward[d][choice];
      slowest = std::max(slowest, f[to] - f[from] + b[to] - b[from]);
    }
    if (r == 1) return slowest;
    const double bytes = ring_share(r) * (p_.gradients[to] - p_.gradients[from]);
    return slowest + bytes / links_.inside[end][choice] / p_.micro_batches;
  }

  /// Fills the cells whose last part has this number of replicas in front of `used`; all with fewer devices are full.
  void add_last_part(int choice, int used) {
    const std::size_t row = p_.layers() + 1;
    part_times_.resize(row * row);
    for (int to = 1; to <= p_.layers(); ++to)
      for (int from = 0; from < to; ++from) part_times_[to * row + from] = part_time(from, to, choice, used);
    if (used == p_.replicas[choice])
      for (int layers = 1; layers <= p_.layers(); ++layers)
        table_.front()[index(layers, choice, used)].bottleneck = part_times_[layers * row];
    for (int parts = 2; parts <= std::ssize(table_); ++parts, stop_point())
      for (int layers = parts; layers <= p_.layers(); ++layers) fill(parts, layers, choice, used);
  }

  void fill(int parts, int layers, int choice, int used) {
    const int r = p_.replicas[choice], fewest_before = parts - 1;
    int choices_before = 0;
    while (choices_before < choices_ && p_.replicas[choices_before] <= used - r) ++choices_before;
    if ((used - r) / p_.unit < fewest_before) {  // No division of as many parts has so few devices.
      states_ += std::int64_t{choices_before} * (layers - fewest_before);
      return;
    }
    Cell& cell = table_[parts - 1][index(layers, choice, used)];
    const double* part_times = &part_times_[layers * (p_.layers() + 1)];
    for (int cut = layers - 1; cut >= fewest_before; --cut) {
      const double stage_time = part_times[cut];
      if (stage_time >= cell.bottleneck) break;  // It only grows with more layers.
      states_ += choices_before;
      for (int b = 0; b < choices_before; ++b) {
        const Cell& other = table_[parts - 2][index(cut, b, used - r)];
        if (other.bottleneck >= cell.bottleneck) continue;
        const double share = p_.cut[cut] / (r * p_.replicas[b]);
        const double channel = (p_.trains ? 2 : 1) * share / links_.between[used][choice][b];
        const double value = std::max({stage_time, channel, other.bottleneck});
        if (value < cell.bottleneck) cell = {value, cut, b};
      }
    }
  }

  Division best(int parts) const {
    Division division{{}, kInfinity};
    int choice = 0, used = 0;
    for (int c = 0; c < choices_; ++c)
      for (int u = p_.unit; u <= p_.devices(); u += p_.unit)
        if (const double value = table_[parts - 1][index(p_.layers(), c, u)].bottleneck; value < division.bottleneck)
          division.bottleneck = value, choice = c, used = u;
    if (division.bottleneck == kInfinity) return division;
    int layers = p_.layers();
    for (int s = parts; s > 0; --s) {
      const Cell& cell = table_[s - 1][index(layers, choice, used)];
      const int r = p_.replicas[choice];
      division.parts.push_back({s == 1 ? 0 : cell.layers_before, layers, used - r, r});
      layers = cell.layers_before, choice = cell.choice_before, used -= r;
    }
    std::reverse(division.parts.begin(), division.parts.end());
    return division;
  }

  const LineProblem& p_;
  std::int64_t& states_;
  Activity activity_{"filling the tables of SPP"};
  int choices_;
  std::vector<std::vector<std::vector<int>>> different_;  ///< [end of devices][choice]: one device of each speed.
  SlowestLinks links_;
  std::vector<double> part_times_;        ///< [end of layers][first layer]: part_time() of the last part.
  std::vector<std::vector<Cell>> table_;  ///< [parts - 1]
};

}  // namespace

std::vector<Division> divide(const LineProblem& p, std::int64_t& states) { return DynamicProgram(p, states).run(); }

PartTimes times_of(const LineProblem& p, const LineStage& part, const LineStage* before) {
  const std::size_t choice = choice_of(p, part.replicas);
  PartTimes t;
  for (int d = part.first_device; d < part.first_device + part.replicas; ++d) {
    const auto &f = p.forward[d][choice], &b = p.backward[d][choice];
    t.forward = std::max(t.forward, f[part.last_layer] - f[part.first_layer]);
    t.backward = std::max(t.backward, b[part.last_layer] - b[part.first_layer]);
  }
  if (part.replicas > 1)
    t.all_reduce = ring_share(part.replicas) * (p.gradients[part.last_layer] - p.gradients[part.first_layer]) /
                   slowest_inside(p, part.first_device, part.replicas);
  if (before)
    t.input = p.cut[part.first_layer] / (part.replicas * before->replicas) /
              slowest_between(p, before->first_device, before->replicas, part.first_device, part.replicas);
  return t;
}

double play(const LineProblem& p, const std::vector<LineStage>& parts) {
  struct Block {
    std::size_t resource;  ///< 2 s: a part; 2 s + 1: the channel after it.
    double time;
  };
  const std::size_t n = parts.size();
  std::vector<PartTimes> times;
  for (std::size_t s = 0; s < n; ++s) times.push_back(times_of(p, parts[s], s > 0 ? &parts[s - 1] : nullptr));
  std::vector<Block> chain;  // Blocks of one micro-batch; in the last part forward and backward are one block.
  for (std::size_t s = 0; s < n; ++s) {
    if (s > 0) chain.push_back({2 * s - 1, times[s].input});
    chain.push_back({2 * s, times[s].forward + (s + 1 == n ? times[s].backward : 0)});
  }
  for (std::size_t s = n; s-- > 1;) {
    chain.push_back({2 * s - 1, times[s].input});
    chain.push_back({2 * s - 2, times[s - 1].backward});
  }
  std::vector<double> free(2 * n, 0), done(p.micro_batches, 0);
  const int blocks = static_cast<int>(chain.size());
  for (int round = 0; round < p.micro_batches + blocks - 1; ++round)
    for (int j = std::min(round, blocks - 1); j >= std::max(0, round - p.micro_batches + 1); --j) {
      double& micro = done[round - j];
      double& resource = free[chain[j].resource];
      micro = resource = std::max(micro, resource) + chain[j].time;
    }
  double all_reduce = 0;
  for (const PartTimes& t : times) all_reduce = std::max(all_reduce, t.all_reduce);
  return *std::max_element(done.begin(), done.end()) + all_reduce;
}

}  // namespace stagecraft::spp
