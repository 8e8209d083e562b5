// Which rows of a sweep can be compared: those on equally many devices, and why others are left out.

#include "sim/sweep/comparable_rows.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include <fmt/core.h>

#include "sim/core/text.hpp"

namespace stagecraft {
namespace {

double devices_of(const SweepRow& row) { return row.figures[metric("devices")]; }

bool has_devices(const SweepRow& row) { return row.status == "ok" && std::isfinite(devices_of(row)); }

/// "1, 2 or 4".
std::string alternatives(const std::set<double>& numbers) {
  std::vector<std::string> words;
  for (const double n : numbers) words.push_back(shortest(n));
  const std::string last = words.back();
  words.pop_back();
  return words.empty() ? last : join(words) + " or " + last;
}

/// Sets how many rows are left out, and why. `paths`: those whose values were compared among themselves.
void explain(const SweepTable& table, const std::vector<std::string>& paths, ComparableRows& rows) {
  std::set<double> other, usual;
  std::int64_t left_out = 0, ran = 0;
  for (std::size_t r = 0; r < table.rows.size(); ++r) {
    ran += has_devices(table.rows[r]);
    if (rows.has(r)) continue;
    ++left_out;
    other.insert(devices_of(table.rows[r]));
    usual.insert(*rows.usual_instead[r]);
  }
  if (left_out == 0) return;
  rows.left_out = fmt::format("{} of {}", left_out, pluralize(ran, "point"));
  rows.why = fmt::format("{} ran on {}, and the others{} on {}", left_out == 1 ? "it" : "they",
                         alternatives(other) + (*other.rbegin() == 1 ? " device" : " devices"),
                         usual.size() > 1 ? " at the same " + join(paths, " and ") : "", alternatives(usual));
  rows.is_one = left_out == 1;
}

}  // namespace

std::optional<double> usual_devices(const std::vector<const SweepRow*>& rows) {
  std::map<double, int> counts;
  for (const SweepRow* row : rows)
    if (has_devices(*row)) ++counts[devices_of(*row)];
  if (counts.size() < 2) return {};
  const auto is_less = [](const auto& a, const auto& b) {
    return std::pair(a.second, a.first) < std::pair(b.second, b.first);
  };
  return std::max_element(counts.begin(), counts.end(), is_less)->first;
}

std::string ComparableRows::sentence(const std::string& are) const {
  return why.empty() ? "" : fmt::format("{} {} {}: {}", left_out, is_one ? "is" : "are", are, why);
}

ComparableRows comparable_rows(const SweepTable& table, const Metric& metric,
                               const std::vector<const VariedPath*>& shown) {
  ComparableRows result{.usual_instead = std::vector<std::optional<double>>(table.rows.size())};
  if (metric.has(kOnAnyDevices)) return result;
  std::vector<std::string> paths;
  std::map<std::vector<int>, std::vector<std::size_t>> groups;  // By the values of the paths that set the devices.
  for (const VariedPath* p : shown)
    if (p->sets_devices) paths.push_back(p->path);
  for (std::size_t r = 0; r < table.rows.size(); ++r) {
    std::vector<int> key;
    for (const VariedPath* p : shown)
      if (p->sets_devices) key.push_back(p->value_of[r]);
    groups[key].push_back(r);
  }
  for (const auto& [key, rows] : groups) {
    std::vector<const SweepRow*> group;
    for (const std::size_t r : rows) group.push_back(&table.rows[r]);
    const std::optional<double> usual = usual_devices(group);
    for (const std::size_t r : rows)
      if (usual && has_devices(table.rows[r]) && devices_of(table.rows[r]) != *usual) result.usual_instead[r] = usual;
  }
  explain(table, paths, result);
  return result;
}

ComparableRows rows_on_usual_devices(const SweepTable& table) {
  const std::vector<VariedPath> paths = varied_paths(table);
  std::vector<const VariedPath*> shown;
  for (const VariedPath& p : paths) shown.push_back(&p);
  return comparable_rows(table, metrics()[metric("period_s")], shown);
}

}  // namespace stagecraft
