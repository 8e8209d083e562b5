// The steps of rows_from() (patterns.cpp, for `v-adaptive`) after it has repeated a pattern: another warm-up, fewer
// micro-batches, another end, and later passes moved into bubbles.

#include "sim/schedule/v_shape/reshape.hpp"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <utility>

namespace stagecraft {
namespace {

using enum VPass;
using PassCounts = EnumArray<VPass, int, kVPasses>;

bool earlier(const VStep& a, const VStep& b) { return a.time < b.time; }

/// Merges passes into a row. False when a step is taken already.
bool insert(VRow& row, const VRow& more) {
  VRow merged;
  merged.reserve(row.size() + more.size());
  std::merge(row.begin(), row.end(), more.begin(), more.end(), std::back_inserter(merged), earlier);
  row = std::move(merged);
  return std::adjacent_find(row.begin(), row.end(), [](const VStep& a, const VStep& b) { return a.time == b.time; }) ==
         row.end();
}

/// A warm-up with the given number of passes of each kind on a rank, at most `peak` activations.
VRow warm_up(const PassCounts& counts, int rank, int ranks, int peak) {
  VRow row;
  PassCounts used{};
  const int second = std::min(rank + 1, peak / 2), first = peak - second;
  int time = rank, left = 0;
  for (const int count : counts) left += count;
  const auto put = [&](VPass pass, int limit) {
    if (used[pass] >= std::min(limit, counts[pass])) return false;
    row.push_back({time, pass});
    ++used[pass], --left;
    return true;
  };
  for (int i = 0; i < 2 * (ranks - 1 - rank); ++i, ++time) put(F0, first);
  for (int i = 0; i <= rank; ++i) {
    put(F0, first), ++time;
    put(F1, second), ++time;
  }
  while (left > 0) {
    put(I1, counts[I1]), ++time;
    put(W1, counts[W1]), ++time;
    if (!put(F1, counts[F1])) put(F0, counts[F0]);
    ++time;
  }
  return row;
}

bool rebuild_warm_up(VRow& row, int rank, int ranks, int peak) {
  const int end = end_of(row);
  const auto turn = std::find_if(row.begin(), row.end(), [](const VStep& step) { return step.pass == I0; });
  PassCounts counts{};
  for (auto step = row.begin(); step != turn; ++step) ++counts[step->pass];
  if (counts[W0] > 0) return false;
  row.erase(row.begin(), turn);
  const VRow laid = warm_up(counts, rank, ranks, peak);
  return end_of(laid) <= end && insert(row, laid);
}

/// Removes passes from the end of a row; wanted(step) is called from the last pass on.
template <class Wanted>
void take_from_end(VRow& row, const Wanted& wanted) {
  row.erase(row.begin(), std::remove_if(row.rbegin(), row.rend(), wanted).base());
}

/// Removes from the end of a row the gradients that get other steps, then at least as many weight gradients.
PassCounts take_end(VRow& row, int most_down, int most_up, int peak) {
  PassCounts taken{};
  take_from_end(row, [&](const VStep& step) {
    const bool wanted = (step.pass == I1 && taken[I1] < most_down) || (step.pass == I0 && taken[I0] < most_up);
    if (wanted) ++taken[step.pass];
    return wanted;
  });
  take_from_end(row, [&](const VStep& step) {
    const bool enough = taken[W1] >= taken[I1] && taken[W0] >= taken[I0] && taken[W1] + taken[W0] >= peak;
    const bool wanted = is_weight(step.pass) && !enough;
    if (wanted) ++taken[step.pass];
    return wanted;
  });
  return taken;
}

/// Adds the weight gradients that are due in free steps after the last weight gradient of the row, chunk 1 first, and
/// at its end.
void add_weights(VRow& row) {
  const auto last = std::find_if(row.rbegin(), row.rend(), [](const VStep& step) { return is_weight(step.pass); });
  int free = last == row.rend() ? 0 : last->time + 1;
  int due[2] = {0, 0};  // [chunk]
  VRow filled;
  const auto add_one = [&] {
    const int chunk = due[1] > 0 ? 1 : 0;
    filled.push_back({free++, chunk == 1 ? W1 : W0});
    --due[chunk];
  };
  for (const VStep& step : row) {
    while (free < step.time && due[0] + due[1] > 0) add_one();
    free = std::max(free, step.time + 1);
    filled.push_back(step);
    if (is_input_gradient(step.pass)) ++due[chunk_of(step.pass)];
    if (is_weight(step.pass)) --due[chunk_of(step.pass)];
  }
  while (due[0] + due[1] > 0) add_one();
  row = std::move(filled);
}

/// Adds `count_up` gradients of chunk 0 and `count_down` of chunk 1, two steps apart each, the last ones at the given
/// steps. Gradients of chunk 1 take the place of weight gradients.
bool add_gradients(VRow& row, int last_up, int count_up, int last_down, int count_down) {
  VRow laid;
  for (int k = 0; k < count_up; ++k) laid.push_back({last_up - 2 * k, I0});
  for (int k = 0; k < count_down; ++k) laid.push_back({last_down - 2 * k, I1});
  std::sort(laid.begin(), laid.end(), earlier);
  if (!laid.empty() && laid.front().time < 0) return false;
  std::erase_if(row, [&](const VStep& step) {
    const int before = last_down - step.time;
    return is_weight(step.pass) && before >= 0 && before % 2 == 0 && before < 2 * count_down;
  });
  return insert(row, laid);
}

/// Reads rows step by step and moves later passes of a rank into its bubbles.
class BubbleFiller {
 public:
  BubbleFiller(const VRows& rows, int micro_batches)
      : rows_(rows), peak_(peak_of(rows)), clock_(static_cast<int>(rows.size()), micro_batches), ranks_(rows.size()) {
    for (int r = 0; r < std::ssize(rows); ++r) {
      ranks_[r].result.reserve(rows[r].size());
      for (const VPass pass : kAllVPasses) ranks_[r].place[pass] = next_place(rows[r], pass, 0);
    }
  }

