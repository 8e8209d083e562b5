#include "sim/schedule/v_rows.hpp"

#include <algorithm>
#include <deque>

namespace stagecraft {
namespace {

using enum VPass;
using Row = std::vector<VPass>;
using Counts = std::array<int, kVPasses>;

constexpr int kPeriod = 6;

std::size_t at(int i) { return static_cast<std::size_t>(i); }
std::size_t at(VPass pass) { return static_cast<std::size_t>(pass); }
bool is_weight(VPass pass) { return pass == W0 || pass == W1; }
bool goes_down(VPass pass) { return pass == F0 || pass == I1; }
VPass weight_of(VPass gradient) { return gradient == I1 ? W1 : W0; }

/// What a pass follows on its own rank, where the V turns and for weight gradients.
VPass leg_before(VPass pass) { return pass == F1 ? F0 : pass == I1 ? F1 : pass == I0 || pass == W1 ? I1 : I0; }

int activations(VPass pass) { return is_forward(pass) ? 1 : is_weight(pass) ? -1 : 0; }

int peak_of(const Row& row) {
  int alive = 0, peak = 0;
  for (const VPass pass : row) peak = std::max(peak, alive += activations(pass));
  return peak;
}

int peak_of(const VRows& rows) {
  int peak = 0;
  for (const Row& row : rows) peak = std::max(peak, peak_of(row));
  return peak;
}

/// When each pass runs, while rows are gone through step by step. A pass before its input is not there.
class Clock {
 public:
  Clock(int ranks, int micro_batches)
      : micro_batches_(micro_batches), counts_(at(ranks)), times_(at(ranks * micro_batches)) {
    for (auto& times : times_) times.fill(-1);
  }
  int count(int rank, VPass pass) const { return counts_[at(rank)][at(pass)]; }

  /// The time of what the rank's next pass of a kind needs, -1 for nothing; nothing when it has not run.
  std::optional<int> input(int rank, VPass pass) const {
    const int micro = count(rank, pass), from = comes_from(pass, rank), ranks = static_cast<int>(counts_.size());
    if (micro >= micro_batches_) return {};
    const bool apart = from >= 0 && from < ranks;
    if (!apart && pass == F0) return -1;
    const int time = times_[at((apart ? from : rank) * micro_batches_ + micro)][at(apart ? pass : leg_before(pass))];
    return time < 0 ? std::nullopt : std::optional(time);
  }

  void run(int rank, VPass pass, int time) {
    times_[at(rank * micro_batches_ + counts_[at(rank)][at(pass)]++)][at(pass)] = time;
  }

