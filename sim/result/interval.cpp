// The interval of a predicted time as text and in files; sim/published computes it.

#include "sim/result/interval.hpp"

#include <fmt/core.h>

#include "sim/core/diagnostic.hpp"
#include "sim/core/text.hpp"

namespace stagecraft {

std::string half_width_text(const PredictionInterval& interval) {
  if (interval.half_width >= 1) return fmt::format("up to {:.1f} times as long", 1 + interval.half_width);
  const double percent = 100 * interval.half_width;
  return fmt::format("± {:.{}f} %", percent, percent < 9.95 ? 1 : 0);
}

std::string to_text(Seconds time, const std::optional<PredictionInterval>& interval) {
  if (!interval) return to_text(time);
  const std::string width = half_width_text(*interval);
  return to_text(time) + (interval->half_width >= 1 ? " (" + width + ")" : " " + width);
}

std::string to_text(const PredictionInterval& interval) {
  return fmt::format("{:.0f} % of {} {} are so close to their prediction{}; median {:.1f} %", 100 * interval.coverage,
                     interval.runs, interval.class_name, interval.calibrated ? "" : " with shares of other types",
                     100 * interval.median);
}

std::string interval_line(const std::optional<PredictionInterval>& interval) {
  return interval ? half_width_text(*interval) + "  " + to_text(*interval) + "\n" : std::string();
}

Json interval_json(const PredictionInterval& interval) {
  return JsonObject{{"half_width", interval.half_width}, {"coverage", interval.coverage},
                    {"median", interval.median},         {"runs", interval.runs},
                    {"class", interval.class_name},      {"calibrated", interval.calibrated}};
}

config::Field interval_field() {
  using namespace config;
  static const MapSpec spec{
      .title = "How far a measured time may be from the predicted one, as shares of the predicted time.",
      .fields = {real("half_width", 0, kInfinity).doc("Largest distance of a measured time."),
                 real("coverage", 0, 1).doc("Share of the published runs of the class whose time is within it."),
                 real("median", 0, kInfinity).doc("Median distance of these runs."),
                 integer("runs", 1, kInfinity).doc("Published runs of the class."),
                 text("class").doc("The class: device type, number format, size and kind of the model."),
                 boolean("calibrated")
                     .doc("Whether a constant of the device type was fitted to measured runs. "
                          "Otherwise the runs are priced with shares of other device types.")}};
  return map("interval", spec).optional().doc("Interval of predicted times, where layers are priced from shapes.");
}

}  // namespace stagecraft
