#include "sim/schedule/v_ends.hpp"

#include <algorithm>
#include <iterator>

#include "sim/core/id_vector.hpp"

namespace stagecraft {
namespace {

using enum VPass;
using Counts = EnumArray<VPass, int, kVPasses>;

bool earlier(const VStep& a, const VStep& b) { return a.time < b.time; }

/// False when a step is taken already.
bool lay(VRow& row, const VRow& more) {
  VRow all;
  all.reserve(row.size() + more.size());
  std::merge(row.begin(), row.end(), more.begin(), more.end(), std::back_inserter(all), earlier);
  row = std::move(all);
  return std::adjacent_find(row.begin(), row.end(), [](const VStep& a, const VStep& b) { return a.time == b.time; }) ==
         row.end();
}

/// So many passes on a rank with so many ranks, at most `peak` activations.
VRow warm_up(const Counts& all, int rank, int ranks, int peak) {
  VRow row;
  Counts used{};
  const int second = std::min(rank + 1, peak / 2), first = peak - second;
  int time = rank, left = 0;
  for (const int count : all) left += count;
  const auto put = [&](VPass pass, int most) {
    if (used[pass] >= std::min(most, all[pass])) return false;
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
    put(I1, all[I1]), ++time;
    put(W1, all[W1]), ++time;
    if (!put(F1, all[F1])) put(F0, all[F0]);
    ++time;
  }
  return row;
}

bool lay_warm_up(VRow& row, int rank, int ranks, int peak) {
  const int end = end_of(row);
  const auto turn = std::find_if(row.begin(), row.end(), [](const VStep& step) { return step.pass == I0; });
  Counts all{};
  for (auto step = row.begin(); step != turn; ++step) ++all[step->pass];
  if (all[W0] > 0) return false;
  row.erase(row.begin(), turn);
  const VRow laid = warm_up(all, rank, ranks, peak);
  return end_of(laid) <= end && lay(row, laid);
}

/// Takes from the end of a row what is wanted; asked from the last pass on.
template <class Wanted>
void take_from_end(VRow& row, const Wanted& wanted) {
  row.erase(row.begin(), std::remove_if(row.rbegin(), row.rend(), wanted).base());
}

/// Takes from the end of a row the gradients that are laid anew, then as many weight gradients at least.
Counts take_end(VRow& row, int most_down, int most_up, int peak) {
  Counts taken{};
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

/// Weight gradients that are due in free steps behind the last there is, chunk 1 first, and at the end.
void add_weights(VRow& row) {
  const auto last = std::find_if(row.rbegin(), row.rend(), [](const VStep& step) { return is_weight(step.pass); });
  int free = last == row.rend() ? 0 : last->time + 1;
  int due[2] = {0, 0};  // Of chunk 0, of chunk 1.
  VRow all;
  const auto add_one = [&] {
    const int chunk = due[1] > 0 ? 1 : 0;
    all.push_back({free++, chunk == 1 ? W1 : W0});
    --due[chunk];
  };
  for (const VStep& step : row) {
    while (free < step.time && due[0] + due[1] > 0) add_one();
    free = std::max(free, step.time + 1);
    all.push_back(step);
    if (step.pass == I1 || step.pass == I0) ++due[chunk_of(step.pass)];
    if (is_weight(step.pass)) --due[chunk_of(step.pass)];
  }
  while (due[0] + due[1] > 0) add_one();
  row = std::move(all);
}

/// So many gradients of chunk 0 and of chunk 1, each two steps apart, the last ones at these steps. Those of chunk 1
/// take the place of weight gradients.
bool lay_gradients(VRow& row, int last_up, int count_up, int last_down, int count_down) {
  VRow laid;
  for (int k = 0; k < count_up; ++k) laid.push_back({last_up - 2 * k, I0});
  for (int k = 0; k < count_down; ++k) laid.push_back({last_down - 2 * k, I1});
  std::sort(laid.begin(), laid.end(), earlier);
  if (!laid.empty() && laid.front().time < 0) return false;
  std::erase_if(row, [&](const VStep& step) {
    const int before = last_down - step.time;
    return is_weight(step.pass) && before >= 0 && before % 2 == 0 && before < 2 * count_down;
  });
  return lay(row, laid);
}

}  // namespace

bool lay_warm_up(VRows& rows) {
  const int ranks = static_cast<int>(rows.size()), peak = std::min(peak_of(rows), 2 * ranks);
  for (int r = 0; r < ranks; ++r)
    if (!lay_warm_up(rows[r], r, ranks, peak)) return false;
  return true;
}

void cut(VRows& rows, int micro_batches) {
  for (VRow& row : rows) {
    Counts counts{};
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

bool lay_end(VRows& rows, int micro_batches) {
  const int ranks = static_cast<int>(rows.size()), peak = peak_of(rows);
  const int most_up = std::min((peak + 1) / 2, micro_batches), most_down = std::min(peak - most_up, micro_batches);
  int last = -1;
  for (const VStep& step : rows.front())
    if (step.pass == F1) last = step.time;
  for (int r = 0; r < ranks; ++r) {
    VRow& row = rows[r];
    const Counts taken = take_end(row, std::min(r + 1, most_down), most_up, peak);
    if (!lay_gradients(row, last - r + 2 * ranks, taken[I0], last + 1 + r, taken[I1])) return false;
    add_weights(row);
  }
  return squeeze(rows, micro_batches);
}

}  // namespace stagecraft
