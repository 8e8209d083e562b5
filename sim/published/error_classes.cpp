// How far predictions may be off: the errors of published runs of the same class of device, format and model as an
// interval, and how many published runs these intervals hold.

#include "sim/published/error_classes.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/core.h>

#include "sim/core/numbers.hpp"
#include "sim/core/text.hpp"

namespace stagecraft {
namespace {

constexpr double kSmallModel = 1.4e9;  // All small runs of vTrain have fewer parameters, all other published runs more.
constexpr std::size_t kFewestRuns = 5;  // Below, 80 % of the runs of a class would be all of them.

NumberFormat calibrated_format(NumberFormat f) { return f == NumberFormat::Fp16 ? NumberFormat::Bf16 : f; }

/// A name of a stack with other switches means the stack: both have the same kernels and host.
std::string stack_name(const SoftwareStack& s) { return std::string(s.base.empty() ? s.name : s.base); }

bool same_model(const ErrorClass& a, const ErrorClass& b) { return a.small == b.small && a.experts == b.experts; }

}  // namespace

std::string kind_text(const ErrorClass& c) {
  return fmt::format("{} {}", c.small ? "small" : "large", c.experts ? "models with experts" : "dense models");
}

PredictionInterval interval_of(std::vector<double> sizes, std::string class_name, bool calibrated) {
  std::sort(sizes.begin(), sizes.end());
  const double n = static_cast<double>(sizes.size());
  const auto rank = static_cast<std::size_t>(std::ceil(kIntervalCoverage * (n + 1) - 1e-9));
  return {.half_width = sizes[std::min(rank, sizes.size()) - 1],
          .coverage = kIntervalCoverage,
          .median = median(sizes),
          .runs = static_cast<int>(sizes.size()),
          .class_name = std::move(class_name),
          .calibrated = calibrated};
}

ErrorClass error_class(const MeasuredRun& m) {
  const bool experts = m.row.has("experts");
  return {m.device, calibrated_format(m.format), stack_name(software_of(m)),
          !experts && m.predicted.parameters < kSmallModel, experts};
}

ErrorClass error_class(const Experiment& e, DeviceTypeId type) {
  const ModelGraph& model = *e.model;
  const bool experts = std::any_of(model.layers.begin(), model.layers.end(), [](const Layer& layer) {
    return std::any_of(layer.operations.begin(), layer.operations.end(),
                       [](const Operation& op) { return op.kind == OperationKind::Router; });
  });
  return {e.cluster->types[type].preset, calibrated_format(e.rules->format), stack_name(e.software()),
          !experts && model.parameters() < kSmallModel, experts};
}

double prediction_distance(const MeasuredRun& m) { return std::abs(m.measured / m.predicted.time - 1); }

ErrorDistribution::ErrorDistribution(std::span<const PredictionSet> sets) {
  for (const PredictionSet& set : sets)
    for (const MeasuredRun& m : set.runs) distances_.push_back({error_class(m), prediction_distance(m), &m, &set});
}

template <class Accepts>
std::optional<PredictionInterval> ErrorDistribution::interval_if(const ErrorClass& c, const Accepts& accepts,
                                                                 bool every_format) const {
  std::vector<double> alike, on_device;
  for (const Distance& d : distances_) {
    if (!same_model(d.kind, c) || d.kind.device != c.device || d.kind.software != c.software || !accepts(d)) continue;
    on_device.push_back(d.size);
    if (d.kind.format == c.format && !every_format) alike.push_back(d.size);
  }
  const std::string runs = fmt::format("published runs of {} with {} on {}", kind_text(c), c.software, c.device);
  if (alike.size() >= kFewestRuns) return interval_of(alike, fmt::format("{} in {}", runs, name(c.format)), true);
  if (on_device.size() >= kFewestRuns) return interval_of(on_device, runs, true);
  return {};
}

std::optional<PredictionInterval> ErrorDistribution::interval(const ErrorClass& c, bool every_format) const {
  return interval_if(
      c, [](const Distance&) { return true; }, every_format);
}

std::optional<PredictionInterval> ErrorDistribution::interval_without(const ErrorClass& c,
                                                                      const MeasuredRun& left_out) const {
  return interval_if(c, [&](const Distance& d) { return d.run != &left_out; });
}

std::optional<PredictionInterval> ErrorDistribution::interval_without(const ErrorClass& c,
                                                                      const PredictionSet& left_out) const {
  return interval_if(c, [&](const Distance& d) { return d.set != &left_out; });
}

namespace {

constexpr int kRunsWidth = 30;

/// How many runs an interval holds, of those that have one.
struct CoveredRuns {
  int runs = 0, covered = 0;

  void add(double distance, const std::optional<PredictionInterval>& interval) {
    if (!interval) return;
    ++runs;
    covered += distance <= interval->half_width;
  }
  CoveredRuns& operator+=(const CoveredRuns& h) { return runs += h.runs, covered += h.covered, *this; }
  std::string text() const {
    return runs == 0 ? "-" : fmt::format("{} of {}, {:.0f} %", covered, runs, 100.0 * covered / runs);
  }
};

}  // namespace

std::string coverage_text(std::span<const PredictionSet> sets) {
  const ErrorDistribution errors(sets);
  std::string text = fmt::format(
      "Runs that the {:.0f} % interval of their class holds, made without the run itself, or without its "
      "publication\n\n"
      "{:<{}}{:>11}{:>22}{:>22}\n",
      100 * kIntervalCoverage, "runs", kRunsWidth, "half width", "without run", "without publication");
  CoveredRuns all_without_run, all_without_set;
  std::vector<double> all_widths;
  const auto line = [&](const std::string& name, const std::vector<double>& widths, const CoveredRuns& run,
                        const CoveredRuns& set) {
    const std::string width = widths.empty() ? "-" : fmt::format("{:.1f} %", 100 * median(widths));
    text += fmt::format("{:<{}}{:>11}{:>22}{:>22}\n", name, kRunsWidth, width, run.text(), set.text());
  };
  for (const PredictionSet& set : sets) {
    CoveredRuns without_run, without_set;
    std::vector<double> widths;
    for (const MeasuredRun& m : set.runs) {
      const ErrorClass kind = error_class(m);
      const double distance = prediction_distance(m);
      const auto interval = errors.interval_without(kind, m);
      if (interval) widths.push_back(interval->half_width);
      without_run.add(distance, interval);
      auto without = errors.interval_without(kind, set);
      if (!without) without = interval_of_unknown_software(kind);
      without_set.add(distance, without);
    }
    line(set.name, widths, without_run, without_set);
    all_without_run += without_run, all_without_set += without_set;
    all_widths.insert(all_widths.end(), widths.begin(), widths.end());
  }
  line("all", all_widths, all_without_run, all_without_set);
  return text;
}

}  // namespace stagecraft