 private:
  int micro_batches_;
  std::vector<Counts> counts_;
  std::vector<Counts> times_;
};

/// Every pass as early as its input and the row allow. False when one stands before its input.
bool squeeze(VRows& rows, int micro_batches) {
  const int ranks = static_cast<int>(rows.size());
  Clock clock(ranks, micro_batches);
  VRows result(rows.size());
  std::size_t length = 0;
  for (const Row& row : rows) length = std::max(length, row.size());
  const auto put = [&](int r, std::size_t t, bool down) {
    if (t >= rows[at(r)].size() || rows[at(r)][t] == Free) return true;
    const VPass pass = rows[at(r)][t];
    if ((pass == F0 || pass == I1 || pass == W1) != down) return true;
    const auto input = clock.input(r, pass);
    if (!input) return false;
    Row& row = result[at(r)];
    row.resize(std::max(row.size(), at(*input + 1)), Free);
    clock.run(r, pass, static_cast<int>(row.size()));
    row.push_back(pass);
    return true;
  };
  for (std::size_t t = 0; t < length; ++t) {
    for (int r = 0; r < ranks; ++r)
      if (!put(r, t, true)) return false;
    for (int r = ranks - 1; r >= 0; --r)
      if (!put(r, t, false)) return false;
  }
  rows = std::move(result);
  return true;
}

/// The first step of each kind of pass on each rank: at its place of the period, behind the input of micro-batch 0.
std::vector<Counts> first_steps(const std::vector<VPattern>& patterns) {
  const int ranks = static_cast<int>(patterns.size());
  std::vector<Counts> first(patterns.size());
  const auto put = [&](int r, VPass pass, int from) {
    const int place = patterns[at(r)][at(pass)];
    return first[at(r)][at(pass)] = from + (place - from % kPeriod + kPeriod) % kPeriod;
  };
  int time = 0;
  for (const VPass pass : {F0, F1, I1, I0})
    for (int i = 0; i < ranks; ++i) {
      const int r = goes_down(pass) ? i : ranks - 1 - i;
      time = put(r, pass, time) + 1;
      if (!is_forward(pass)) put(r, weight_of(pass), time);
    }
  return first;
}

VRows repeated(const std::vector<Counts>& first, int micro_batches) {
  VRows rows(first.size(), Row(at(kPeriod * (4 * static_cast<int>(first.size()) + micro_batches + 2)), Free));
  for (std::size_t r = 0; r < rows.size(); ++r)
    for (const VPass pass : {F0, F1, I1, I0, W1, W0})
      for (int m = 0; m < micro_batches; ++m) rows[r][at(first[r][at(pass)] + kPeriod * m)] = pass;
  return rows;
}

/// What stood before the first gradient of chunk 0, laid anew: forwards of chunk 0, then of both chunks in turn, then
/// gradient, weights, forward of chunk 1 or else 0. False when it has no room.
bool lay_warm_up(Row& row, int rank, int ranks, int peak) {
  Counts all{}, used{};
  for (VPass& pass : row) {
    if (pass == I0) break;
    if (pass != Free) ++all[at(pass)];
    pass = Free;
  }
  const int second = std::min(rank + 1, peak / 2), first = peak - second;
  int time = rank;
  bool fits = all[at(W0)] == 0;
  const auto put = [&](VPass pass, int most) {
    if (used[at(pass)] < std::min(most, all[at(pass)])) {
      fits = fits && at(time) < row.size() && row[at(time)] == Free;
      if (fits) row[at(time)] = pass;
      ++used[at(pass)];
      return true;
    }
    return false;
  };
  for (int i = 0; i < 2 * (ranks - 1 - rank); ++i, ++time) put(F0, first);
  for (int i = 0; i <= rank; ++i) {
    put(F0, first), ++time;
    put(F1, second), ++time;
  }
  while (fits && used != all) {
    put(I1, all[at(I1)]), ++time;
    put(W1, all[at(W1)]), ++time;
    if (!put(F1, all[at(F1)])) put(F0, all[at(F0)]);
    ++time;
  }
  return fits;
}

bool lay_warm_up(VRows& rows) {
  const int ranks = static_cast<int>(rows.size()), peak = std::min(peak_of(rows), 2 * ranks);
  for (int r = 0; r < ranks; ++r)
    if (!lay_warm_up(rows[at(r)], r, ranks, peak)) return false;
  return true;
}

/// Keeps the first micro-batches only.
void cut(VRows& rows, int micro_batches) {
  for (Row& row : rows) {
    Counts counts{};
    for (VPass& pass : row)
      if (pass != Free && counts[at(pass)]++ >= micro_batches) pass = Free;
  }
}

/// Few micro-batches need less memory than there is: ranks with room run their first weight gradients last.
void postpone_weights(VRows& rows, int peak) {
  int least = peak;
  std::size_t length = 0;
  for (const Row& row : rows) least = std::min(least, peak_of(row)), length = std::max(length, row.size());
  for (Row& row : rows) {
    int room = peak - peak_of(row);
    row.resize(length, Free);
    Row late;
    for (VPass& pass : row) {
      if (room == 0) break;
      if (is_weight(pass)) late.push_back(pass), pass = Free, --room;
    }
    row.insert(row.end(), late.begin(), late.end());
  }
}

/// Takes from the end of a row the gradients that are laid anew, then as many weight gradients at least.
Counts take_end(Row& row, int most_down, int most_up, int peak) {
  Counts taken{};
  for (std::size_t t = row.size(); t-- > 0;)
    if ((row[t] == I1 && taken[at(I1)] < most_down) || (row[t] == I0 && taken[at(I0)] < most_up))
      ++taken[at(row[t])], row[t] = Free;
  for (std::size_t t = row.size(); t-- > 0;) {
    if (taken[at(W1)] >= taken[at(I1)] && taken[at(W0)] >= taken[at(I0)] && taken[at(W1)] + taken[at(W0)] >= peak)
      break;
    if (is_weight(row[t])) ++taken[at(row[t])], row[t] = Free;
  }
  return taken;
}

/// Weight gradients that are due in free steps behind the last there is, chunk 1 first, and at the end.
void add_weights(Row& row) {
  const auto last = std::find_if(row.rbegin(), row.rend(), is_weight);
  const std::size_t from = static_cast<std::size_t>(row.rend() - last);
  int due[2] = {0, 0};  // Of chunk 1, of chunk 0.
  for (std::size_t t = 0; t < row.size(); ++t) {
    VPass& pass = row[t];
    if (pass == Free && t >= from) {
      if (due[0] > 0 || due[1] > 0) pass = due[0] > 0 ? W1 : W0;
    }
    if (pass == I1 || pass == I0) ++due[pass == I0];
    if (is_weight(pass)) --due[pass == W0];
  }
  for (int i = 0; i < due[0]; ++i) row.push_back(W1);
  for (int i = 0; i < due[1]; ++i) row.push_back(W0);
}

/// The last gradients laid anew, two steps apart, so that those up the ranks leave rank 0 as early as those down it let
/// them. False when there is no room.
bool lay_end(VRows& rows, int micro_batches) {
  const int ranks = static_cast<int>(rows.size()), peak = peak_of(rows);
  const int most_up = std::min((peak + 1) / 2, micro_batches), most_down = std::min(peak - most_up, micro_batches);
  int last = -1;
  for (int r = 0; r < ranks; ++r) {
    Row& row = rows[at(r)];
    if (r == 0)
      for (std::size_t t = 0; t < row.size(); ++t)
        if (row[t] == F1) last = static_cast<int>(t);
    const Counts taken = take_end(row, std::min(r + 1, most_down), most_up, peak);
    const auto put = [&](VPass pass, int t) {
      if (t < 0) return false;
      row.resize(std::max(row.size(), at(t + 1)), Free);
      const bool can = row[at(t)] == Free || (pass == I1 && is_weight(row[at(t)]));
      row[at(t)] = pass;
      return can;
    };
    for (int k = 0; k < taken[at(I0)]; ++k)
      if (!put(I0, last - r + 2 * ranks - 2 * k)) return false;
    for (int k = 0; k < taken[at(I1)]; ++k)
      if (!put(I1, last + 1 + r - 2 * k)) return false;
  }
  for (Row& row : rows) add_weights(row);
  return squeeze(rows, micro_batches);
}

/// Goes through all steps once and fills each bubble with the first later pass of the rank that can run there.
class Filler {
 public:
  Filler(VRows& rows, int micro_batches)
      : rows_(rows),
        peak_(peak_of(rows)),
        clock_(static_cast<int>(rows.size()), micro_batches),
        alive_(rows.size(), 0),
        places_(rows.size()) {
    for (const Row& row : rows) length_ = std::max(length_, row.size());
    for (std::size_t r = 0; r < rows.size(); ++r) {
      rows[r].resize(length_, Free);
      for (std::size_t t = 0; t < length_; ++t)
        if (rows[r][t] != Free) places_[r][at(rows[r][t])].push_back(t);
    }
  }

