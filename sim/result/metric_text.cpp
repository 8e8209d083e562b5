// How the values of a metric are written in text, files, schemas and pages, and read from results.json.

#include <cmath>
#include <limits>

#include <fmt/core.h>

#include "sim/core/numbers.hpp"
#include "sim/core/text.hpp"
#include "sim/result/metrics.hpp"

namespace stagecraft {

const char* unit_name(MetricUnit unit) {
  switch (unit) {
    case MetricUnit::Time:
    case MetricUnit::TrainingTime:
      return "s";
    case MetricUnit::SampleRate:
      return "samples/s";
    case MetricUnit::TokenRate:
      return "tokens/s";
    case MetricUnit::Size:
      return "bytes";
    case MetricUnit::Energy:
      return "J";
    case MetricUnit::Cost:
      return "$";
    case MetricUnit::Share:
    case MetricUnit::YesNo:
    case MetricUnit::Count:
    case MetricUnit::Number:
      break;
  }
  return "";
}

bool is_whole(MetricUnit unit) { return unit == MetricUnit::YesNo || unit == MetricUnit::Count; }

std::string results_path(const Metric& m) { return *m.path ? m.path : m.name; }

double results_value(const Metric& m, const Json& results) {
  const Json* value = &results;
  for (const std::string& key : split(results_path(m), '.'))
    if (value && value->is_object())
      value = value->find(key);
    else
      value = nullptr;
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  if (!value || value->is_null()) return kNone;
  if (value->is_bool()) return *value == Json(true) ? 1 : 0;
  const std::string_view path = m.path;
  const bool has_zero = !path.starts_with("rates.") && !path.starts_with("economics.");
  return has_zero || value->number() > 0 ? value->number() : kNone;
}

const char* column_heading(const Metric& m) { return *m.column ? m.column : m.heading; }

std::string to_text(const Metric& m, double value) {
  if (!std::isfinite(value)) return "-";
  switch (m.unit) {
    case MetricUnit::Time:
      return to_text(Seconds{value});
    case MetricUnit::TrainingTime:
      return training_time_text(Seconds{value});
    case MetricUnit::SampleRate:
      return fmt::format("{:.4g}/s", value);
    case MetricUnit::TokenRate:
      return short_number(value) + "/s";
    case MetricUnit::Size:
      return to_text(Bytes{value});
    case MetricUnit::Energy:
      return to_text(Joules{value});
    case MetricUnit::Cost:
      return dollars_text(value);
    case MetricUnit::Share:
      return percent(value);
    case MetricUnit::YesNo:
      return value > 0 ? "yes" : "no";
    case MetricUnit::Count:
    case MetricUnit::Number:
      return shortest(value);
  }
  return {};
}

Json page_json(const Metric& m) {
  const auto unit = [&] {
    switch (m.unit) {
      case MetricUnit::Time:
        return "time";
      case MetricUnit::TrainingTime:
        return "days";
      case MetricUnit::SampleRate:
        return "rate";
      case MetricUnit::TokenRate:
        return "tokens";
      case MetricUnit::Size:
        return "size";
      case MetricUnit::Energy:
        return "joule";
      case MetricUnit::Share:
        return "share";
      case MetricUnit::YesNo:
        return "yes";
      case MetricUnit::Cost:
      case MetricUnit::Count:
      case MetricUnit::Number:
        break;
    }
    return "number";
  };
  const int better = m.better == Better::Neither ? 0 : m.better == Better::More ? 1 : -1;
  return JsonObject{{"name", m.name},
                    {"title", m.heading},
                    {"meaning", m.meaning},
                    {"path", results_path(m)},
                    {"unit", unit()},
                    {"better", better},
                    {"is_main", m.has(kMain)},
                    {"is_compared", m.has(kCompared)},
                    {"has_interval", m.has(kPredicted)},
                    {"on_any_devices", m.has(kOnAnyDevices)}};
}

FileColumn metric_column(const Metric& m) {
  return is_whole(m.unit) ? whole_column(m.name, m.meaning) : number_column(m.name, unit_name(m.unit), m.meaning);
}

config::Field metric_field(const Metric& m) {
  const double low = m.unit == MetricUnit::Number ? -kInfinity : 0;
  config::Field field = m.unit == MetricUnit::YesNo   ? config::boolean(m.name)
                        : m.unit == MetricUnit::Count ? config::integer(m.name, 0, 1e15)
                                                      : config::real(m.name, low, kInfinity);
  return field.nullable().doc(m.meaning);
}

Json metric_json(const Metric& m, double value) {
  if (!std::isfinite(value)) return {};
  if (m.unit == MetricUnit::YesNo) return value > 0;
  return m.unit == MetricUnit::Count ? Json(static_cast<std::int64_t>(value)) : Json(value);
}

}  // namespace stagecraft
