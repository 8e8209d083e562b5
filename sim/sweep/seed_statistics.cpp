// Mean, deviation and range of points that differ only in their seeds.

#include "sim/sweep/seed_statistics.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include <fmt/core.h>

#include "sim/core/quantity.hpp"
#include "sim/core/text.hpp"
#include "sim/result/metrics.hpp"
#include "sim/sweep/comparable_rows.hpp"
#include "sim/sweep/result.hpp"

namespace stagecraft {
namespace {

bool is_seed(const std::string& path) { return path == "seed" || path.ends_with(".seed"); }

/// The table with settings and labels without seeds.
SweepTable without_seeds(const SweepTable& table) {
  SweepTable copy = table;
  for (SweepRow& row : copy.rows) {
    const Json settings = Json::parse(row.settings).value();
    JsonObject remaining;
    std::vector<std::string> words;
    for (const JsonMember& m : settings.members()) {
      if (is_seed(m.key)) continue;
      remaining.push_back({m.key, m.value});
      words.push_back(fmt::format("{}={}", m.key.substr(m.key.rfind('.') + 1),
                                  m.value.is_string() ? m.value.text() : m.value.dump()));
    }
    row.settings = Json(std::move(remaining)).dump();
    row.label = words.empty() ? "base" : join(words, ",");
  }
  return copy;
}

/// The known values of a metric, of the rows that can be compared in it.
std::vector<double> values_of(const SeedGroup& group, std::size_t metric_index) {
  const bool on_any = metrics()[metric_index].has(kOnAnyDevices);
  const std::optional<double> usual = on_any ? std::nullopt : usual_devices(group.rows);
  std::vector<double> values;
  for (const SweepRow* row : group.rows)
    if (!std::isnan(row->figures[metric_index]) && (!usual || row->figures[metric("devices")] == *usual))
      values.push_back(row->figures[metric_index]);
  return values;
}

using NumberText = std::string (*)(double);

/// A row for each group that knows the metric.
std::string metric_text(const std::vector<SeedGroup>& groups, const char* name, const std::string& heading,
                        NumberText number, const TextLayout& layout) {
  const std::size_t index = metric(name);
  std::vector<SeedGroup> measured_groups;
  for (const SeedGroup& group : groups)
    if (values_of(group, index).size() > 1) measured_groups.push_back(group);
  if (measured_groups.empty()) return {};
  using Row = SeedGroup;
  const auto part = [&](double ValueSpread::*value) {
    return [=](const Row& g) { return TableCell(number(spread_of(values_of(g, index)).*value)); };
  };
  const TableColumns<Row> columns{
      {{.heading = heading, .width = 5, .align = TextAlign::Left, .widens = true}, &Row::label},
      {{.heading = "seeds", .width = 5}, [=](const Row& g) { return spread_of(values_of(g, index)).count; }},
      {{.heading = "mean", .width = 10}, part(&ValueSpread::mean)},
      {{.heading = "std dev", .width = 10}, part(&ValueSpread::standard_deviation)},
      {{.heading = "min", .width = 10}, part(&ValueSpread::min)},
      {{.heading = "max", .width = 10}, part(&ValueSpread::max)}};
  return "\n" + to_text(make_table<Row>(columns, measured_groups), {.width = layout.width, .color = layout.color});
}

const config::MapSpec& spread_fields() {
  using namespace config;
  static const MapSpec spec{
      .title = "How the values of a metric differ.",
      .fields = {integer("count", 2, kInfinity).doc("Points whose value is known, on as many devices as most of them."),
                 real("mean", -kInfinity, kInfinity).doc("Arithmetic mean."),
                 real("min", -kInfinity, kInfinity).doc("Smallest value."),
                 real("max", -kInfinity, kInfinity).doc("Largest value."),
                 real("standard_deviation", 0, kInfinity).doc("Estimate from a sample, over count - 1.")}};
  return spec;
}

}  // namespace

ValueSpread spread_of(const std::vector<double>& values) {
  ValueSpread spread{.count = static_cast<int>(values.size())};
  if (values.empty()) return spread;
  const auto [min, max] = std::minmax_element(values.begin(), values.end());
  spread.min = *min;
  spread.max = *max;
  double sum = 0, squares = 0;
  for (const double value : values) sum += value;
  spread.mean = std::clamp(sum / spread.count, spread.min, spread.max);  // Equal values have no rounding error.
  for (const double value : values) squares += (value - spread.mean) * (value - spread.mean);
  if (spread.count > 1) spread.standard_deviation = std::sqrt(squares / (spread.count - 1));
  return spread;
}

std::vector<SeedGroup> seed_groups(const SweepTable& table) {
  const SweepTable groups_table = without_seeds(table);
  const std::vector<std::string> labels = short_labels(groups_table);
  std::vector<SeedGroup> groups;
  std::map<std::string, std::size_t> place;  // By settings without seeds.
  for (std::size_t r = 0; r < table.rows.size(); ++r) {
    if (table.rows[r].status != "ok") continue;
    const auto [it, is_new] = place.emplace(groups_table.rows[r].settings, groups.size());
    if (is_new) groups.push_back({labels[r], {}});
    groups[it->second].rows.push_back(&table.rows[r]);
  }
  std::erase_if(groups, [](const SeedGroup& g) { return g.rows.size() < 2; });
  return groups;
}

std::string seed_statistics_text(const SweepTable& table, const TextLayout& layout) {
  const std::vector<SeedGroup> groups = seed_groups(table);
  std::string left_out;
  for (const SeedGroup& group : groups) {
    SweepTable seeds;
    for (const SweepRow* row : group.rows) seeds.rows.push_back(*row);
    const std::string sentence = comparable_rows(seeds, metrics()[metric("period_s")], {}).sentence();
    if (!sentence.empty()) left_out += wrap_lines(fmt::format("{}: {}\n", group.label, sentence), layout.width);
  }
  return metric_text(
             groups, "period_s", "period over seeds", [](double s) { return to_text(Seconds{s}); }, layout) +
         metric_text(
             groups, "final_loss", "loss over seeds", [](double loss) { return fmt::format("{:.5g}", loss); }, layout) +
         left_out;
}

JsonArray seed_statistics_json(const SweepTable& table) {
  JsonArray list;
  for (const SeedGroup& group : seed_groups(table)) {
    JsonArray points;
    for (const SweepRow* row : group.rows) points.push_back(row->number);
    JsonObject spreads;
    for (std::size_t i = 0; i < metrics().size(); ++i) {
      const ValueSpread s = spread_of(values_of(group, i));
      if (s.count > 1)
        spreads.push_back({std::string(metrics()[i].name), JsonObject{{"count", s.count},
                                                                      {"mean", s.mean},
                                                                      {"min", s.min},
                                                                      {"max", s.max},
                                                                      {"standard_deviation", s.standard_deviation}}});
    }
    list.push_back(JsonObject{{"label", group.label}, {"points", std::move(points)}, {"metrics", std::move(spreads)}});
  }
  return list;
}

config::Field seed_statistics_field() {
  using namespace config;
  static const MapSpec group{
      .title = "Points that differ in their seeds only.",
      .fields = {text("label").doc("Settings without the seeds."),
                 list("points", integer("point", 1, kInfinity)).doc("Numbers of the points that ran."),
                 table("metrics", map("spread", spread_fields())).doc("Every metric that two or more points know.")}};
  return list("seed_statistics", map("group", group)).positional().doc("Statistics over the seeds of equal points.");
}

}  // namespace stagecraft