  VRows filled() {
    std::vector<int> awake(rows_.size()), now;
    std::iota(awake.begin(), awake.end(), 0);
    const std::vector<int> order = ranks_by_step(rows_);
    std::vector<std::size_t> seen(rows_.size(), 0);
    auto rank = order.begin();
    const auto time = [&] { return rows_[*rank][seen[*rank]].time; };
    for (int t = 0; rank != order.end() || !awake.empty(); ++t) {
      if (awake.empty()) t = time();
      now.swap(awake);
      awake.clear();
      for (; rank != order.end() && time() == t; ++seen[*rank++]) now.push_back(*rank);
      for (const int r : now)
        if (fill_step(r, t)) wake(r, awake);
    }
    VRows result;
    for (Rank& one : ranks_) result.push_back(std::move(one.result));
    return result;
  }

 private:
  struct Rank {
    EnumArray<VPass, std::size_t, kVPasses> place{};  ///< Where the next pass of each kind stands.
    std::size_t next = 0;                             ///< The first place whose step has not passed.
    int visited = -1, alive = 0;
    VRow result;
  };

  static std::size_t next_place(const VRow& row, VPass pass, std::size_t place) {
    while (place < row.size() && row[place].pass != pass) ++place;
    return place;
  }

  void wake(int r, std::vector<int>& awake) const {
    const int last = static_cast<int>(rows_.size()) - 1;
    for (int other = std::max(r - 1, 0); other <= std::min(r + 1, last); ++other) awake.push_back(other);
  }

  bool ran(const Rank& rank, const VRow& row, std::size_t place) const { return place < rank.place[row[place].pass]; }

  /// Runs the pass of the step or a later one; false when there is none.
  bool fill_step(int r, int t) {
    Rank& rank = ranks_[r];
    const VRow& row = rows_[r];
    if (std::exchange(rank.visited, t) == t) return false;
    while (rank.next < row.size() && row[rank.next].time < t) ++rank.next;
    const bool has_own = rank.next < row.size() && row[rank.next].time == t && !ran(rank, row, rank.next);
    const std::size_t place = has_own ? rank.next : later(r, t);
    if (place == row.size()) return false;
    const VPass pass = row[place].pass;
    rank.place[pass] = next_place(row, pass, place + 1);
    rank.alive += activations(pass);
    rank.result.push_back({t, pass});
    clock_.run(r, pass, t);
    return true;
  }

  /// The first later pass that can run; the size of the row for none.
  std::size_t later(int r, int t) const {
    const Rank& rank = ranks_[r];
    const VRow& row = rows_[r];
    EnumArray<VPass, std::size_t, kVPasses> places = rank.place;
    for (const VPass pass : kAllVPasses) {
      const auto input = clock_.input(r, pass);
      if (!input || *input >= t) places[pass] = row.size();
    }
    std::sort(places.begin(), places.end());
    int change = 0, peak = 0;
    std::size_t seen = rank.next;
    for (const std::size_t place : places) {
      if (place == row.size() || !is_forward(row[place].pass)) return place;
      if (rank.alive >= peak_) continue;
      for (; seen < place; ++seen)
        if (!ran(rank, row, seen)) peak = std::max(peak, change += activations(row[seen].pass));
      if (rank.alive + peak < peak_) return place;
    }
    return row.size();
  }

  const VRows& rows_;
  int peak_;
  VClock<int> clock_;
  std::vector<Rank> ranks_;
};

}  // namespace

bool rebuild_warm_up(VRows& rows) {
  const int ranks = static_cast<int>(rows.size()), peak = std::min(peak_of(rows), 2 * ranks);
  for (int r = 0; r < ranks; ++r)
    if (!rebuild_warm_up(rows[r], r, ranks, peak)) return false;
  return true;
}

void cut(VRows& rows, int micro_batches) {
  for (VRow& row : rows) {
    PassCounts counts{};
    std::erase_if(row, [&](const VStep& step) { return counts[step.pass]++ >= micro_batches; });
  }
}

void postpone_weights(VRows& rows, int peak) {
  const int end = end_of(rows);
  for (VRow& row : rows) {
    const int room = peak - peak_of(row);
    VRow late;
    std::erase_if(row, [&](const VStep& step) {
      const int count = static_cast<int>(late.size());
      if (count == room || !is_weight(step.pass)) return false;
      late.push_back({end + count, step.pass});
      return true;
    });
    row.insert(row.end(), late.begin(), late.end());
  }
}

bool rebuild_end(VRows& rows, int micro_batches) {
  const int ranks = static_cast<int>(rows.size()), peak = peak_of(rows);
  const int most_up = std::min((peak + 1) / 2, micro_batches), most_down = std::min(peak - most_up, micro_batches);
  int last = -1;
  for (const VStep& step : rows.front())
    if (step.pass == F1) last = step.time;
  for (int r = 0; r < ranks; ++r) {
    VRow& row = rows[r];
    const PassCounts taken = take_end(row, std::min(r + 1, most_down), most_up, peak);
    if (!add_gradients(row, last - r + 2 * ranks, taken[I0], last + 1 + r, taken[I1])) return false;
    add_weights(row);
  }
  return squeeze(rows, micro_batches);
}

void fill_bubbles(VRows& rows, int micro_batches) { rows = BubbleFiller(rows, micro_batches).filled(); }

}  // namespace stagecraft
