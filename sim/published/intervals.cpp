// Writes intervals.csv, the intervals of all classes of published runs, and reads the interval of an experiment from
// it, so that a run of a scenario need not simulate others.

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>

#include <fmt/core.h>

#include "sim/config/library.hpp"
#include "sim/core/activity.hpp"
#include "sim/core/cores.hpp"
#include "sim/core/file.hpp"
#include "sim/core/from_chars.hpp"
#include "sim/core/text.hpp"
#include "sim/core/threads.hpp"
#include "sim/published/error_classes.hpp"

namespace stagecraft {
namespace {

constexpr const char* kHeader = "device,format,software,models,runs,half_width,median\n";
constexpr const char* kUnknown = "unknown";  // In the column of software.
/// Frameworks whose facts price runs of others, to see what unknown software costs.
constexpr const char* kOtherStacks[] = {"plain", "megatron-core", "torchtitan"};
constexpr std::size_t kMostTransferred = 24;  // Runs of each set that are simulated with what others have.

std::string models_of(const ErrorClass& c) { return c.experts ? "experts" : c.small ? "small" : "large"; }

/// The cells that say what an interval is of. All formats of a device type: without a format.
std::string cells_of(const ErrorClass& c, bool every_format) {
  return fmt::format("{},{},{},{}", c.device, every_format ? "" : name(c.format), c.software, models_of(c));
}
/// What a wrong share of a device type costs, and what the facts of another framework do.
std::string cells_of_other_device(const ErrorClass& c) { return fmt::format(",,,{}", models_of(c)); }
std::string cells_of_unknown_software(const ErrorClass& c) { return fmt::format(",,{},{}", kUnknown, models_of(c)); }

/// The numbers of a line, after the cells that say what it is of.
std::optional<PredictionInterval> read_line(const std::string& line, const std::string& cells) {
  if (!line.starts_with(cells + ",")) return {};
  const std::vector<std::string> numbers = split(line.substr(cells.size() + 1), ',');
  PredictionInterval interval{.coverage = kIntervalCoverage, .class_name = {}};
  const auto read = [](const std::string& cell, auto& number) {
    return from_chars(cell.data(), cell.data() + cell.size(), number).ec == std::errc();
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

/// The interval of a line with these cells.
std::optional<PredictionInterval> recorded(const std::vector<std::string>& lines, const std::string& cells,
                                           const std::string& class_name, bool calibrated) {
  for (const std::string& line : lines)
    if (auto match = read_line(line, cells)) {
      match->class_name = class_name, match->calibrated = calibrated;
      return match;
    }
  return {};
}

std::optional<PredictionInterval> wider(const std::optional<PredictionInterval>& a,
                                        const std::optional<PredictionInterval>& b) {
  return !a || (b && b->half_width > a->half_width) ? b : a;
}

std::optional<PredictionInterval> of_unknown_software(const std::vector<std::string>& lines, const ErrorClass& c) {
  const std::string runs =
      fmt::format("published runs of {} priced with the facts of another framework (too few are of {} on {})",
                  kind_text(c), c.software, c.device);
  return recorded(lines, cells_of_unknown_software(c), runs, true);
}

/// Whether runs of the software were published, on any device type.
bool has_runs(const std::vector<std::string>& lines, const ErrorClass& c) {
  const std::string cells = fmt::format(",{},{},", c.software, models_of(c));
  return std::any_of(lines.begin(), lines.end(),
                     [&](const std::string& line) { return line.find(cells) != std::string::npos; });
}

std::optional<PredictionInterval> recorded_interval(const std::vector<std::string>& lines, const ErrorClass& c,
                                                    bool calibrated, bool measured_attention) {
  const std::string runs = fmt::format("published runs of {}", kind_text(c));
  if (!calibrated) {
    const auto other = recorded(lines, cells_of_other_device(c), runs, false);
    return has_runs(lines, c) && measured_attention ? other : wider(other, of_unknown_software(lines, c));
  }
  const std::string on_device = fmt::format("{} with {} on {}", runs, c.software, c.device);
  std::optional<PredictionInterval> interval =
      recorded(lines, cells_of(c, false), fmt::format("{} in {}", on_device, name(c.format)), true);
  if (!interval) interval = recorded(lines, cells_of(c, true), on_device, true);
  return interval && measured_attention ? interval : wider(interval, of_unknown_software(lines, c));
}

/// Every layer with work lists its operations, and none has given or measured times.
bool priced_from_shapes(const Experiment& e) {
  if (!e.rules || !e.profiles.empty()) return false;
  const ModelGraph& model = *e.model;
  const bool has_shapes = std::all_of(model.layers.begin(), model.layers.end(), [](const Layer& layer) {
    return !layer.times && layer.times_on.empty() && (layer.has_shapes() || layer.forward.value == 0);
  });
  return has_shapes && std::all_of(e.rules->accelerators.begin(), e.rules->accelerators.end(),
                                   [](const Accelerator& a) { return a.multiprocessors > 0 && !a.tiles.empty(); });
}

/// A run with the share of another device type, or with the facts of another framework.
struct TransferredRun {
  MeasuredRun run;
  Accelerator priced;
  std::string cells;
  double distance = -1;  ///< Negative where the run cannot be simulated so.
};

MeasuredRun with_software(MeasuredRun m, const char* stack) {
  *m.row.find("software") = config::Value::scalar(stack, {});
  for (const char* fact : {"release", "attention", "launch", "fsdp_overlap"})
    std::erase_if(m.row.members, [&](const config::Member& member) { return member.key == fact; });
  return m;
}

void add_other_devices(const MeasuredRun& m, const AcceleratorsByName& devices, std::vector<TransferredRun>& list) {
  const Accelerator& device = devices.find(m.device)->second;
  for (const auto& [name, other] : devices) {
    const FormatFacts& facts = other.formats[error_class(m).format];
    if (name == m.device || !facts.calibrated || !device.formats[m.format].calibrated) continue;
    list.push_back({m, device, cells_of_other_device(error_class(m))});
    list.back().priced.formats[m.format].share = facts.share;
  }
}

void add_other_software(const MeasuredRun& m, const AcceleratorsByName& devices, std::vector<TransferredRun>& list) {
  const ErrorClass c = error_class(m);
  for (const char* stack : kOtherStacks)
    if (c.software != stack)
      list.push_back({with_software(m, stack), devices.find(m.device)->second, cells_of_unknown_software(c)});
}

std::vector<TransferredRun> transferred_runs(std::span<const PredictionSet> sets) {
  const AcceleratorsByName devices = accelerators_of(sets);
  std::vector<TransferredRun> list;
  for (const PredictionSet& set : sets) {
    const std::size_t step = (set.runs.size() + kMostTransferred - 1) / kMostTransferred;
    for (std::size_t r = 0; r < set.runs.size(); r += step) {
      add_other_devices(set.runs[r], devices, list);
      add_other_software(set.runs[r], devices, list);
    }
  }
  Activity activity("simulating runs with shares of other device types and facts of other frameworks");
  activity.count(0, "runs", std::ssize(list));
  run_tasks(static_cast<int>(list.size()), usable_cores().count(), [&](int i) {
    std::string why;
    if (const auto simulated = simulate(list[i].run, list[i].priced, why))
      list[i].distance = std::abs(list[i].run.measured / simulated->time - 1);
    activity.count_one();
  });
  return list;
}

std::string line_of(const std::string& cells, const PredictionInterval& interval) {
  return fmt::format("{},{},{:.6g},{:.6g}\n", cells, interval.runs, interval.half_width, interval.median);
}

}  // namespace

std::optional<PredictionInterval> interval_of_unknown_software(const ErrorClass& c) {
  return of_unknown_software(recorded_lines(), c);
}

std::optional<PredictionInterval> prediction_interval(const Experiment& e) {
  if (!priced_from_shapes(e)) return {};
  const std::vector<std::string> lines = recorded_lines();
  std::optional<PredictionInterval> widest;
  for (const DeviceTypeId type : e.rules->accelerators.ids()) {
    const Accelerator& a = e.rules->accelerators[type];
    const bool calibrated = a.calibrated && a.formats[e.rules->format].share > 0;
    const SoftwareStack& software = e.software();
    const bool measured_attention = !software.fused_attention || !a.attention[software.attention_kernel].derived;
    const auto one = recorded_interval(lines, error_class(e, type), calibrated, measured_attention);
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
      if (on_device) lines.insert(line_of(cells_of(c, true), *on_device));
      if (alike && alike->class_name != on_device->class_name) lines.insert(line_of(cells_of(c, false), *alike));
    }
  std::map<std::string, std::vector<double>> distances;
  if (transferred)
    for (const TransferredRun& t : transferred_runs(sets))
      if (t.distance >= 0) distances[t.cells].push_back(t.distance);
  for (auto& [cells, sizes] : distances) lines.insert(line_of(cells, interval_of(std::move(sizes), "", false)));
  std::string text = kHeader;
  for (const std::string& line : lines) text += line;
  return text;
}

}  // namespace stagecraft
