#include "sim/published/error_classes.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/core.h>

#include "sim/core/numbers.hpp"
#include "sim/core/text.hpp"

namespace stagecraft {
namespace {

constexpr double kSmallModel = 1.4e9;  // All small runs of vTrain have fewer parameters, all other published runs more.
constexpr std::size_t kFewestRuns = 5;  // Below, 80 % of the runs of a class would be all of them.

NumberFormat calibrated_format(NumberFormat f) { return f == NumberFormat::Fp16 ? NumberFormat::Bf16 : f; }

double parameter_count(const TransformerShape& model) {
  double sum = double(model.vocabulary) * model.hidden;
  for (int l = 0; l < model.layers; ++l) {
    const bool dense = model.experts.count == 0 || l < model.experts.dense_layers;
    const LayerParameters layer = layer_parameters(model, dense);
    sum += layer.divided + layer.experts;
  }
  return sum;
}

std::string kind_text(const ErrorClass& c) {
  return fmt::format("{} {}", c.small ? "small" : "large", c.experts ? "models with experts" : "dense models");
}

/// The distance of rank ceil(0.8 (n + 1)) among n, and the median.
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

bool same_model(const ErrorClass& a, const ErrorClass& b) { return a.small == b.small && a.experts == b.experts; }

}  // namespace

ErrorClass error_class(const MeasuredRun& m) {
  const bool experts = m.run.model.experts.count > 0;
  return {m.device, calibrated_format(m.run.format), !experts && parameter_count(m.run.model) < kSmallModel, experts};
}

ErrorClass error_class(const Experiment& e, DeviceTypeId type) {
  const ModelGraph& model = *e.model;
  const bool experts = std::any_of(model.layers.begin(), model.layers.end(), [](const Layer& layer) {
    return std::any_of(layer.operations.begin(), layer.operations.end(),
                       [](const Operation& op) { return op.kind == OperationKind::Router; });
  });
  return {e.cluster->types[type].preset, calibrated_format(e.rules->format),
          !experts && model.parameters() < kSmallModel, experts};
}

double prediction_distance(const MeasuredRun& m, const Accelerator& device) {
  return std::abs(m.measured / iteration_time(m.run, device).total() - 1);
}

ErrorDistribution::ErrorDistribution(std::span<const PredictionSet> sets, const AcceleratorsByName& devices) {
  for (const PredictionSet& set : sets)
    for (const MeasuredRun& m : set.runs) {
      const Accelerator& device = devices.find(m.device)->second;
      const ErrorClass kind = error_class(m);
      distances_.push_back({kind, prediction_distance(m, device), &m, &set});
      for (const auto& [name, other] : devices) {
        const FormatFacts& facts = other.formats[kind.format];
        if (name == m.device || !facts.calibrated || !device.formats[m.run.format].calibrated) continue;
        Accelerator priced = device;
        priced.formats[m.run.format].share = facts.share;
        transferred_.push_back({kind, prediction_distance(m, priced), &m, &set});
      }
    }
}

template <class Accepts>
std::optional<PredictionInterval> ErrorDistribution::interval_if(const ErrorClass& c, const Accepts& accepts) const {
  std::vector<double> alike, on_device;
  for (const Distance& d : distances_) {
    if (!same_model(d.kind, c) || d.kind.device != c.device || !accepts(d)) continue;
    on_device.push_back(d.size);
    if (d.kind.format == c.format) alike.push_back(d.size);
  }
  const std::string runs = fmt::format("published runs of {} on {}", kind_text(c), c.device);
  if (alike.size() >= kFewestRuns) return interval_of(alike, fmt::format("{} in {}", runs, name(c.format)), true);
  if (on_device.size() >= kFewestRuns) return interval_of(on_device, runs, true);
  return {};
}

PredictionInterval ErrorDistribution::transferred_interval(const ErrorClass& c) const {
  std::vector<double> sizes;
  for (const Distance& d : transferred_)
    if (same_model(d.kind, c)) sizes.push_back(d.size);
  if (sizes.empty()) throw InternalError("no published run is of " + kind_text(c));
  return interval_of(sizes, "published runs of " + kind_text(c), false);
}

PredictionInterval ErrorDistribution::interval(const ErrorClass& c, bool calibrated) const {
  if (calibrated)
    if (const auto of_class = interval_if(c, [](const Distance&) { return true; })) return *of_class;
  return transferred_interval(c);
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

/// Every layer with work lists its operations, and none has given or measured times.
bool priced_from_shapes(const Experiment& e) {
  if (!e.rules || e.profile) return false;
  const ModelGraph& model = *e.model;
  const bool has_shapes = std::all_of(model.layers.begin(), model.layers.end(), [](const Layer& layer) {
    return !layer.times && layer.times_on.empty() && (!layer.operations.empty() || layer.forward.value == 0);
  });
  return has_shapes && std::all_of(e.rules->accelerators.begin(), e.rules->accelerators.end(),
                                   [](const Accelerator& a) { return a.multiprocessors > 0 && !a.tiles.empty(); });
}

}  // namespace

std::optional<PredictionInterval> prediction_interval(const Experiment& e) {
  if (!priced_from_shapes(e)) return {};
  const std::vector<PredictionSet> sets = load_all_predictions();
  const ErrorDistribution errors(sets, accelerators_of(sets));
  std::optional<PredictionInterval> widest;
  for (const DeviceTypeId type : e.rules->accelerators.ids()) {
    const Accelerator& a = e.rules->accelerators[type];
    const bool calibrated = a.calibrated && a.formats[e.rules->format].share > 0;
    const PredictionInterval one = errors.interval(error_class(e, type), calibrated);
    if (!widest || one.half_width > widest->half_width) widest = one;
  }
  return widest;
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

std::string coverage_text(std::span<const PredictionSet> sets, const AcceleratorsByName& devices) {
  const ErrorDistribution errors(sets, devices);
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
      const double distance = prediction_distance(m, devices.find(m.device)->second);
      const auto interval = errors.interval_without(kind, m);
      if (interval) widths.push_back(interval->half_width);
      without_run.add(distance, interval);
      without_set.add(distance, errors.interval_without(kind, set));
    }
    line(set.name, widths, without_run, without_set);
    all_without_run += without_run, all_without_set += without_set;
    all_widths.insert(all_widths.end(), widths.begin(), widths.end());
  }
  line("all", all_widths, all_without_run, all_without_set);
  return text;
}

}  // namespace stagecraft
