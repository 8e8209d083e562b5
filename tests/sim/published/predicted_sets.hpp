#pragma once

#include <map>
#include <string>
#include <vector>

#include "sim/experiment/version.hpp"
#include "sim/published/simulated_predictions.hpp"
#include "tests/support/trials.hpp"

namespace stagecraft::test {

/// The sets of scenarios/predictions, predicted; without all trials those that are simulated quickly. Test programs of
/// one build share a cache.
inline const std::vector<PredictionSet>& predicted_sets() {
  static const std::vector<PredictionSet> predicted = [] {
    std::vector<PredictionSet> sets = load_all_predictions();
    if (!all_trials())
      std::erase_if(sets, [](const PredictionSet& set) {
        return set.name == "automodel" || set.name.starts_with("megatron-bridge");
      });
    PredictionCache cache("build/predictions_test.csv", build_name());
    predict(sets, cache);
    return sets;
  }();
  return predicted;
}

inline const PredictionSet& predicted_set(const std::string& name) {
  for (const PredictionSet& set : predicted_sets())
    if (set.name == name) return set;
  throw InputError("no set " + name);
}

/// Sets a field of the row of a run.
inline void set_field(MeasuredRun& run, const std::string& field, int value) {
  *run.row.find(field) = config::Value::scalar(std::to_string(value), {});
}

}  // namespace stagecraft::test
