#include "sim/schedule/v_patterns.hpp"

#include <algorithm>
#include <utility>

namespace stagecraft {
namespace {

constexpr int kPeriod = 6;

/// Puts both weight gradients on the first free step behind their gradients; nothing when two passes share a step.
std::optional<VPattern> with_weights(VPattern p) {
  std::array<bool, kPeriod> taken{};
  for (const VPass pass : {VPass::F0, VPass::F1, VPass::I1, VPass::I0}) {
    bool& step = taken[p[pass]];
    if (step) return {};
    step = true;
  }
  for (const auto& [gradient, weight] : {std::pair{VPass::I1, VPass::W1}, std::pair{VPass::I0, VPass::W0}}) {
    int step = p[gradient];
    while (taken[step]) step = (step + 1) % kPeriod;
    p[weight] = step, taken[step] = true;
  }
  return p;
}

/// So many ranks further, without weight gradients.
VPattern moved(VPattern p, int down, int ranks) {
  for (const VPass pass : {VPass::F0, VPass::I1}) p[pass] = (p[pass] + down * ranks) % kPeriod;
  for (const VPass pass : {VPass::F1, VPass::I0}) p[pass] = (p[pass] + (kPeriod - 1) * ranks) % kPeriod;
  return p;
}

/// Whether so many ranks may follow: behind a period of them comes the same again.
bool apart(const VPattern& p, int down, int ranks) {
  for (int r = 1; r <= std::min(ranks, kPeriod); ++r)
    if (!with_weights(moved(p, down, r))) return false;
  return true;
}

}  // namespace

std::vector<VPattern> v_tops() {
  std::vector<VPattern> all;
  for (int f = 1; f < kPeriod; ++f)
    for (int down = 1; down < kPeriod; ++down)
      for (int up = 1; up < kPeriod; ++up)
        if (const auto whole = with_weights({0, f, down, up, 0, 0})) all.push_back(*whole);
  return all;
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

bool passes_apart(const VSlope& slope, int ranks) {
  const int before = std::min(slope.turn, ranks - 1);
  return apart(slope.top, slope.first, before) &&
         apart(moved(slope.top, slope.first, before), slope.second, ranks - 1 - before);
}

}  // namespace stagecraft
