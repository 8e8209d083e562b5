#include "sim/schedule/v_repeat.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "sim/core/id_vector.hpp"
#include "sim/schedule/v_ends.hpp"
#include "sim/schedule/v_fill.hpp"

namespace stagecraft {
namespace {

using enum VPass;
using Counts = EnumArray<VPass, int, kVPasses>;

constexpr int kPeriod = 6;

/// The first step of each kind of pass on each rank: at its place of the period, behind the input of micro-batch 0.
std::vector<Counts> first_steps(const std::vector<VPattern>& patterns) {
  const int ranks = static_cast<int>(patterns.size());
  std::vector<Counts> first(patterns.size());
  const auto put = [&](int r, VPass pass, int from) {
    const int place = patterns[r][pass];
    return first[r][pass] = from + (place - from % kPeriod + kPeriod) % kPeriod;
  };
  int time = 0;
  for (const VPass pass : {F0, F1, I1, I0})
    for (int i = 0; i < ranks; ++i) {
      const int r = comes_from(pass, 1) == 0 ? i : ranks - 1 - i;
      time = put(r, pass, time) + 1;
      if (!is_forward(pass)) put(r, pass == I1 ? W1 : W0, time);
    }
  return first;
}

/// In the order of their steps; no two kinds share one, each having its own of the period.
VRow repeated(const Counts& first, int micro_batches) {
  VRow row;
  row.reserve(kVPasses * micro_batches);
  Counts next = first;
  for (int left = kVPasses * micro_batches; left > 0; --left) {
    const auto kind = std::min_element(next.begin(), next.end()) - next.begin();
    const VPass pass = static_cast<VPass>(kind);
    int& time = next[pass];
    row.push_back({time, pass});
    time += kPeriod;
    if (time == first[pass] + kPeriod * micro_batches) time = std::numeric_limits<int>::max();
  }
  return row;
}

/// Squeezed, with the warm-up laid anew; nothing where the steps cannot be done.
std::optional<VRows> laid(const std::vector<VPattern>& patterns, int micro_batches) {
  VRows rows;
  for (const Counts& first : first_steps(patterns)) rows.push_back(repeated(first, micro_batches));
  if (!squeeze(rows, micro_batches) || !lay_warm_up(rows) || !squeeze(rows, micro_batches)) return {};
  return rows;
}

}  // namespace

int repetitions(int ranks, int micro_batches) {
  constexpr int kBeyond = 64;
  return std::max(micro_batches, std::min(2 * ranks, micro_batches + kBeyond));
}

int peak_of(const std::vector<VPattern>& patterns, int micro_batches) {
  const int all = kPeriod * micro_batches;
  int peak = 0;
  for (const Counts& first : first_steps(patterns)) {
    // Behind the third of these the rank takes fewer activations in a period than it frees, before it no fewer.
    std::array<int, 4> turns{first[W1], first[W0], first[F0] + all, first[F1] + all};
    std::sort(turns.begin(), turns.end());
    for (int t = turns[2] - kPeriod; t < turns[2]; ++t) {
      int alive = 0;
      for (const VPass pass : {F0, F1, W1, W0}) {
        const int since = t - first[pass];
        if (since >= 0) alive += activations(pass) * std::min(since / kPeriod + 1, micro_batches);
      }
      peak = std::max(peak, alive);
    }
  }
  return peak;
}

VAttempt rows_from(const std::vector<VPattern>& patterns, int micro_batches, int most) {
  const int ranks = static_cast<int>(patterns.size()), repeats = repetitions(ranks, micro_batches);
  int limit = peak_of(patterns, repeats);
  if ((micro_batches == repeats && limit > most) || limit > 2 * ranks) return {{}, limit};
  auto rows = laid(patterns, repeats);
  if (!rows) return {{}, limit};
  const int peak = peak_of(*rows);
  if (peak > limit) return {{}, limit};
  if (micro_batches < repeats) {
    cut(*rows, micro_batches);
    if (micro_batches <= ranks && 2 * micro_batches <= most) postpone_weights(*rows, std::min(2 * ranks, peak));
    if (!squeeze(*rows, micro_batches)) return {{}, limit};
    limit = peak_of(*rows);
    if (limit > most) return {{}, limit};
  }
  if (!lay_end(*rows, micro_batches)) return {{}, limit};
  fill_bubbles(*rows, micro_batches);
  if (!settle(*rows, micro_batches)) return {{}, limit};
  const int reached = peak_of(*rows);
  if (reached > limit) return {{}, limit};
  return {std::move(rows), reached};
}

}  // namespace stagecraft
