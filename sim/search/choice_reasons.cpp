// The lines that explain the answer of a search: why the first row wins, what the next one and other device types
// reach, which faster one does not fit, and what was not tried.

#include "sim/search/choice_reasons.hpp"

#include <algorithm>
#include <tuple>

#include <fmt/core.h>

#include "sim/core/text.hpp"
#include "sim/output/text.hpp"

namespace stagecraft {
namespace {

bool is_better(const Choice& a, const Choice& b) {
  return std::tuple(a.is_tight, a.amount, a.memory, a.id) < std::tuple(b.is_tight, b.amount, b.memory, b.id);
}

std::string words(const Choice& c) {
  return fmt::format("{} on {}, {}", c.schedule, pluralize(c.devices, "device"), c.plan_words) +
         (c.recompute == "none" ? "" : ", recompute " + c.recompute) +
         (c.placement == "linear" ? "" : ", placement " + c.placement);
}

/// The period without contention, in parts: "work of the busiest device 12 ms, waiting 1 ms, contention 0.3 ms".
std::string parts(const Choice& c) {
  const Seconds contention = known_period(c) - c.period, waiting = c.period - c.work;
  std::string text = to_text(c.work) + " of work on the busiest device";
  if (waiting.value > 1e-9 * c.period.value) text += fmt::format(", {} of waiting", to_text(waiting));
  if (contention.value > 1e-3 * c.period.value) text += fmt::format(", {} of contention", to_text(contention));
  return text;
}

}  // namespace

void ChoiceReasons::add(const Choice& c) {
  double& simulated = by_types_[c.device_types].simulated;
  simulated = std::min(simulated, c.amount);
  best_.insert(std::upper_bound(best_.begin(), best_.end(), c, is_better), c);
  if (best_.size() > 2) best_.pop_back();
}

void ChoiceReasons::add_bound(const std::string& device_types, double amount) {
  double& lower_bound = by_types_[device_types].bound;
  lower_bound = std::min(lower_bound, amount);
}

void ChoiceReasons::add_unfit(const Choice& c) {
  if (c.replayed && (!shortest_unfit_ || c.period < shortest_unfit_->period)) shortest_unfit_ = c;
}

std::vector<std::string> ChoiceReasons::lines(const ChoiceTable& table, const std::string& about_parts) const {
  std::vector<std::string> lines;
  if (table.front.empty()) return lines;
  const Choice& first = table.front.front();
  const ObjectiveUnit& unit = table.unit;
  const auto period = [&](const Choice& c) {
    return unit.is_time() ? std::string() : fmt::format("a period of {}: ", to_text(known_period(c)));
  };
  lines.push_back(fmt::format("the first: {}; {}{}", words(first), period(first), parts(first)));
  for (const Choice& c : best_)
    if (c.id != first.id) {
      lines.push_back(fmt::format(
          "the next: {}{} at {}{}; {}{}", words(c), words(c) == words(first) ? ", another plan" : "",
          unit.text(c.amount), table.replay.asked() && !c.replayed ? " without contention" : "", period(c), parts(c)));
      break;
    }
  for (const auto& [types, amounts] : by_types_) {
    if (types == first.device_types) continue;
    const bool is_simulated = amounts.simulated < kInfinity;
    if (is_simulated && amounts.simulated <= amounts.bound)
      lines.push_back(fmt::format("on {}: {} at best", types, unit.text(amounts.simulated)));
    else
      lines.push_back(fmt::format("on {}: no {} than {}{}", types, unit.is_time() ? "shorter" : "less",
                                  unit.text(amounts.bound),
                                  is_simulated ? fmt::format("; {} simulated", unit.text(amounts.simulated))
                                               : std::string(", by lower bounds")));
  }
  if (!about_parts.empty()) lines.push_back(about_parts);
  if (shortest_unfit_ && unit.is_time() && shortest_unfit_->period < known_period(first))
    lines.push_back(fmt::format("does not fit in memory with its messages: {} at {}", words(*shortest_unfit_),
                                to_text(shortest_unfit_->period)));
  lines.insert(lines.end(), other_lines_.begin(), other_lines_.end());
  if (!not_tried_.empty()) lines.push_back("not tried: " + join(not_tried_, "; "));
  return lines;
}

}  // namespace stagecraft
