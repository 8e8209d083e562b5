#include "tools/stagecraft/compare_runs.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>

#include <fmt/format.h>

#include "sim/core/json.hpp"

namespace stagecraft {
namespace {

/// A row of the table: name, where the number stands, its unit and a factor to show it with.
struct Row {
  const char* name;
  const char* key;
  const char* unit;
  double factor;
};
constexpr Row kRows[] = {{"one iteration", "makespan_s", "ms", 1e3},          {"period", "period_s", "ms", 1e3},
                         {"throughput", "throughput_samples_per_s", "/s", 1}, {"bubble", "bubble", "%", 100},
                         {"steady bubble", "steady_bubble", "%", 100},        {"energy", "energy_J", "J", 1}};

Json read_results(const std::string& given) {
  const std::string help = "give the folder that stagecraft run --out wrote";
  std::error_code error;
  const std::string file = std::filesystem::is_directory(given, error) ? given + "/results.json" : given;
  if (!std::filesystem::exists(file, error))
    throw InputError({{{given, 0, 0}, {}, "there are no results here", help, "unreadable-file"}});
  std::optional<Json> json = Json::parse(read_file(file));
  const Json* schema = json ? json->find("schema") : nullptr;
  if (!schema || *schema != "results/1")
    throw InputError({{{file, 0, 0}, {}, "these are not the results of a run", help, "not-results"}});
  return *std::move(json);
}

/// NaN for what was not timed.
double number(const Json& json, const char* key) {
  const Json& value = json.at(key);
  return value.is_null() ? std::numeric_limits<double>::quiet_NaN() : value.number();
}

double peak_memory(const Json& json) {
  double most = 0;
  for (const Json& d : json.at("devices").items()) {
    const double own = number(d, "peak_memory_bytes");
    if (std::isnan(own)) return own;
    most = std::max(most, own);
  }
  return most;
}

std::string change(double value, double base) {
  return base == 0 || !std::isfinite(value / base) ? "" : fmt::format("{:+.2f} %", 100 * (value / base - 1));
}

int print_table(const Arguments& a) {
  check_format(a.text("format"), {"text", "csv"});
  const auto files = a.list("RUN");
  if (files.size() < 2) throw InputError("two runs or more are needed", "stagecraft compare out/a out/b");
  std::vector<Json> runs;
  for (const std::string& f : files) runs.push_back(read_results(f));
  const bool csv = a.text("format") == "csv";
  std::string text = csv ? "number,unit" : fmt::format("{:<16}", "");
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const auto& p = runs[i].at("provenance");
    const std::string name = fmt::format("{} ({})", files[i], p.at("clock").text());
    text += csv ? "," + name : fmt::format("{:>28}", name);
  }
  text += '\n';
  const auto line = [&](const char* name, const char* unit, auto&& value) {
    text += csv ? fmt::format("{},{}", name, unit) : fmt::format("{:<16}", name);
    const double base = value(runs.front());
    for (std::size_t i = 0; i < runs.size(); ++i) {
      const double v = value(runs[i]);
      const std::string difference = i == 0 ? "" : change(v, base);
      text += csv ? "," + shortest(v)
                  : fmt::format("{:>28}",
                                std::isnan(v) ? "not timed" : fmt::format("{:.5g} {}{:>11}", v, unit, difference));
    }
    text += '\n';
  };
  for (const Row& r : kRows) line(r.name, r.unit, [&](const Json& j) { return number(j, r.key) * r.factor; });
  const double most = peak_memory(runs.front()), mebibyte = 1024.0 * 1024, gibibyte = 1024 * mebibyte;
  const bool large = most >= gibibyte / 16;
  line("peak memory", large ? "GiB" : "MiB",
       [&](const Json& j) { return peak_memory(j) / (large ? gibibyte : mebibyte); });
  print(text);
  return 0;
}

}  // namespace

int compare_runs(const Arguments& a) try { return print_table(a); } catch (const JsonError& e) {
  throw InputError(fmt::format("a results.json lacks what is compared: {}", e.what()), "run the scenario again");
}

}  // namespace stagecraft
