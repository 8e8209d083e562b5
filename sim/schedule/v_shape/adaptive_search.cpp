// The search of the schedule v-adaptive: the shortest rows from repeated patterns with limited activations. The other V
// schedules do not use it.

#include "sim/schedule/v_shape/adaptive_search.hpp"

#include <algorithm>
#include <utility>

#include "sim/core/numbers.hpp"
#include "sim/core/stop_point.hpp"
#include "sim/schedule/v_shape/patterns.hpp"

namespace stagecraft {
namespace {

constexpr double kRounding = 1e-12;

/// The shortest rows so far, with at most `max_peak` activations on a rank.
class Incumbent {
 public:
  Incumbent(const VWork& work, int max_peak)
      : work_(work), max_peak_(max_peak), bound_(work), least_time_(bound_(max_peak) * (1 + kRounding)) {}

  const VWork& work() const { return work_; }
  int max_peak() const { return max_peak_; }
  int repeats() const { return repetitions(work_.ranks(), work_.micro_batches); }
  bool has_rows() const { return !rows_.empty(); }
  bool is_optimal() const { return has_rows() && time_ <= least_time_; }
  double least_time() const { return least_time_; }
  double bound(int peak) const { return bound_(peak); }
  bool beats(double bound) const { return has_rows() && bound * (1 - kRounding) > time_; }
  VRows take() { return std::move(rows_); }

  struct Attempt {
    bool fits;
    double time = kInfinity;
  };

  /// Keeps the rows when they are shorter, or equal with a smaller place.
  Attempt attempt(const std::vector<VPattern>& patterns, int place) {
    stop_point();
    VAttempt result = rows_from(patterns, work_.micro_batches, max_peak_);
    if (result.peak > max_peak_) return {false};
    if (!result.rows) return {true};
    const double time = span_of(*result.rows, work_);
    if (!has_rows() || time < time_ || (time == time_ && place < place_))
      rows_ = std::move(*result.rows), time_ = time, place_ = place;
    return {true, time};
  }

 private:
  const VWork& work_;
  int max_peak_;
  VBound bound_;
  double least_time_, time_ = 0;
  int place_ = 0;
  VRows rows_;
};

struct Candidate {
  VSlope slope;
  int place;  ///< Index in the order in which candidates are listed.
  double bound = 0;
};

/// Tries the candidate now when it may reach the bound, else keeps it for later. False when it does not fit.
bool try_or_defer(Candidate c, Incumbent& incumbent, std::vector<Candidate>& later) {
  const VWork& work = incumbent.work();
  const auto patterns = patterns_of(c.slope, work.ranks());
  if (!patterns) return true;
  if (incumbent.repeats() > work.micro_batches && incumbent.max_peak() < 2 * work.ranks())
    return incumbent.attempt(*patterns, c.place).fits;
  const int peak = peak_of(*patterns, incumbent.repeats());
  if (peak > incumbent.max_peak()) return false;
  c.bound = incumbent.bound(peak);
  if (c.bound <= incumbent.least_time()) return incumbent.attempt(*patterns, c.place).fits;
  later.push_back(c);
  return true;
}

/// Tries slopes that may reach the bound first, then the others while they may be shorter than the incumbent.
void try_all(Incumbent& incumbent) {
  const int ranks = incumbent.work().ranks();
  std::vector<Candidate> later;
  int place = 0;
  for (const VPattern& top : v_tops())
    for (int first = 1; first <= kSteepest; ++first)
      for (int second = 1; second <= first; ++second)
        for (int turn = 1; turn <= (first == second ? 1 : ranks - 1); ++turn) {
          if (!try_or_defer({{top, first, second, turn}, place++}, incumbent, later)) break;
          if (incumbent.is_optimal()) return;
        }
  std::stable_sort(later.begin(), later.end(),
                   [](const Candidate& a, const Candidate& b) { return a.bound < b.bound; });
  for (const Candidate& c : later) {
    if (incumbent.beats(c.bound)) return;
    incumbent.attempt(*patterns_of(c.slope, ranks), c.place);
  }
}

/// Slopes that differ in their turns alone, as far as their patterns fit.
struct SlopeFamily {
  VSlope slope;
  std::vector<int> turns;
  std::vector<double> times;  ///< [turn]; negative when not tried.
  double bound = 0;
  std::size_t now = 0;  ///< Index of the turn that the family is compared by.

  double time() const { return times.empty() ? kInfinity : times[now]; }
  VSlope at(std::size_t turn) const { return {slope.top, slope.first, slope.second, turns[turn]}; }
  /// Steps down all ranks: slopes with equally many need about as much memory and take about as long.
  int steps(std::size_t turn, int ranks) const {
    return slope.first * turns[turn] + slope.second * (ranks - 1 - turns[turn]);
  }
};

/// Tries each family with the latest turn that fits, then turns that may be better.
class FamilySearch {
 public:
  explicit FamilySearch(Incumbent& incumbent) : best_(incumbent), ranks_(incumbent.work().ranks()) {
    for (const VPattern& top : v_tops())
      for (int first = 1; first <= kSteepest; ++first)
        for (int second = 1; second <= first; ++second) add({top, first, second, 1});
  }

