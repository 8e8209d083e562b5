#pragma once

#include <map>
#include <string>
#include <vector>

#include "sim/output/picture.hpp"
#include "sim/sweep/table.hpp"

namespace stagecraft {

/// What a picture of a sweep shows. Empty names are chosen: the figure by what varies, the axes by their numbers of
/// values.
struct SweepView {
  enum class Kind { Lines, Map, Front } kind = Kind::Lines;
  std::string metric = {};                         ///< A name of metrics().
  std::string x = {};                              ///< The path across; lines and map.
  std::string by = {};                             ///< The path of the lines, or the path down the map.
  std::map<std::string, std::string> labels = {};  ///< Titles of axes, by path or by name of the metric.
};

/// Lines: a figure over the values of one path, a line for each value of another. Map: a color for each pair of values.
/// Front: the figure against the peak memory. Where several points fall together, the best one counts. InputError where
/// the sweep lacks what the view names, or nothing varies.
/// Throws the same errors before anything runs: the table may have points without results.
void check_sweep_view(const SweepTable&, const SweepView&);
Picture sweep_picture(const SweepTable&, const SweepView&, const PictureSize&);

}  // namespace stagecraft
