// PipeDream's optimizer (Narayanan et al., SOSP 2019, section 3.1). A[a][b][m] is the least time between micro-batches
// of the layers from cut a to cut b on m machines of a level:
//
//   one stage      A = stage(a, b, m)
//   a last stage   A = min over cuts c between and r < m of max(A[a][c][m-r], stage(c, b, r), edge(c, r), edge(b, r))
//
// On the next level A[a][b][all] stands for the seconds of layers a to b on one machine. Only the answers for all
// machines of a level are kept; the others of the start a are made again where the pipeline is read off.

#include "sim/plan/msr/pipedream.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "sim/core/diagnostic.hpp"

namespace stagecraft::msr {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr double kMostSteps = 3e11;  ///< A few minutes.

std::size_t at(int i) { return static_cast<std::size_t>(i); }

/// What replicas cost on one level. A stage alone on its level shares the links of the machines inside (released code).
struct Rates {
  double bandwidth;
  Formula formula;
  double transfers;

  double stage(double seconds, double parameters, int replicas, int inside) const {
    if (formula == Formula::Paper) return std::max(seconds, 2.0 * (replicas - 1) * parameters / bandwidth) / replicas;
    return (seconds + 4.0 * (replicas - 1) * parameters / (bandwidth * replicas) / inside) / replicas;
  }
  double edge(double bytes, int replicas) const {
    const double whole = 2.0 * bytes * transfers / bandwidth;
    return formula == Formula::Paper ? whole : whole / replicas;
  }
};

/// Micro-batches whose data the released test counts for a stage that ends `machines` of `all` machines.
double held(int all, int machines, int replicas) { return std::ceil((all - machines) / static_cast<double>(replicas)); }

class LevelSearch {
 public:
  /// seconds[b * cuts + a]: of the layers from a to b on one machine of this level; infinite where there are none.
  LevelSearch(const Workload& work, const PipeDreamOptions& options, std::size_t level, std::vector<double> seconds)
      : work_(work),
        options_(options),
        machines_(options.levels[level].machines),
        most_(options.straight ? 1 : std::min(machines_, options.levels[level].most_replicas)),
        inside_(level == 0 ? 1 : options.levels[level - 1].machines),
        rates_{options.levels[level].bandwidth, options.formula, options.transfers},
        seconds_(std::move(seconds)) {}

  int machines() const { return machines_; }

  /// rows[m][b] = A[a][b][m].
  std::vector<std::vector<double>> rows_from(int a) const {
    std::vector<std::vector<double>> rows(at(machines_) + 1, std::vector<double>(at(count()), kNever));
    std::vector<double> last(at(count()));
    for (int b = a + 1; b < count(); ++b) {
      if (seconds(a, b) == kNever) continue;
      for (int m = 1; m <= machines_; ++m) rows[at(m)][at(b)] = alone(a, b, m);
      for (int r = 1; r <= std::min(most_, machines_ - 1); ++r) {
        fill_last_stage(last, a, b, r);
        const double out = edge(b, r);
        for (int m = r + 1; m <= machines_; ++m) {
          const double split = best_split(rows[at(m - r)], last, a, b, m, r);
          rows[at(m)][at(b)] = std::min(rows[at(m)][at(b)], std::max(split, out));
        }
      }
      if (options_.fewer)
        for (int m = 2; m <= machines_; ++m) rows[at(m)][at(b)] = std::min(rows[at(m)][at(b)], rows[at(m - 1)][at(b)]);
    }
    return rows;
  }

  /// One stage of this level: layers between two cuts, on `replicas` machines from `first` on.
  struct Part {
    int from, to, first, replicas;
  };

  /// The parts of the fastest pipeline from a to b, in order.
  std::vector<Part> parts(int a, int b) const {
    const auto rows = rows_from(a);
    std::vector<Part> reversed;
    int m = machines_;
    while (true) {
      while (options_.fewer && m > 1 && rows[at(m - 1)][at(b)] <= rows[at(m)][at(b)]) --m;
      Part best{a, b, 0, m};
      double least = alone(a, b, m);
      for (int r = 1; r < m && r <= most_; ++r) {
        for (int c = a + 1; c < b; ++c) {
          if (seconds(c, b) == kNever || !fits(c, b, m, r)) continue;
          const double value = std::max({rows[at(m - r)][at(c)], last_stage(c, b, r), edge(b, r)});
          if (value < least) least = value, best = {c, b, m - r, r};
        }
      }
      reversed.push_back(best);
      if (best.from == a) break;
      b = best.from, m = best.first;
    }
    return {reversed.rbegin(), reversed.rend()};
  }

 private:
  int count() const { return work_.cuts.count(); }
  double seconds(int a, int b) const { return seconds_[at(b) * at(count()) + at(a)]; }
  double parameters(int a, int b) const { return work_.parameters[at(b)] - work_.parameters[at(a)]; }

  bool fits(int a, int b, int machines, int replicas) const {
    const double bytes = work_.outputs[at(b)] - work_.outputs[at(a)] + parameters(a, b);
    return !options_.memory || held(machines_, machines, replicas) * bytes <= *options_.memory;
  }

  double alone(int a, int b, int machines) const {
    if (machines > most_ || !fits(a, b, machines, machines)) return kNever;
    return rates_.stage(seconds(a, b), parameters(a, b), machines, inside_);
  }

  double edge(int cut, int replicas) const {
    return cut == work_.last() ? 0 : rates_.edge(work_.crossing[at(cut)], replicas);
  }

  double last_stage(int c, int b, int replicas) const {
    return std::max(rates_.stage(seconds(c, b), parameters(c, b), replicas, 1), edge(c, replicas));
  }

  void fill_last_stage(std::vector<double>& last, int a, int b, int replicas) const {
    for (int c = a + 1; c < b; ++c) last[at(c)] = last_stage(c, b, replicas);
  }

