#pragma once

#include <cstdint>
#include <span>

#include "sim/plan/edgepipe/problem.hpp"

namespace stagecraft::edgepipe {

/// The longest that one stage and one hop may take.
struct Limits {
  double stage, hop;
};

/// Numbers from 0 to `layers`, as bits of 64-bit words.
using Cuts = std::vector<std::uint64_t>;

inline bool has(std::span<const std::uint64_t> cuts, int cut) {
  return (cuts[static_cast<std::size_t>(cut) / 64] >> (cut % 64) & 1) != 0;
}

template <class Visit>
void for_each(std::span<const std::uint64_t> cuts, Visit&& visit) {
  for (std::size_t w = 0; w < cuts.size(); ++w)
    for (std::uint64_t rest = cuts[w]; rest != 0; rest &= rest - 1)
      visit(static_cast<int>(w * 64) + __builtin_ctzll(rest));
}

/// Which stages each kind of machine may run. A hop is as slow as the slower of its two links, so each end may be held
/// against the limit on its own: whether a stage may stand in a chain depends on the stage alone.
class Allowed {
 public:
  Allowed(const Problem&, Limits);

  int words() const { return words_; }
  /// Where the machines may begin a stage.
  const Cuts& starts(int machines) const { return starts_[machines]; }
  /// Where a stage of theirs that begins at `from` may end.
  std::span<const std::uint64_t> ends(int machines, int from) const {
    return {&ends_[(machines * layers_ + from) * words_], static_cast<std::size_t>(words_)};
  }

 private:
  int layers_, words_;
  std::vector<Cuts> starts_;
  Cuts ends_;
};

}  // namespace stagecraft::edgepipe
