#pragma once

#include <cstdint>
#include <functional>

#include "sim/published/published.hpp"

namespace stagecraft {

/// One published figure next to ours.
struct Reproduced {
  enum class Verdict { Met, Missed, Shown, Failed };  ///< Shown: not judged. Failed: it did not run.

  std::size_t table = 0, row = 0, column = 0;
  double published = 0, ours = 0;
  Verdict verdict = Verdict::Shown;
  std::string problem;  ///< Why it did not run.

  double deviation() const { return published == 0 ? ours : ours / published - 1; }
};

struct Reproduction {
  Published published;
  std::vector<Reproduced> cells;  ///< Ordered by table, row and column.

  int count(Reproduced::Verdict) const;
  /// How a figure comes out otherwise than the file says: missed or met now, off by another amount, or failed. Empty
  /// where it comes out so.
  std::string unexpected(const Reproduced&) const;
  int unexpected() const;
};

/// Runs everything that a publication is compared with; a cell that cannot run is one of the results. `after_each` is
/// called after each figure.
Reproduction reproduce(
    Published, const std::function<void()>& after_each = [] {});
/// How many figures it compares.
std::int64_t figure_count(const Published&);

}  // namespace stagecraft
