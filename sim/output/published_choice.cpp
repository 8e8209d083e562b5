// Published configurations next to the rows of a search, as text and JSON.

#include "sim/output/choice_table.hpp"

#include <cmath>

#include <fmt/core.h>

#include "sim/core/text.hpp"
#include "sim/output/text.hpp"

namespace stagecraft {

std::string published_text(const ChoiceTable& t) {
  std::string text;
  for (const PublishedChoice& p : t.published) {
    text += fmt::format("published: {} ({})  ", p.name, pluralize(p.devices, "GPU"));
    if (!p.why_not.empty()) {
      text += p.why_not + "\n";
      continue;
    }
    const Seconds period = known_period(p.choice);
    text += fmt::format("{}, {}, {}, {}", p.choice.plan_words, p.choice.schedule, to_text(period),
                        to_text(p.choice.memory));
    if (!t.front.empty() && t.front.front().id == p.choice.id) {
      text += "; it is the first row";
    } else if (!t.front.empty()) {
      const double shorter = 1 - known_period(t.front.front()) / period;
      text += fmt::format("; the first is {:.1f} % {}", std::abs(100 * shorter), shorter < 0 ? "longer" : "shorter");
      if (shorter < 0 && p.choice.is_tight && !t.front.front().is_tight)
        text += fmt::format(", and leaves {:g} % of memory free (--margin)", 100 * t.margin);
    }
    text += "\n";
  }
  return text;
}

Json published_json(const ChoiceTable& t) {
  JsonArray rows;
  for (const PublishedChoice& p : t.published) {
    const bool ran = p.why_not.empty();
    rows.push_back(JsonObject{{"name", p.name},
                              {"source", p.source},
                              {"devices", p.devices},
                              {"plan", p.choice.plan_words},
                              {"schedule", p.choice.schedule},
                              {"period_s", ran ? Json(known_period(p.choice).value) : Json()},
                              {"peak_memory_bytes", ran ? Json(p.choice.memory.value) : Json()},
                              {"sets", p.choice.sets},
                              {"why_not", p.why_not}});
  }
  return rows;
}

config::Field published_field() {
  using namespace config;
  static const MapSpec row{
      .title = "A published configuration of the same model and chip, simulated as the choices are.",
      .fields = {text("name").doc("Its name in scenarios/recipes."), text("source").doc("Where it was published."),
                 integer("devices", 0, kInfinity).doc("GPUs of the published run; replicas fill the cluster here."),
                 text("plan").doc("The plan, as arguments of training frameworks count it."),
                 text("schedule").doc("The schedule."),
                 real("period_s", 0, kInfinity).nullable().doc("Its period, in seconds; null where it cannot run."),
                 real("peak_memory_bytes", 0, kInfinity).nullable().doc("Memory of the fullest device."),
                 list("sets", text("set")).doc("Settings that make it of the scenario."),
                 text("why_not").doc("Why it cannot run; empty where it can.")}};
  return list("published", map("recipe", row)).doc("Published configurations for this model and these chips.");
}

}  // namespace stagecraft
