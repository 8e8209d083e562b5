#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "sim/config/columns.hpp"
#include "sim/config/fields.hpp"
#include "sim/core/json.hpp"
#include "sim/plan/plan.hpp"
#include "sim/result/report.hpp"

namespace stagecraft {

/// What a metric counts. It says how values are written in text and on pages.
enum class MetricUnit : std::uint8_t {
  Time,
  TrainingTime,  ///< Seconds in files, days in text.
  SampleRate,
  TokenRate,
  Size,
  Energy,
  Cost,
  Share,  ///< A fraction in files, percent in text.
  YesNo,  ///< 1 and 0.
  Count,
  Number,
};

enum class Better : std::uint8_t { Less, More, Neither };

enum MetricMark : unsigned {
  kMain = 1,          ///< Tables of pages show it before all metrics are asked for.
  kCompared = 2,      ///< `compare RUN` prints it where all runs have it; its JSON has all metrics.
  kPredicted = 4,     ///< A time to which the interval of a prediction applies.
  kOnAnyDevices = 8,  ///< Means the same on any number of devices: a share, or an amount of a token.
};

/// Everything of a run from which its metrics are computed.
struct RunView {
  const Plan* plan;  ///< Null where only the program is at hand.
  const Program& program;
  const Cluster& cluster;
  const Timeline& timeline;
  const Report& report;
};

/// One number of a run, with everything that any output says about it: a column of sweeps and of tables of runs, a key
/// of results.json and of what `compare` prints, an entry of `explain`, a figure of pages and pictures. An entry in
/// metrics() is all that a new metric needs.
struct Metric {
  const char* name;     ///< Its key in files: "period_s". The unit is at its end.
  const char* heading;  ///< What people read: "period".
  const char* column;   ///< A heading for narrow columns; empty: `heading`.
  MetricUnit unit;
  Better better;
  unsigned marks;                      ///< MetricMark's, joined with |.
  const char* meaning;                 ///< One sentence.
  double (*value_of)(const RunView&);  ///< NaN: not known.
  const char* path = "";               ///< Where results.json has it; empty: by its name at the top.

  bool has(MetricMark mark) const { return (marks & mark) != 0; }
};

std::span<const Metric> metrics();
std::size_t metric(std::string_view name);  ///< Its index in metrics().
const Metric* find_metric(std::string_view name);
/// The value of the metric of this name.
double metric_value(std::string_view name, const RunView&);

/// The busiest link that copies to or from a host cross, PCIe that messages share included; null where there is none.
const LinkReport* busiest_host_link(const RunView&);

/// "s", "samples/s", "bytes", "J", "$"; empty for counts and shares.
const char* unit_name(MetricUnit);
/// A count, or yes and no as 1 and 0.
bool is_whole(MetricUnit);
/// The path in results.json: "period_s", "rates.mfu".
std::string results_path(const Metric&);

/// Its value in results.json; NaN where that lacks it, or has the 0 that stands for an unknown rate or budget.
double results_value(const Metric&, const Json& results);
/// What a narrow column is called.
const char* column_heading(const Metric&);
/// "58.2 ms", "12.3 %", "1.5 GiB", "yes": as tables print it; "-" where it is not known.
std::string to_text(const Metric&, double value);

/// What a page needs to know of it, with its name as `name`.
Json page_json(const Metric&);

/// A column of files with many runs.
FileColumn metric_column(const Metric&);
/// A number of a JSON object, which is null where it is not known; true and false for yes and no.
config::Field metric_field(const Metric&);
Json metric_json(const Metric&, double value);

}  // namespace stagecraft
