#pragma once

#include <optional>
#include <vector>

namespace stagecraft::msr {

/// What one layer of a stage takes and keeps in one of its variants.
struct Way {
  double seconds;
  double in_flight, once;  ///< Bytes for each micro-batch in flight, and beside those.
  double in_turn = 0;      ///< Bytes beside those, of one layer of the stage at a time: the largest counts.
};
/// ways[layer of the stage][variant].
using Ways = std::vector<std::vector<Way>>;

double memory_of(const Ways&, const std::vector<int>& chosen, int in_flight);
double seconds_of(const Ways&, const std::vector<int>& chosen);
std::vector<int> fastest_of(const Ways&);

/// A variant for each layer, so that the stage fits: from the fastest on, the change that costs least time for each
/// byte it saves (Piper, section 4). Nothing when even the smallest do not fit. It knows no bytes in turn.
std::optional<std::vector<int>> fit_layers(const Ways&, int in_flight, double memory);

/// The fastest variant in which the whole stage fits.
std::optional<std::vector<int>> fit_stage(const Ways&, int in_flight, double memory);

}  // namespace stagecraft::msr