  double best_split(const std::vector<double>& before, const std::vector<double>& last, int a, int b, int m,
                    int r) const {
    double best = kNever;
    if (options_.memory) {
      for (int c = a + 1; c < b; ++c)
        if (fits(c, b, m, r)) best = std::min(best, std::max(before[at(c)], last[at(c)]));
      return best;
    }
    // Four at a time, so that one comparison need not wait for the one before.
    double lanes[4] = {kNever, kNever, kNever, kNever};
    int c = a + 1;
    for (; c + 4 <= b; c += 4)
      for (int lane = 0; lane < 4; ++lane)
        lanes[lane] = std::min(lanes[lane], std::max(before[at(c + lane)], last[at(c + lane)]));
    for (; c < b; ++c) best = std::min(best, std::max(before[at(c)], last[at(c)]));
    return std::min({best, lanes[0], lanes[1], lanes[2], lanes[3]});
  }

  const Workload& work_;
  const PipeDreamOptions& options_;
  int machines_, most_, inside_;
  Rates rates_;
  std::vector<double> seconds_;
};

std::vector<double> compute_seconds(const Workload& work) {
  const int count = work.cuts.count();
  std::vector<double> seconds(at(count) * at(count), kNever);
  for (int b = 0; b < count; ++b)
    for (int a = 0; a < b; ++a)
      if (work.cuts.contains(b, a)) seconds[at(b) * at(count) + at(a)] = work.seconds[at(b)] - work.seconds[at(a)];
  return seconds;
}

/// Adds the stages of a part of `level` that runs on the machines of that level which start at these devices.
void add_stages(const std::vector<LevelSearch>& searches, std::size_t level, int from, int to,
                const std::vector<int>& machines, std::vector<FoundStage>& stages) {
  int inside = 1;
  for (std::size_t l = 0; l < level; ++l) inside *= searches[l].machines();
  for (const LevelSearch::Part& part : searches[level].parts(from, to)) {
    std::vector<int> starts;
    for (const int machine : machines)
      for (int r = 0; r < part.replicas; ++r) starts.push_back(machine + (part.first + r) * inside);
    if (level == 0)
      stages.push_back({part.from, part.to, std::move(starts)});
    else
      add_stages(searches, level - 1, part.from, part.to, starts, stages);
  }
}

/// A step is one cut tried for one number of machines and replicas.
void refuse_too_long(const Workload& work, const PipeDreamOptions& options) {
  const double cuts = work.cuts.count();
  double steps = 0;
  for (std::size_t l = 0; l < options.levels.size(); ++l) {
    const Level& level = options.levels[l];
    const double replicas = options.straight ? 1 : std::min(level.machines, level.most_replicas);
    const double starts = l + 1 == options.levels.size() ? 1 : cuts / 3;
    steps += starts * cuts * cuts / 2 * replicas * (level.machines - replicas / 2);
  }
  if (steps <= kMostSteps) return;
  throw Infeasible("size", fmt::format("the search needs some {:.0e} steps; {:.0e} is the most", steps, kMostSteps),
                   "merge layers, group the devices with `machines`, or choose smaller micro-batches (fewer replicas)");
}

}  // namespace

std::optional<FoundPipeline> search_pipedream(const Workload& work, const PipeDreamOptions& options) {
  STAGECRAFT_CHECK(!options.levels.empty());
  refuse_too_long(work, options);
  const int count = work.cuts.count();
  FoundPipeline found;
  std::vector<LevelSearch> searches;
  std::vector<double> seconds = compute_seconds(work);
  for (std::size_t level = 0; level < options.levels.size(); ++level) {
    const bool outermost = level + 1 == options.levels.size();
    searches.emplace_back(work, options, level, std::move(seconds));
    const LevelSearch& search = searches.back();
    seconds.assign(at(count) * at(count), kNever);
    for (int a = 0; a < (outermost ? 1 : count); ++a) {
      const std::vector<double> whole = search.rows_from(a)[at(search.machines())];
      for (int b = a + 1; b < count; ++b) seconds[at(b) * at(count) + at(a)] = whole[at(b)];
      found.states += static_cast<std::int64_t>(count - a - 1) * search.machines();
    }
  }
  found.seconds = seconds[at(work.last()) * at(count)];
  if (found.seconds == kNever) return std::nullopt;
  add_stages(searches, searches.size() - 1, 0, work.last(), {0}, found.stages);
  return found;
}

double period_of(const Workload& work, const std::vector<FoundStage>& stages, const PipeDreamOptions& options) {
  STAGECRAFT_CHECK(options.levels.size() == 1);
  const Rates rates{options.levels.front().bandwidth, options.formula, options.transfers};
  double period = 0;
  int machines = 0;
  for (const FoundStage& stage : stages) {
    const auto replicas = static_cast<int>(stage.devices.size());
    machines += replicas;
    const double parameters = work.parameters[at(stage.to)] - work.parameters[at(stage.from)];
    const double outputs = work.outputs[at(stage.to)] - work.outputs[at(stage.from)];
    const double copies = held(options.levels.front().machines, machines, replicas);
    if (options.memory && copies * (parameters + outputs) > *options.memory) return kNever;
    period = std::max(period,
                      rates.stage(work.seconds[at(stage.to)] - work.seconds[at(stage.from)], parameters, replicas, 1));
    if (stage.from == 0) continue;  // The optimizer charges a message to the stage behind it, and to no first stage.
    period = std::max(period, rates.edge(work.crossing[at(stage.from)], replicas));
    if (stage.to != work.last()) period = std::max(period, rates.edge(work.crossing[at(stage.to)], replicas));
  }
  return period;
}

}  // namespace stagecraft::msr
