// PipeDream's dynamic program on one level of machines, and over all levels; pipedream.cpp calls it.

#include "sim/planners/chain_partition/level_search.hpp"

#include <algorithm>
#include <utility>

#include "sim/cluster/phases.hpp"
#include "sim/core/numbers.hpp"
#include "sim/core/stop_point.hpp"
#include "sim/cost/stage_memory.hpp"

namespace stagecraft::chain_partition {
double Rates::stage(double seconds, double parameters, int replicas, int inside) const {
  if (!trains) return seconds / replicas;
  if (formula == Formula::Paper) return std::max(seconds, ring_steps(replicas) * parameters / bandwidth) / replicas;
  return (seconds + 2 * ring_steps(replicas) * parameters / (bandwidth * replicas) / inside) / replicas;
}

double Rates::edge(double bytes, int replicas) const {
  const double whole = (trains ? 2.0 : 1.0) * bytes * transfers / bandwidth;
  return formula == Formula::Paper ? whole : whole / replicas;
}

double stage_seconds(const Rates& rates, const Workload& work, std::pair<int, int> cuts, double seconds, int replicas,
                     int inside) {
  const int from = cuts.first, to = cuts.second;
  const double parameters = work.parameters[to] - work.parameters[from];
  if (from == 0) return rates.stage(seconds, parameters, replicas, inside);
  const double out = to == work.last() ? 0 : rates.edge(work.crossing[to], replicas);
  return std::max({rates.stage(seconds, parameters, replicas, 1), rates.edge(work.crossing[from], replicas), out});
}

bool fits(const Workload& work, const PipeDreamOptions& options, int from, int to, int machines_behind, int replicas) {
  if (!options.memory) return true;
  const int in_flight = (machines_behind + replicas - 1) / replicas;
  const MemoryUnits units{.weights = {work.parameters[to] - work.parameters[from]},
                          .stash = {work.outputs[to] - work.outputs[from]}};
  if (!options.trains) return units.weights.value <= *options.memory;
  return stage_memory(units, {.in_flight = in_flight, .versions = in_flight}).total().value <= *options.memory;
}

std::vector<double> compute_seconds(const Workload& work) {
  const int count = work.cuts.count();
  std::vector<double> seconds(work.cuts.pairs(), kInfinity);
  for (int b = 0; b < count; ++b)
    for (int a = 0; a < b; ++a)
      if (work.cuts.contains(b, a)) seconds[work.cuts.pair(a, b)] = work.seconds[b] - work.seconds[a];
  return seconds;
}

ReplicaCounts replica_counts(const PipeDreamOptions& options, int devices) {
  ReplicaCounts counts;
  for (int count = 1; count <= (options.straight ? 1 : devices); ++count)
    if (options.allows(count)) counts.push_back(count);
  return counts;
}

ReplicaCounts counts_inside(const ReplicaCounts& counts, int machines, int devices) {
  ReplicaCounts inside;
  for (const int count : counts)
    if (count % machines == 0 && count / machines <= devices) inside.push_back(count / machines);
  return inside;
}

LevelSearch::LevelSearch(const Workload& work, const PipeDreamOptions& options, std::size_t level,
                         std::vector<const std::vector<double>*> seconds)
    : work_(work),
      options_(options),
      machines_(options.levels[level].machines),
      inside_(level == 0 ? 1 : options.levels[level - 1].machines),
      rates_{options.levels[level].bandwidth, options.formula, options.transfers, options.trains},
      seconds_(std::move(seconds)) {}

std::vector<std::vector<double>> LevelSearch::rows_from(int a) const {
  std::vector<std::vector<double>> rows(machines_ + 1, std::vector<double>(count(), kInfinity));
  std::vector<double> last(count());
  for (int b = a + 1; b < count(); ++b) {
    if (!work_.cuts.contains(b, a)) continue;
    stop_point();
    for (int m = 1; m <= machines_; ++m) rows[m][b] = alone(a, b, m).seconds;
    for (int r = 1; r < machines_; ++r) {
      if (!allows(r)) continue;
      for (int c = a + 1; c < b; ++c) last[c] = last_stage(c, b, r);
      const double out = edge(b, r);
      for (int m = r + 1; m <= machines_; ++m) {
        const double split = best_split(rows[m - r], last, a, b, m, r);
        rows[m][b] = std::min(rows[m][b], std::max(split, out));
      }
    }
    if (options_.fewer)
      for (int m = 2; m <= machines_; ++m) rows[m][b] = std::min(rows[m][b], rows[m - 1][b]);
  }
  return rows;
}

std::vector<double> LevelSearch::on_all_machines() const {
  std::vector<double> times(work_.cuts.pairs(), kInfinity);
  for (int a = 0; a < count(); ++a) {
    const std::vector<double> whole = rows_from(a)[machines_];
    for (int b = a + 1; b < count(); ++b) times[work_.cuts.pair(a, b)] = whole[b];
  }
  return times;
}

std::vector<LevelSearch::LevelStage> LevelSearch::parts(int a, int b) const {
  const auto rows = rows_from(a);
  std::vector<LevelStage> reversed;
  int m = machines_;
  while (true) {
    while (options_.fewer && m > 1 && rows[m - 1][b] <= rows[m][b]) --m;
    auto [fastest, replicas] = alone(a, b, m);
    LevelStage best{a, b, m - replicas, replicas};
    for (int r = 1; r < m; ++r) {
      if (!allows(r)) continue;
      for (int c = a + 1; c < b; ++c) {
        if (seconds(c, b, r) == kInfinity || !fits(c, b, m, r)) continue;
        const double value = std::max({rows[m - r][c], last_stage(c, b, r), edge(b, r)});
        if (value < fastest) fastest = value, best = {c, b, m - r, r};
      }
    }
    reversed.push_back(best);
    if (best.from == a) break;
    b = best.from, m = best.first;
  }
  std::vector<LevelStage> parts(reversed.rbegin(), reversed.rend());
  int next = 0;  // Machines that stand idle are the last ones.
  for (LevelStage& part : parts) part.first = std::exchange(next, next + part.replicas);
  return parts;
}

double LevelSearch::parameters(int a, int b) const { return work_.parameters[b] - work_.parameters[a]; }

bool LevelSearch::fits(int a, int b, int machines, int replicas) const {
  return chain_partition::fits(work_, options_, a, b, machines_ - machines, replicas);
}

LevelSearch::FirstStage LevelSearch::alone(int a, int b, int machines) const {
  FirstStage best{kInfinity, machines};
  // Without a limit on memory, rows with fewer machines are equally good.
  for (int r = options_.fewer && options_.memory ? 1 : machines; r <= machines; ++r) {
    if (!allows(r) || !fits(a, b, machines, r)) continue;
    const double time = rates_.stage(seconds(a, b, r), parameters(a, b), r, inside_);
    if (time < best.seconds) best = {time, r};
  }
  return best;
}

double LevelSearch::edge(int cut, int replicas) const {
  return cut == work_.last() ? 0 : rates_.edge(work_.crossing[cut], replicas);
}

double LevelSearch::last_stage(int c, int b, int replicas) const {
  return std::max(rates_.stage(seconds(c, b, replicas), parameters(c, b), replicas, 1), edge(c, replicas));
}

double LevelSearch::best_split(const std::vector<double>& before, const std::vector<double>& last, int a, int b, int m,
                               int r) const {
  double best = kInfinity;
  if (options_.memory) {
    for (int c = a + 1; c < b; ++c)
      if (fits(c, b, m, r)) best = std::min(best, std::max(before[c], last[c]));
    return best;
  }
  // Four at a time, so that one comparison need not wait for the one before.
  double lanes[4] = {kInfinity, kInfinity, kInfinity, kInfinity};
  int c = a + 1;
  for (; c + 4 <= b; c += 4)
    for (int lane = 0; lane < 4; ++lane)
      lanes[lane] = std::min(lanes[lane], std::max(before[c + lane], last[c + lane]));
  for (; c < b; ++c) best = std::min(best, std::max(before[c], last[c]));
  return std::min({best, lanes[0], lanes[1], lanes[2], lanes[3]});
}

HierarchySearch::HierarchySearch(const Workload& work, const PipeDreamOptions& options)
    : work_(work), options_(options), compute_(compute_seconds(work)), levels_(options.levels.size()) {}

int HierarchySearch::devices_inside(std::size_t levels) const {
  int devices = 1;
  for (std::size_t l = 0; l < levels; ++l) devices *= options_.levels[l].machines;
  return devices;
}

HierarchySearch::SolvedLevel& HierarchySearch::solved(std::size_t level, const ReplicaCounts& counts) {
  if (const auto it = levels_[level].find(counts); it != levels_[level].end()) return it->second;
  std::vector<const std::vector<double>*> inside(options_.levels[level].machines + 1, nullptr);
  for (const int count : counts)
    if (count < std::ssize(inside))
      inside[count] = &seconds(level, counts_inside(counts, count, devices_inside(level)));
  return levels_[level].emplace(counts, SolvedLevel{{work_, options_, level, std::move(inside)}, {}}).first->second;
}

const LevelSearch& HierarchySearch::search(std::size_t level, const ReplicaCounts& counts) {
  return solved(level, counts).search;
}

const std::vector<double>& HierarchySearch::seconds(std::size_t levels, const ReplicaCounts& counts) {
  if (levels == 0) return compute_;
  SolvedLevel& level = solved(levels - 1, counts);
  if (level.seconds.empty()) {
    level.seconds = level.search.on_all_machines();
    const std::int64_t cuts = work_.cuts.count();
    states_ += cuts * (cuts - 1) / 2 * level.search.machines();
  }
  return level.seconds;
}

void HierarchySearch::add_stages(std::size_t level, const ReplicaCounts& counts, int from, int to,
                                 const std::vector<int>& machines, std::vector<FoundStage>& stages) {
  const int inside = devices_inside(level);
  for (const LevelSearch::LevelStage& part : search(level, counts).parts(from, to)) {
    std::vector<int> starts;
    for (const int machine : machines)
      for (int r = 0; r < part.replicas; ++r) starts.push_back(machine + (part.first + r) * inside);
    if (level == 0)
      stages.push_back({part.from, part.to, std::move(starts)});
    else
      add_stages(level - 1, counts_inside(counts, part.replicas, inside), part.from, part.to, starts, stages);
  }
}

}  // namespace stagecraft::chain_partition
