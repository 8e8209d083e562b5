#pragma once

#include <string>
#include <vector>

#include "sim/config/fields.hpp"
#include "sim/core/json.hpp"
#include "sim/output/table.hpp"
#include "sim/sweep/table.hpp"

namespace stagecraft {

/// How values of one metric differ. The standard deviation is the estimate from a sample: over n - 1.
struct ValueSpread {
  int count = 0;
  double mean = 0, min = 0, max = 0, standard_deviation = 0;
};
ValueSpread spread_of(const std::vector<double>&);

/// Points that differ in their seeds only, of which two or more ran.
struct SeedGroup {
  std::string label;  ///< Settings without the seeds.
  std::vector<const SweepRow*> rows;
};
/// In the order of the sweep. A setting is a seed if the last field of its path is `seed`.
std::vector<SeedGroup> seed_groups(const SweepTable&);

/// For people: the period and the loss of each group. Empty where no point has a second seed.
std::string seed_statistics_text(const SweepTable&, const TextLayout&);

/// An object for each group, with every known metric.
JsonArray seed_statistics_json(const SweepTable&);
/// The member `seed_statistics` of sweep-results/1.
config::Field seed_statistics_field();

}  // namespace stagecraft
