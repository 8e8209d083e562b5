#include "tools/stagecraft/run_table.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include <fmt/format.h>

#include "sim/core/text.hpp"
#include "sim/report/interval.hpp"

namespace stagecraft {
namespace {

/// A row of the table: name, unit and the value of each run.
struct NumberRow {
  std::string name, unit;
  std::vector<double> values;
  std::vector<std::string> intervals = {};  ///< [run]: "± 5 %" of predicted times; empty elsewhere.
};

/// A number of results.json, with its name and unit for people and the factor of that unit.
struct ShownNumber {
  const char* name;
  const char* key;
  const char* unit;
  double factor;
  bool is_time = false;
};
constexpr ShownNumber kNumbers[] = {
    {"one iteration", "makespan_s", "ms", 1e3, true},    {"period", "period_s", "ms", 1e3, true},
    {"throughput", "throughput_samples_per_s", "/s", 1}, {"bubble", "bubble", "%", 100},
    {"steady bubble", "steady_bubble", "%", 100},        {"energy", "energy_J", "J", 1}};

/// NaN for what was not timed.
double number(const Json& json, const char* key) {
  const Json& value = json.at(key);
  return value.is_null() ? std::numeric_limits<double>::quiet_NaN() : value.number();
}

/// " ± 5 %" where results have an interval.
std::string interval_in(const Json& results) {
  const Json* interval = results.find("interval");
  return interval ? " " + half_width_text({.half_width = interval->at("half_width").number(), .class_name = {}})
                  : std::string();
}

double peak_memory(const Json& json) {
  double max_peak = 0;
  for (const Json& d : json.at("devices").items()) {
    const double peak = number(d, "peak_memory_bytes");
    if (std::isnan(peak)) return peak;
    max_peak = std::max(max_peak, peak);
  }
  return max_peak;
}

std::vector<NumberRow> number_rows(const std::vector<NamedResults>& runs) {
  std::vector<NumberRow> rows;
  const auto add = [&](const char* name, const char* unit, auto&& value) {
    NumberRow& row = rows.emplace_back(NumberRow{.name = name, .unit = unit, .values = {}});
    for (const NamedResults& run : runs) row.values.push_back(value(run.results));
  };
  if (runs.empty()) return rows;
  for (const ShownNumber& n : kNumbers) {
    add(n.name, n.unit, [&](const Json& j) { return number(j, n.key) * n.factor; });
    if (n.is_time)
      for (const NamedResults& run : runs) rows.back().intervals.push_back(interval_in(run.results));
  }
  constexpr double kMebibyte = 1024.0 * 1024, kGibibyte = 1024 * kMebibyte;
  const bool large = peak_memory(runs.front().results) >= kGibibyte / 16;
  add("peak memory", large ? "GiB" : "MiB",
      [&](const Json& j) { return peak_memory(j) / (large ? kGibibyte : kMebibyte); });
  return rows;
}

std::string change(double value, double base) {
  return base == 0 || !std::isfinite(value / base) ? "" : fmt::format("{:+.2f} %", 100 * (value / base - 1));
}

TableCell cell_of(const NumberRow& row, std::size_t run) {
  const double value = row.values[run];
  const std::string difference = run == 0 ? "" : change(value, row.values.front());
  if (std::isnan(value)) return {value, "not timed"};
  const std::string interval = row.intervals.empty() ? "" : row.intervals[run];
  return {value, fmt::format("{:.5g} {}{}{:>11}", value, row.unit, interval, difference)};
}

TableColumns<NumberRow> columns_of(const std::vector<std::string>& runs) {
  TableColumns<NumberRow> columns{{{.key = word_column("number", "Name of the number; stagecraft explain explains it."),
                                    .heading = " ",
                                    .width = 16,
                                    .align = TextAlign::Left,
                                    .gap = 0},
                                   &NumberRow::name},
                                  {{.key = word_column("unit", "Unit of the row.")}, &NumberRow::unit}};
  for (std::size_t i = 0; i < runs.size(); ++i)
    columns.push_back(
        {{.key = only(number_column(runs[i], "", "Value in this run, in the unit of the row; nan: not timed."),
                      "one for each run"),
          .heading = runs[i],
          .width = 28,
          .gap = 0},
         [i](const NumberRow& row) { return cell_of(row, i); }});
  return columns;
}

}  // namespace

Table run_table(const std::vector<NamedResults>& runs) {
  std::vector<std::string> names;
  for (const NamedResults& run : runs)
    names.push_back(fmt::format("{} ({})", run.name, run.results.at("provenance").at("clock").text()));
  return make_table<NumberRow>(columns_of(names), number_rows(runs));
}

std::string devices_note(const std::vector<NamedResults>& runs) {
  std::vector<std::string> uses;
  std::set<double> counts;
  for (const NamedResults& run : runs) {
    const Json* setup = run.results.find("setup");
    if (!setup || setup->is_null()) continue;
    const double devices = setup->at("devices").number();
    counts.insert(devices);
    uses.push_back(fmt::format("{} {}", run.name, shortest(devices)));
  }
  if (counts.size() < 2) return {};
  return fmt::format("the runs use different numbers of devices ({}); divide the throughput by them to compare devices",
                     join(uses));
}

std::vector<FileColumn> run_columns() {
  return csv_columns(make_table<NumberRow>(columns_of({"<RUN> (<clock>)"}), {}));
}

}  // namespace stagecraft