  void run() {
    sort_by([](const SlopeFamily& f) { return f.bound; });
    for (SlopeFamily& family : families_) try_last(family);
    sort_by([](const SlopeFamily& f) { return f.time(); });
    for (std::size_t i = 0; i < std::min(kSpread, families_.size()); ++i) spread(families_[i]);
    if (!families_.empty()) try_equal_steps();
    sort_by([](const SlopeFamily& f) { return f.time(); });
    for (std::size_t i = 0; i < std::min(kBest, families_.size()); ++i) try_near(families_[i]);
    if (best_.has_rows()) return;
    for (SlopeFamily& family : families_)
      if (!family.turns.empty()) try_at(family, 0);
  }

 private:
  static constexpr std::size_t kNear = 4;    ///< Turns that are tried before the best one of a family.
  static constexpr std::size_t kSpread = 3;  ///< The best families, for which turns over the whole range are tried.
  static constexpr std::size_t kParts = 8;   ///< Parts of that range.
  static constexpr std::size_t kBest = 16;   ///< The best families, for which turns near the best one are tried.

  /// The last turn is left to the family of equal steps, which has the same slope.
  void add(const VSlope& slope) {
    SlopeFamily family{.slope = slope, .turns = {}, .times = {}};
    for (int turn = 1; turn <= (slope.first == slope.second ? 1 : ranks_ - 2); ++turn)
      if (has_patterns({slope.top, slope.first, slope.second, turn}, ranks_)) family.turns.push_back(turn);
    family.turns.erase(std::partition_point(family.turns.begin(), family.turns.end(),
                                            [&](int turn) {
                                              return fits({slope.top, slope.first, slope.second, turn});
                                            }),
                       family.turns.end());
    if (family.turns.empty()) return;
    family.times.assign(family.turns.size(), -1);
    family.bound = bound_of(family.at(family.turns.size() - 1));
    families_.push_back(std::move(family));
  }

  /// Within a family the slopes before some turn fit: the later the turn, the more activations.
  bool fits(const VSlope& slope) const {
    const auto patterns = *patterns_of(slope, ranks_);
    return peak_of(patterns, best_.work().micro_batches) <= best_.max_peak() &&
           peak_of(patterns, best_.repeats()) <= 2 * ranks_;
  }

  double bound_of(const VSlope& slope) const {
    return best_.bound(std::min(peak_of(*patterns_of(slope, ranks_), best_.repeats()), best_.max_peak()));
  }

  template <class Key>
  void sort_by(const Key& key) {
    std::stable_sort(families_.begin(), families_.end(),
                     [&](const SlopeFamily& a, const SlopeFamily& b) { return key(a) < key(b); });
  }

  /// Infinity when there is nothing to gain.
  double try_at(SlopeFamily& family, std::size_t turn) {
    double& time = family.times[turn];
    if (time >= 0) return time;
    const VSlope slope = family.at(turn);
    if (best_.is_optimal() || best_.beats(bound_of(slope))) return time = kInfinity;
    time = best_.attempt(*patterns_of(slope, ranks_), place_++).time;
    if (time < shortest_) shortest_ = time, shortest_steps_ = family.steps(turn, ranks_);
    return time;
  }

  void try_last(SlopeFamily& family) {
    for (std::size_t i = 0; i <= kNear && !family.turns.empty(); ++i) {
      family.now = family.turns.size() - 1;
      if (try_at(family, family.now) < kInfinity) return;
      family.turns.pop_back(), family.times.pop_back();
    }
  }

  void step_to(SlopeFamily& family, std::size_t turn) {
    if (try_at(family, turn) < family.time()) family.now = turn;
  }

  /// Tries turns in equal parts, then turns half as far from the best one, and so on.
  void spread(SlopeFamily& family) {
    if (family.time() == kInfinity) return;
    const std::size_t last = family.turns.size() - 1;
    for (std::size_t part = 1; part < kParts; ++part) step_to(family, last * part / kParts);
    for (std::size_t far = (last + kParts) / kParts; far > 1;) {
      far = (far + 1) / 2;
      const std::size_t from = family.now;
      if (from >= far) step_to(family, from - far);
      if (from + far <= last) step_to(family, from + far);
    }
  }

  /// Tries the slopes of all families with as many steps down the ranks as the shortest slope.
  void try_equal_steps() {
    const int steps = shortest_steps_;
    for (SlopeFamily& family : families_) {
      if (family.time() == kInfinity) continue;
      std::size_t nearest = family.turns.size() - 1;
      while (nearest > 0 && family.steps(nearest, ranks_) > steps) --nearest;
      step_to(family, nearest);
    }
  }

  void try_near(SlopeFamily& family) {
    if (family.time() == kInfinity) return;
    const std::size_t from = family.now, last = family.turns.size() - 1;
    for (std::size_t far = 1; far <= kNear && far <= from; ++far) step_to(family, from - far);
    for (std::size_t far = 1; far <= kNear / 2 && from + far <= last; ++far) step_to(family, from + far);
  }

  Incumbent& best_;
  int ranks_, place_ = 0, shortest_steps_ = 0;
  double shortest_ = kInfinity;
  std::vector<SlopeFamily> families_;
};

}  // namespace

VRows shortest_rows(const VWork& work, int max_peak, int all_ranks) {
  Incumbent best(work, max_peak);
  if (work.ranks() <= all_ranks)
    try_all(best);
  else
    FamilySearch(best).run();
  return best.take();
}

}  // namespace stagecraft
