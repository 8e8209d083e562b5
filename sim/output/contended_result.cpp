// What tables say about rows that were simulated again with network contention (`--replay`): cells, columns, JSON and
// the lines below the table.

#include "sim/output/contended_result.hpp"

#include <cstdlib>

#include <fmt/core.h>

#include "sim/core/text.hpp"

namespace stagecraft {
namespace {

double nine_digits(Seconds s) { return std::strtod(fmt::format("{:.9g}", s.value).c_str(), nullptr); }

}  // namespace

bool shorter(Seconds a, Seconds b) { return nine_digits(a) < nine_digits(b); }

void count(Replay& replay, Seconds period, const std::optional<ContendedResult>& r) {
  if (!r)
    replay.other = std::min(replay.other.value_or(period), period);
  else if (++replay.rows; r->ran())
    replay.best = std::min(replay.best.value_or(r->period), r->period);
}

std::string replayed_text(const std::optional<ContendedResult>& r) {
  if (!r) return "-";
  return r->ran() ? to_text(r->period) : "too full";
}

std::string replay_text(const Replay& replay, std::size_t width, const std::string& first, Seconds before,
                        const std::optional<ContendedResult>& after) {
  if (replay.rows == 0) return {};
  const auto label = [&](const std::string& word) {
    return width > 0 ? fmt::format("{:<{}}", word, width) : word + ": ";
  };
  std::string text = label(replay.backend) + "the period again where messages share links";
  if (replay.other) text += ", for the shortest rows (--replay)";
  if (replay.other && replay.best && shorter(*replay.other, *replay.best))
    text += fmt::format("; another may be shorter, it takes {} on ideal", to_text(*replay.other));
  text += "\n";
  if (!replay.changed) return text;
  text += label("order") + fmt::format("as on {}; on ideal ", replay.backend);
  if (replay.was_first == 0) return text + "it differs after the first row\n";
  return text + fmt::format("the first was {}: {} there, {} on {}\n", first, to_text(before), replayed_text(after),
                            replay.backend);
}

Json replay_json(const Replay& replay) {
  if (!replay.asked()) return {};
  return JsonObject{{"backend", replay.backend}, {"rows", replay.rows}, {"order_changed", replay.changed}};
}

Json replayed_json(const std::optional<ContendedResult>& r) {
  if (!r) return {};
  if (!r->ran()) return JsonObject{{"ran", false}, {"reason", r->why_not}};
  return JsonObject{{"ran", true}, {"period_s", r->period.value}, {"makespan_s", r->makespan.value}};
}

FileColumn replay_column(const std::string& backend, const std::string& what) {
  return only(number_column(fmt::format("{}_{}_s", backend, what), "s",
                            fmt::format("The {} when the row is simulated on {}, with network contention; empty where "
                                        "it was not, or could not run.",
                                        what, backend)),
              "with --replay");
}

FileColumn replayed_column() {
  using namespace config;
  static const MapSpec spec{
      .title = "A row that is simulated again with network contention.",
      .fields = {boolean("ran").doc("Whether it could run."), text("reason").optional().doc("Why it could not run."),
                 real("period_s", 0, kInfinity).optional().doc("The period in seconds."),
                 real("makespan_s", 0, kInfinity).optional().doc("Length of the first iteration in seconds.")}};
  return or_null(only(nested_column(map("replayed", spec), "The result with network contention; null without one."),
                      "with --replay"));
}

config::Field replay_field() {
  using namespace config;
  static const MapSpec spec{
      .title = "The simulation of rows with network contention.",
      .fields = {text("backend").doc("Backend that simulated the contention."),
                 integer("rows", 0, kInfinity).doc("Rows that have such a result."),
                 boolean("order_changed").doc("Whether contention changed the order of the rows.")}};
  return map("replay", spec).optional().doc("The simulation of rows with network contention (--replay).");
}

}  // namespace stagecraft
