// For `v-adaptive`: the patterns of six steps from which its search chooses, and rows_from(), which repeats one pattern
// for each rank and reshapes the rows (another warm-up, another end, fewer bubbles).

#include "sim/schedule/v_shape/patterns.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "sim/schedule/v_shape/reshape.hpp"

namespace stagecraft {
namespace {

using enum VPass;
using PassCounts = EnumArray<VPass, int, kVPasses>;

constexpr int kPatternPeriod = 6;

/// Puts both weight gradients on the first free step after their gradients; nothing when two passes share a step.
std::optional<VPattern> with_weights(VPattern p) {
  std::array<bool, kPatternPeriod> taken{};
  for (const VPass pass : {VPass::F0, VPass::F1, VPass::I1, VPass::I0}) {
    bool& step = taken[p[pass]];
    if (step) return {};
    step = true;
  }
  for (const auto& [gradient, weight] : {std::pair{VPass::I1, VPass::W1}, std::pair{VPass::I0, VPass::W0}}) {
    int step = p[gradient];
    while (taken[step]) step = (step + 1) % kPatternPeriod;
    p[weight] = step, taken[step] = true;
  }
  return p;
}

/// The pattern that is `ranks` ranks further down, without weight gradients.
VPattern moved(VPattern p, int down, int ranks) {
  for (const VPass pass : {VPass::F0, VPass::I1}) p[pass] = (p[pass] + down * ranks) % kPatternPeriod;
  for (const VPass pass : {VPass::F1, VPass::I0}) p[pass] = (p[pass] + (kPatternPeriod - 1) * ranks) % kPatternPeriod;
  return p;
}

/// Whether `ranks` ranks may follow: after a period of them the patterns repeat.
bool fit_together(const VPattern& p, int down, int ranks) {
  for (int r = 1; r <= std::min(ranks, kPatternPeriod); ++r)
    if (!with_weights(moved(p, down, r))) return false;
  return true;
}

/// The first step of each kind of pass on each rank: at its place of the period, after the input of micro-batch 0.
std::vector<PassCounts> first_steps(const std::vector<VPattern>& patterns) {
  const int ranks = static_cast<int>(patterns.size());
  std::vector<PassCounts> first(patterns.size());
  const auto put = [&](int r, VPass pass, int from) {
    const int place = patterns[r][pass];
    return first[r][pass] = from + (place - from % kPatternPeriod + kPatternPeriod) % kPatternPeriod;
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

/// The passes in the order of their steps. No two kinds share a step, since each has its own step of the period.
VRow repeated(const PassCounts& first, int micro_batches) {
  VRow row;
  row.reserve(kVPasses * micro_batches);
  PassCounts next = first;
  for (int left = kVPasses * micro_batches; left > 0; --left) {
    const VPass pass = kAllVPasses[std::min_element(next.begin(), next.end()) - next.begin()];
    int& time = next[pass];
    row.push_back({time, pass});
    time += kPatternPeriod;
    if (time == first[pass] + kPatternPeriod * micro_batches) time = std::numeric_limits<int>::max();
  }
  return row;
}

/// The repeated patterns, squeezed, with another warm-up; nothing when a step fails.
std::optional<VRows> repeated(const std::vector<VPattern>& patterns, int micro_batches) {
  VRows rows;
  for (const PassCounts& first : first_steps(patterns)) rows.push_back(repeated(first, micro_batches));
  if (!squeeze(rows, micro_batches) || !rebuild_warm_up(rows) || !squeeze(rows, micro_batches)) return {};
  return rows;
}

}  // namespace

std::vector<VPattern> v_tops() {
  std::vector<VPattern> patterns;
  for (int f = 1; f < kPatternPeriod; ++f)
    for (int down = 1; down < kPatternPeriod; ++down)
      for (int up = 1; up < kPatternPeriod; ++up)
        if (const auto whole = with_weights({0, f, down, up, 0, 0})) patterns.push_back(*whole);
  return patterns;
}

std::optional<std::vector<VPattern>> patterns_of(const VSlope& slope, int ranks) {
  std::vector<VPattern> patterns{slope.top};
  for (int r = 0; r + 1 < ranks; ++r) {
    const auto next = with_weights(moved(patterns.back(), r < slope.turn ? slope.first : slope.second, 1));
    if (!next) return {};
    patterns.push_back(*next);
  }
  return patterns;
}

bool has_patterns(const VSlope& slope, int ranks) {
  const int before = std::min(slope.turn, ranks - 1);
  return fit_together(slope.top, slope.first, before) &&
         fit_together(moved(slope.top, slope.first, before), slope.second, ranks - 1 - before);
}

int repetitions(int ranks, int micro_batches) {
  constexpr int kBeyond = 64;
  return std::max(micro_batches, std::min(2 * ranks, micro_batches + kBeyond));
}

int peak_of(const std::vector<VPattern>& patterns, int micro_batches) {
  const int length = kPatternPeriod * micro_batches;
  int peak = 0;
  for (const PassCounts& first : first_steps(patterns)) {
    // After the third of these steps the rank takes fewer activations in a period than it frees, before it no fewer.
    std::array<int, 4> turns{first[W1], first[W0], first[F0] + length, first[F1] + length};
    std::sort(turns.begin(), turns.end());
    for (int t = turns[2] - kPatternPeriod; t < turns[2]; ++t) {
      int alive = 0;
      for (const VPass pass : {F0, F1, W1, W0}) {
        const int since = t - first[pass];
        if (since >= 0) alive += activations(pass) * std::min(since / kPatternPeriod + 1, micro_batches);
      }
      peak = std::max(peak, alive);
    }
  }
  return peak;
}

VAttempt rows_from(const std::vector<VPattern>& patterns, int micro_batches, int max_peak) {
  const int ranks = static_cast<int>(patterns.size()), repeats = repetitions(ranks, micro_batches);
  int limit = peak_of(patterns, repeats);
  if ((micro_batches == repeats && limit > max_peak) || limit > 2 * ranks) return {{}, limit};
  auto rows = repeated(patterns, repeats);
  if (!rows) return {{}, limit};
  const int peak = peak_of(*rows);
  if (peak > limit) return {{}, limit};
  if (micro_batches < repeats) {
    cut(*rows, micro_batches);
    if (micro_batches <= ranks && 2 * micro_batches <= max_peak) postpone_weights(*rows, std::min(2 * ranks, peak));
    if (!squeeze(*rows, micro_batches)) return {{}, limit};
    limit = peak_of(*rows);
    if (limit > max_peak) return {{}, limit};
  }
  if (!rebuild_end(*rows, micro_batches)) return {{}, limit};
  fill_bubbles(*rows, micro_batches);
  if (!order_weights(*rows, micro_batches)) return {{}, limit};
  const int reached = peak_of(*rows);
  if (reached > limit) return {{}, limit};
  return {std::move(rows), reached};
}

}  // namespace stagecraft
