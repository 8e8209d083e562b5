#include "sim/published/expected_error.hpp"

#include <fmt/format.h>

#include "sim/core/text.hpp"

namespace stagecraft {
namespace {

constexpr int kFewestRuns = 5;  // Fewer runs say little about a format.

/// Formats of 16 bits have the same rate and were calibrated together.
bool same_format(NumberFormat a, NumberFormat b) {
  const auto wide = [](NumberFormat f) { return f == NumberFormat::Fp16 ? NumberFormat::Bf16 : f; };
  return wide(a) == wide(b);
}

}  // namespace

ExpectedError expected_error(const Experiment& e) {
  const std::vector<PredictionSet> sets = load_all_predictions();
  const AcceleratorsByName devices = accelerators_of(sets);
  const std::string device = e.cluster->types[e.cluster->devices[DeviceId{0}].type].preset;
  std::vector<double> in_format, on_device, anywhere;
  for (const PredictionSet& set : sets) {
    const std::vector<double> errors = time_errors(set, devices);
    for (std::size_t i = 0; i < errors.size(); ++i) {
      anywhere.push_back(errors[i]);
      if (set.runs[i].device != device) continue;
      on_device.push_back(errors[i]);
      if (same_format(set.runs[i].run.format, e.rules->format)) in_format.push_back(errors[i]);
    }
  }
  if (std::ssize(in_format) >= kFewestRuns)
    return {summarize(in_format), fmt::format("{} on {} in {}", pluralize(std::ssize(in_format), "published run"),
                                              device, name(e.rules->format))};
  if (std::ssize(on_device) >= kFewestRuns)
    return {summarize(on_device), fmt::format("{} on {}", pluralize(std::ssize(on_device), "published run"), device)};
  return {summarize(anywhere),
          fmt::format("{} on other device types", pluralize(std::ssize(anywhere), "published run")), false};
}

std::string to_text(const ExpectedError& e) {
  return fmt::format("median error of {}; {:.1f} % at the 90th percentile{}", e.runs, 100 * e.errors.p90,
                     e.same_device ? "" : ": this type is not calibrated");
}

}  // namespace stagecraft
