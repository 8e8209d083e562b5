// The table of `compare` on kept runs: each metric with its change against the first run, notes on different batches
// and devices, and the JSON with its fields.

#include "tools/stagecraft/run_table.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include <fmt/core.h>

#include "sim/core/text.hpp"
#include "sim/result/interval.hpp"
#include "sim/result/metrics.hpp"

namespace stagecraft {
namespace {

constexpr double kLargeSize = 64.0 * 1024 * 1024;  // Bytes from which sizes are written in GiB.

/// A row of the table: name, unit and the value of each run.
struct NumberRow {
  std::string name, unit;
  std::vector<double> values;
  std::vector<std::string> intervals = {};  ///< [run]: "± 5 %" of predicted times; empty elsewhere.
};

/// The unit in which metrics are compared, and the number of it in a unit of results.json.
struct ComparedUnit {
  const char* name;
  double factor;
};

/// The unit in which all runs are written, by the value of the first.
ComparedUnit compared_unit(MetricUnit unit, double first) {
  constexpr double kMebibyte = 1024.0 * 1024, kGibibyte = 1024 * kMebibyte, kDay = 86400;
  switch (unit) {
    case MetricUnit::Time:
      return first >= 1 ? ComparedUnit{"s", 1} : ComparedUnit{"ms", 1e3};
    case MetricUnit::TrainingTime:
      return {"days", 1 / kDay};
    case MetricUnit::SampleRate:
      return {"/s", 1};
    case MetricUnit::TokenRate:
      return {"k/s", 1e-3};
    case MetricUnit::Size:
      return first >= kLargeSize ? ComparedUnit{"GiB", 1 / kGibibyte} : ComparedUnit{"MiB", 1 / kMebibyte};
    case MetricUnit::Share:
      return {"%", 100};
    case MetricUnit::Energy:
    case MetricUnit::Cost:
    case MetricUnit::YesNo:
    case MetricUnit::Count:
    case MetricUnit::Number:
      break;
  }
  return {unit_name(unit), 1};
}

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

/// The peak memory of results of a version that wrote it for each device alone.
double peak_memory(const Json& results) {
  double max_peak = 0;
  for (const Json& d : results.at("devices").items()) {
    const double peak = number(d, "peak_memory_bytes");
    if (std::isnan(peak)) return peak;
    max_peak = std::max(max_peak, peak);
  }
  return max_peak;
}

/// NaN where it is not known. Results of earlier versions lack some metrics that their other numbers give.
double value_in(const Json& results, std::string_view name) {
  const double value = results_value(metrics()[metric(name)], results);
  if (!std::isnan(value)) return value;
  if (name == "peak_memory_bytes") return peak_memory(results);
  if (name == "samples") return std::round(number(results, "throughput_samples_per_s") * number(results, "period_s"));
  if (name == "energy_per_sample_J")
    return number(results, "energy_J") / (number(results, "iterations") * value_in(results, "samples"));
  return value;
}

double samples_of(const Json& results) { return value_in(results, "samples"); }

bool have_different_batches(const std::vector<NamedResults>& runs) {
  return std::any_of(runs.begin(), runs.end(), [&](const NamedResults& run) {
    return samples_of(run.results) != samples_of(runs.front().results);
  });
}

/// Tokens per second of all devices; NaN where it is not known.
double tokens_per_second(const Json& results) { return value_in(results, "tokens_per_s"); }

bool is_in_all(const std::vector<NamedResults>& runs, const Metric& m) {
  return std::all_of(runs.begin(), runs.end(), [&](const NamedResults& r) { return value_in(r.results, m.name) > 0; });
}

std::vector<NumberRow> number_rows(const std::vector<NamedResults>& runs) {
  std::vector<NumberRow> rows;
  const auto add = [&](const char* name, const char* unit, auto&& value) {
    NumberRow& row = rows.emplace_back(NumberRow{.name = name, .unit = unit, .values = {}});
    for (const NamedResults& run : runs) row.values.push_back(value(run.results));
  };
  if (runs.empty()) return rows;
  if (have_different_batches(runs)) {
    add("time per sample", "ms", [](const Json& j) { return 1e3 / number(j, "throughput_samples_per_s"); });
    if (std::all_of(runs.begin(), runs.end(), [](const NamedResults& r) { return tokens_per_second(r.results) > 0; }))
      add("time per token", "us", [](const Json& j) { return 1e6 / tokens_per_second(j); });
    add(find_metric("energy_per_sample_J")->heading, "J",
        [](const Json& j) { return value_in(j, "energy_per_sample_J"); });
  }
  for (const Metric& m : metrics()) {
    // What depends on the model or on the budget is left out unless all runs have it.
    if (!m.has(kCompared) || (*m.path && !is_in_all(runs, m))) continue;
    const ComparedUnit unit = compared_unit(m.unit, value_in(runs.front().results, m.name));
    const std::vector<double> before = rows.empty() ? std::vector<double>() : rows.back().values;
    add(m.heading, unit.name, [&](const Json& j) { return value_in(j, m.name) * unit.factor; });
    if (m.has(kPredicted))
      for (const NamedResults& run : runs) rows.back().intervals.push_back(interval_in(run.results));
    if (*m.path && rows.back().values == before) rows.pop_back();  // HFU is MFU without recomputation.
  }
  return rows;
}

/// Shares differ by points, everything else by percent of the baseline, as on the page of runs.
std::string change(double value, double base, bool is_share) {
  if (is_share) return std::isfinite(value - base) ? fmt::format("{:+.2f} points", value - base) : "";
  return base == 0 || !std::isfinite(value / base) ? "" : fmt::format("{:+.2f} %", 100 * (value / base - 1));
}

TableCell cell_of(const NumberRow& row, std::size_t run) {
  const double value = row.values[run];
  if (std::isnan(value)) return {value, "not timed"};
  const std::string interval = row.intervals.empty() ? "" : row.intervals[run];
  return {value, fmt::format("{:.5g} {}{}", value, row.unit, interval)};
}

TableColumns<NumberRow> columns_of(const std::vector<std::string>& runs) {
  TableColumns<NumberRow> columns{{{.key = word_column("number", "Name of the number; stagecraft explain explains it."),
                                    .heading = " ",
                                    .width = 19,
                                    .align = TextAlign::Left,
                                    .gap = 0},
                                   &NumberRow::name},
                                  {{.key = word_column("unit", "Unit of the row.")}, &NumberRow::unit}};
  for (std::size_t i = 0; i < runs.size(); ++i) {
    columns.push_back(
        {{.key = only(number_column(runs[i], "", "Value in this run, in the unit of the row; nan: not timed."),
                      "one for each run"),
          .heading = runs[i],
          .width = 17,
          .widens = true},
         [i](const NumberRow& row) { return cell_of(row, i); }});
    if (i > 0)
      columns.push_back({{.heading = "change", .width = 13}, [i](const NumberRow& row) {
                           return std::isnan(row.values[i])
                                      ? ""
                                      : change(row.values[i], row.values.front(), row.unit == "%");
                         }});
  }
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

std::string batches_note(const std::vector<NamedResults>& runs) {
  if (!have_different_batches(runs)) return {};
  std::vector<std::string> batches;
  for (const NamedResults& run : runs)
    batches.push_back(fmt::format("{} {}", run.name, shortest(samples_of(run.results))));
  return fmt::format(
      "the iterations have different numbers of samples ({}); compare the time per sample, not the period",
      join(batches));
}

std::string plans_text(const std::vector<NamedResults>& runs) {
  std::string text;
  for (const NamedResults& run : runs) {
    const Json* setup = run.results.find("setup");
    const Json* plan = setup && !setup->is_null() ? setup->find("plan") : nullptr;
    if (plan && !plan->text().empty())
      text += fmt::format("plan of {}: {}, {}\n", run.name, setup->at("schedule").text(), plan->text());
  }
  return text;
}

std::string limits_text(const std::vector<NamedResults>& runs) {
  std::string text;
  for (const NamedResults& run : runs) {
    const Json* diagnosis = run.results.find("diagnosis");
    if (!diagnosis || diagnosis->items().empty()) continue;
    text += fmt::format("limit of {}: {}\n", run.name, diagnosis->items().front().at("sentence").text());
  }
  return text;
}

namespace {

Json number_json(double value) { return std::isfinite(value) ? Json(value) : Json(); }

Json run_json(const NamedResults& run) {
  const Json& r = run.results;
  Json json = JsonObject{{"name", run.name}, {"clock", r.at("provenance").at("clock").text()}};
  for (const Metric& m : metrics()) json[m.name] = metric_json(m, value_in(r, m.name));
  json["time_per_sample_s"] = number_json(1 / number(r, "throughput_samples_per_s"));
  json["time_per_token_s"] = number_json(1 / tokens_per_second(r));
  if (const Json* interval = r.find("interval")) json["interval"] = *interval;
  const Json* diagnosis = r.find("diagnosis");
  const bool diagnosed = diagnosis && !diagnosis->items().empty();
  json["limit"] = diagnosed ? diagnosis->items().front().at("cause") : Json();
  json["limit_sentence"] = diagnosed ? diagnosis->items().front().at("sentence") : Json();
  return json;
}

}  // namespace

std::string runs_json(const std::vector<NamedResults>& runs) {
  Json list = JsonArray();
  for (const NamedResults& run : runs) list.push_back(run_json(run));
  return Json(JsonObject{{"schema", "runs/1"}, {"runs", std::move(list)}}).dump(2);
}

const config::MapSpec& runs_fields() {
  using namespace config;
  const auto number_or_null = [](const char* name, const char* about) {
    return real(name, -kInfinity, kInfinity).nullable().doc(std::string(about) + "; null where it is not known.");
  };
  static const MapSpec run = [&] {
    MapSpec spec{
        .title = "One run.",
        .fields = {text("name").doc("The folder or file that was given."),
                   text("clock").doc("What timed it: simulated, host or device."),
                   number_or_null("time_per_sample_s", "Period divided by the samples of an iteration, in seconds"),
                   number_or_null("time_per_token_s", "The same for a token"), interval_field(),
                   text("limit").nullable().doc("Cause that costs most, such as bubble; null where it is not known."),
                   text("limit_sentence").nullable().doc("The same in words.")}};
    for (const Metric& m : metrics())
      if (!spec.find(m.name)) spec.fields.push_back(metric_field(m));
    return spec;
  }();
  static const MapSpec spec{.title = "What `stagecraft compare RUN --format json` prints: runs next to each other.",
                            .fields = {choice("schema", {"runs/1"}).doc("Version of this format."),
                                       list("runs", map("run", run)).positional().doc("The runs, as they are given.")}};
  return spec;
}

std::vector<FileColumn> run_columns() {
  return csv_columns(make_table<NumberRow>(columns_of({"<RUN> (<clock>)"}), {}));
}

}  // namespace stagecraft
