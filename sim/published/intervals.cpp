// Writes intervals.csv, the intervals of all classes of published runs, and reads the interval of an experiment from
// it, so that a run of a scenario need not simulate others.

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <set>

#include <fmt/core.h>

#include "sim/config/library.hpp"
#include "sim/core/activity.hpp"
#include "sim/core/cores.hpp"
#include "sim/core/file.hpp"
#include "sim/core/text.hpp"
#include "sim/core/threads.hpp"
#include "sim/published/error_classes.hpp"

namespace stagecraft {
namespace {

constexpr const char* kHeader = "device,format,models,runs,half_width,median\n";

std::string models_of(const ErrorClass& c) { return c.experts ? "experts" : c.small ? "small" : "large"; }

/// The cells that say what an interval is of. All formats of a device type: without a format. What a wrong share costs:
/// without a device type.
std::string cells_of(const ErrorClass& c, bool every_device, bool every_format) {
  return fmt::format("{},{},{}", every_device ? "" : c.device, every_format ? "" : name(c.format), models_of(c));
}

/// The numbers of a line, after the cells that say what it is of.
std::optional<PredictionInterval> read_line(const std::string& line, const std::string& cells) {
  if (!line.starts_with(cells + ",")) return {};
  const std::vector<std::string> numbers = split(line.substr(cells.size() + 1), ',');
  PredictionInterval interval{.coverage = kIntervalCoverage, .class_name = {}};
  const auto read = [](const std::string& cell, auto& number) {
    return std::from_chars(cell.data(), cell.data() + cell.size(), number).ec == std::errc();
  };
  if (numbers.size() != 3 || !read(numbers[0], interval.runs) || !read(numbers[1], interval.half_width) ||
      !read(numbers[2], interval.median))
    throw InternalError("the line '" + line + "' of intervals.csv has no interval");
  return interval;
}

std::vector<std::string> recorded_lines() {
  for (const std::string& folder : folders(FileKind::Predictions))
    if (const std::string file = folder + "/intervals.csv"; std::filesystem::is_regular_file(file))
      return split(read_file(file), '\n');
  return {};
}

std::optional<PredictionInterval> recorded_interval(const std::vector<std::string>& lines, const ErrorClass& c,
                                                    bool calibrated) {
  const std::string runs = fmt::format("published runs of {}", kind_text(c));
  const auto find = [&](bool every_device, bool every_format, const std::string& class_name) {
    std::optional<PredictionInterval> match;
    for (const std::string& line : lines)
      if (!match) match = read_line(line, cells_of(c, every_device, every_format));
    if (match) match->class_name = class_name, match->calibrated = !every_device;
    return match;
  };
  const std::string on_device = fmt::format("{} on {}", runs, c.device);
  std::optional<PredictionInterval> interval;
  if (calibrated) interval = find(false, false, fmt::format("{} in {}", on_device, name(c.format)));
  if (calibrated && !interval) interval = find(false, true, on_device);
  return interval ? interval : find(true, true, runs);
}

/// Every layer with work lists its operations, and none has given or measured times.
bool priced_from_shapes(const Experiment& e) {
  if (!e.rules || !e.profiles.empty()) return false;
  const ModelGraph& model = *e.model;
  const bool has_shapes = std::all_of(model.layers.begin(), model.layers.end(), [](const Layer& layer) {
    return !layer.times && layer.times_on.empty() && (!layer.operations.empty() || layer.forward.value == 0);
  });
  return has_shapes && std::all_of(e.rules->accelerators.begin(), e.rules->accelerators.end(),
                                   [](const Accelerator& a) { return a.multiprocessors > 0 && !a.tiles.empty(); });
}

/// A run with the share of another device type.
struct TransferredRun {
  const MeasuredRun* run = nullptr;
  Accelerator priced;
  double distance = 0;
};

std::vector<TransferredRun> transferred_runs(std::span<const PredictionSet> sets) {
  const AcceleratorsByName devices = accelerators_of(sets);
  std::vector<TransferredRun> list;
  for (const PredictionSet& set : sets)
    for (const MeasuredRun& m : set.runs) {
      const Accelerator& device = devices.find(m.device)->second;
      for (const auto& [name, other] : devices) {
        const FormatFacts& facts = other.formats[error_class(m).format];
        if (name == m.device || !facts.calibrated || !device.formats[m.format].calibrated) continue;
        list.push_back({&m, device});
        list.back().priced.formats[m.format].share = facts.share;
      }
    }
  Activity activity("simulating runs with shares of other device types");
  activity.count(0, "runs", std::ssize(list));
  run_tasks(static_cast<int>(list.size()), usable_cores().count(), [&](int i) {
    std::string why;
    const auto simulated = simulate(*list[i].run, list[i].priced, why);
    if (!simulated) throw InternalError(list[i].run->name + ": " + why);
    list[i].distance = std::abs(list[i].run->measured / simulated->time - 1);
    activity.count_one();
  });
  return list;
}

std::string line_of(const std::string& cells, const PredictionInterval& interval) {
  return fmt::format("{},{},{:.6g},{:.6g}\n", cells, interval.runs, interval.half_width, interval.median);
}

}  // namespace

std::optional<PredictionInterval> prediction_interval(const Experiment& e) {
  if (!priced_from_shapes(e)) return {};
  const std::vector<std::string> lines = recorded_lines();
  std::optional<PredictionInterval> widest;
  for (const DeviceTypeId type : e.rules->accelerators.ids()) {
    const Accelerator& a = e.rules->accelerators[type];
    const bool calibrated = a.calibrated && a.formats[e.rules->format].share > 0;
    const auto one = recorded_interval(lines, error_class(e, type), calibrated);
    if (one && (!widest || one->half_width > widest->half_width)) widest = one;
  }
  return widest;
}

std::string intervals_csv(std::span<const PredictionSet> sets, bool transferred) {
  const ErrorDistribution errors(sets);
  std::set<std::string> lines;
  for (const PredictionSet& set : sets)
    for (const MeasuredRun& m : set.runs) {
      const ErrorClass c = error_class(m);
      const auto on_device = errors.interval(c, true), alike = errors.interval(c);
      if (on_device) lines.insert(line_of(cells_of(c, false, true), *on_device));
      if (alike && alike->class_name != on_device->class_name) lines.insert(line_of(cells_of(c, false, false), *alike));
    }
  std::map<std::string, std::vector<double>> distances;
  if (transferred)
    for (const TransferredRun& t : transferred_runs(sets))
      distances[cells_of(error_class(*t.run), true, true)].push_back(t.distance);
  for (auto& [cells, sizes] : distances) lines.insert(line_of(cells, interval_of(std::move(sizes), "", false)));
  std::string text = kHeader;
  for (const std::string& line : lines) text += line;
  return text;
}

}  // namespace stagecraft
