// Rule: experts that get unequal numbers of rows.

#include <fmt/core.h>

#include "sim/config/override.hpp"
#include "sim/core/text.hpp"
#include "sim/diagnosis/finding.hpp"
#include "sim/diagnosis/rule.hpp"

namespace stagecraft::diagnosis {

/// Experts of one device that get more rows than the mean: all devices of a group wait for that one.
std::optional<Finding> expert_imbalance(const DiagnosisInput& in) {
  constexpr const char* kPath = "model.experts.imbalance";
  const config::Value* field = config::get_path(*in.experiment().source, kPath);
  if (!field || in.plan().stages.front().shape.degrees.expert < 2) return {};
  const double imbalance = config::as_real(*field);
  if (imbalance <= 1) return {};
  Suggestion even{{fmt::format("{}=1", kPath)}, "an even load, as a loss term or a bias that balances it gives"};
  in.changed.simulate(even);
  // Rows of experts are at most all of the work, so this much is at most what they cost.
  const Seconds lost = even.run ? in.period - even.run->period : Seconds{};
  Finding f = finding(in, "expert-imbalance", kPath, lost);
  f.sentence = fmt::format(
      "The busiest device of an expert group gets {:.3g} times the rows of the mean, and the "
      "others wait for it: {} of the period.",
      imbalance, percent(f.share));
  f.suggestions.push_back(std::move(even));
  return f;
}

}  // namespace stagecraft::diagnosis