  void run() {
    for (std::size_t t = 0; t < length_; ++t)
      for (std::size_t r = 0; r < rows_.size(); ++r) {
        if (rows_[r][t] == Free) fill(static_cast<int>(r), t);
        if (rows_[r][t] != Free) note(static_cast<int>(r), t);
      }
  }

 private:
  void note(int r, std::size_t t) {
    const VPass pass = rows_[at(r)][t];
    alive_[at(r)] += activations(pass);
    clock_.run(r, pass, static_cast<int>(t));
  }

  /// Where the next pass of a kind stands if its input is there; the length if not.
  std::size_t next(int r, VPass pass, std::size_t t) const {
    const auto& places = places_[at(r)][at(pass)];
    const std::size_t count = at(clock_.count(r, pass));
    if (count == places.size()) return length_;
    const auto input = clock_.input(r, pass);
    return input && *input < static_cast<int>(t) ? places[count] : length_;
  }

  void fill(int r, std::size_t t) {
    Row& row = rows_[at(r)];
    std::array<std::size_t, kVPasses> later{};
    for (const VPass pass : {F0, F1, I1, I0, W1, W0}) later[at(pass)] = next(r, pass, t);
    std::sort(later.begin(), later.end());
    int change = 0, most = 0;
    std::size_t seen = t + 1;
    for (const std::size_t place : later) {
      if (place == length_) return;
      if (is_forward(row[place])) {
        if (alive_[at(r)] >= peak_) continue;
        for (; seen < place; ++seen) most = std::max(most, change += activations(row[seen]));
        if (alive_[at(r)] + most >= peak_) continue;
      }
      std::swap(row[t], row[place]);
      return;
    }
  }

