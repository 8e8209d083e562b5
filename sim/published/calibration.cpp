// For `stagecraft calibrate`: reads runs of a user from CSV, and writes the file of a device type with the fitted
// numbers.

#include "sim/published/calibration.hpp"

#include <algorithm>

#include <fmt/core.h>

#include "sim/config/library.hpp"
#include "sim/core/file.hpp"
#include "sim/core/text.hpp"

namespace stagecraft {
namespace {

using config::Value;

constexpr std::size_t kMostRuns = 1000;  // A fit simulates each of them some twenty times.

/// Members of `from` that `to` lacks; maps are joined.
void join_maps(Value& to, const Value& from) {
  for (const config::Member& m : from.members) {
    Value* member = to.find(m.key);
    if (!member)
      to.members.push_back(m);
    else if (member->is_map() && m.value.is_map())
      join_maps(*member, m.value);
  }
}

/// Takes out of the map of a relative what read_accelerator() does not take over: formats that `device` lacks, the peak
/// of a layer and the reserve.
void drop_what_stays(Value& relative, const Value& device) {
  const Value* formats = device.find("formats");
  const auto drop = [&](const char* part, const auto& stays) {
    if (Value* map = relative.find(part))
      std::erase_if(map->members, [&](const config::Member& m) { return stays(m.key); });
  };
  drop("formats", [&](const std::string& key) { return !formats || !formats->has(key); });
  drop("roofline", [](const std::string& key) { return key == "peak"; });
  drop("memory", [](const std::string& key) { return key == "reserve"; });
}

/// The map of a device type with everything that its relatives add.
Value complete_map(const std::string& device) {
  const std::string file = find_file(FileKind::Device, device, "");
  if (file.empty()) throw InputError("there is no device type '" + device + "'", "stagecraft list devices");
  config::Problems problems;
  Value map = config::parse_yaml_file(file, problems);
  problems.throw_if_any();
  const Value* like = map.find("like");
  if (!like) return map;
  const std::string relative = like->text;
  std::erase_if(map.members, [](const config::Member& m) { return m.key == "like"; });
  Value added = complete_map(relative);
  drop_what_stays(added, map);
  join_maps(map, added);
  return map;
}

void set_member(Value& map, const char* key, std::string text) {
  Value value = Value::scalar(std::move(text), {});
  if (Value* member = map.find(key))
    *member = std::move(value);
  else
    map.members.push_back({key, {}, std::move(value)});
}

/// Multiplies the share of each pass in a map of kernels of attention.
void scale_passes(Value& kernel, double factor) {
  for (const char* pass : {"forward", "backward"})
    if (Value* facts = kernel.find(pass))
      set_member(*facts, "share",
                 fmt::format("{:.4g}", std::min(1.0, factor * config::as_real(*facts->find("share")))));
}

/// All kernels of attention by one factor: the runs say how fast theirs is, and it is the only one that they know.
void set_attention_shares(Value& map, double factor) {
  Value* attention = map.find("attention");
  if (!attention) return;
  scale_passes(*attention, factor);
  for (const AttentionKernel kernel : kAttentionKernels)
    if (Value* facts = attention->find(std::string(name(kernel)))) scale_passes(*facts, factor);
}

}  // namespace

PredictionSet read_runs_csv(const std::string& file, const std::string& device) {
  std::vector<std::string> lines;
  std::vector<int> numbers;  // Numbers of these lines in the file.
  int number = 0;
  for (const std::string& line : split(read_file(file), '\n')) {
    ++number;
    if (trim(line).empty()) continue;
    lines.emplace_back(trim(line));
    numbers.push_back(number);
  }
  if (lines.size() < 2)
    throw InputError({{{file, 1, 1},
                       {},
                       "there is no run",
                       "a line with the names of columns, then a line for each run",
                       "missing-field"}});
  if (lines.size() > kMostRuns + 1)
    throw InputError({{{file, numbers[kMostRuns + 1], 1},
                       {},
                       fmt::format("there are more than {} runs", kMostRuns),
                       "keep the runs that differ most",
                       "range"}});
  std::string yaml = fmt::format(
      "schema: predictions/1\ntitle: {}\nsource: {}\ncalibration: none\nrun: {{device: {}}}\ncolumns: [{}]\nrows:\n",
      "runs", "measured", device, lines.front());
  for (std::size_t i = 1; i < lines.size(); ++i) yaml += "  - [" + lines[i] + "]\n";
  // Line i of the list is on line 7 + i of the text above.
  const auto in_file = [&](std::vector<Diagnostic> problems) {
    for (Diagnostic& d : problems)
      d.where = {file, numbers[std::clamp<std::ptrdiff_t>(d.where.line - 7, 0, std::ssize(numbers) - 1)], 1};
    return InputError(std::move(problems));
  };
  config::Problems problems;
  Value root = config::parse_yaml(yaml, file, problems);
  if (problems.empty()) root = config::check(root, prediction_fields(), "", problems);
  if (!problems.empty()) throw in_file(problems.list());
  PredictionSet set;
  try {
    set = read_predictions(root);
  } catch (const InputError& e) {
    throw in_file(e.problems());
  }
  set.name = file;
  return set;
}

std::string calibrated_device_file(const Accelerator& device, const std::vector<Fit>& fits, const std::string& origin) {
  Value map = complete_map(device.name);
  for (const Fit& fit : fits) {
    const Accelerator fitted = fit.applied(device);
    for (const Fit::Number& n : fit.numbers) {
      if (n.kind == FreeNumber::Attention) set_attention_shares(map, n.factor);
      if (n.kind == FreeNumber::Launch) set_member(map, "launch", fmt::format("{:.4g} us", fitted.launch.value * 1e6));
      for (const NumberFormat fitted_format : n.formats) {
        Value& format = *map.find("formats")->find(name(fitted_format));
        set_member(format, "share", fmt::format("{:.4g}", fitted.formats[fitted_format].share));
        std::erase_if(format.members, [](const config::Member& m) { return m.key == "assumed" || m.key == "known"; });
        set_member(format, "measured", fmt::format("fitted to {} of {}", pluralize(fit.runs, "run"), origin));
        set_member(map, "calibrated", "true");
      }
    }
  }
  return config::to_yaml(map, false);
}

}  // namespace stagecraft