  VRows& rows_;
  int peak_;
  Clock clock_;
  std::vector<int> alive_;
  std::vector<std::array<std::vector<std::size_t>, kVPasses>> places_;  ///< Of each kind, before anything moved.
  std::size_t length_ = 0;
};

/// Weight gradients in the order of their gradients. False unless every row has all passes, none before its input.
bool settle(VRows& rows, int micro_batches) {
  std::vector<std::deque<VPass>> due(rows.size());
  Clock clock(static_cast<int>(rows.size()), micro_batches);
  for (std::size_t t = 0; t < rows.front().size(); ++t)
    for (int r = 0; r < static_cast<int>(rows.size()); ++r) {
      VPass& pass = rows[at(r)][t];
      auto& queue = due[at(r)];
      if (pass == Free) continue;
      if (is_weight(pass)) {
        if (queue.empty()) return false;
        pass = queue.front();
        queue.pop_front();
      }
      if (pass == I0 || pass == I1) queue.push_back(weight_of(pass));
      const auto input = clock.input(r, pass);
      if (!input || *input >= static_cast<int>(t)) return false;
      clock.run(r, pass, static_cast<int>(t));
    }
  for (int r = 0; r < static_cast<int>(rows.size()); ++r)
    for (const VPass pass : {F0, F1, I1, I0, W1, W0})
      if (clock.count(r, pass) != micro_batches) return false;
  return true;
}

}  // namespace

bool is_forward(VPass pass) { return pass == F0 || pass == F1; }
int chunk_of(VPass pass) { return pass == F1 || pass == I1 || pass == W1 ? 1 : 0; }
int comes_from(VPass pass, int rank) { return is_weight(pass) ? -1 : goes_down(pass) ? rank - 1 : rank + 1; }

int peak_of(const std::vector<VPattern>& patterns, int micro_batches) {
  const int all = kPeriod * micro_batches;
  int peak = 0;
  for (const Counts& first : first_steps(patterns)) {
    // Behind the third of these the rank takes fewer activations in a period than it frees, before it no fewer.
    std::array<int, 4> turns{first[at(W1)], first[at(W0)], first[at(F0)] + all, first[at(F1)] + all};
    std::sort(turns.begin(), turns.end());
    for (int t = turns[2] - kPeriod; t < turns[2]; ++t) {
      int alive = 0;
      for (const VPass pass : {F0, F1, W1, W0}) {
        const int since = t - first[at(pass)];
        if (since >= 0) alive += activations(pass) * std::min(since / kPeriod + 1, micro_batches);
      }
      peak = std::max(peak, alive);
    }
  }
  return peak;
}

VAttempt rows_from(const std::vector<VPattern>& patterns, int micro_batches, int most) {
  const int ranks = static_cast<int>(patterns.size()), enough = std::max(micro_batches, 2 * ranks);
  int limit = peak_of(patterns, enough);
  if ((micro_batches == enough && limit > most) || limit > 2 * ranks) return {{}, limit};
  VRows rows = repeated(first_steps(patterns), enough);
  if (!squeeze(rows, enough) || !lay_warm_up(rows) || !squeeze(rows, enough)) return {{}, limit};
  const int peak = peak_of(rows);
  if (peak > limit) return {{}, limit};
  if (micro_batches < enough) {
    cut(rows, micro_batches);
    if (micro_batches <= ranks && 2 * micro_batches <= most) postpone_weights(rows, std::min(2 * ranks, peak));
    if (!squeeze(rows, micro_batches)) return {{}, limit};
    limit = peak_of(rows);
    if (limit > most) return {{}, limit};
  }
  if (!lay_end(rows, micro_batches)) return {{}, limit};
  Filler(rows, micro_batches).run();
  if (!settle(rows, micro_batches)) return {{}, limit};
  const int reached = peak_of(rows);
  if (reached > limit) return {{}, limit};
  return {std::move(rows), reached};
}

}  // namespace stagecraft
