#include "sim/search/choice_reasons.hpp"

#include <algorithm>
#include <tuple>

#include <fmt/core.h>

#include "sim/core/text.hpp"
#include "sim/report/text.hpp"

namespace stagecraft {
namespace {

bool is_shorter(const Choice& a, const Choice& b) {
  return std::tuple(known_period(a), a.memory, a.id) < std::tuple(known_period(b), b.memory, b.id);
}

std::string words(const Choice& c) {
  return fmt::format("{} on {}, {}{}, micro-batches of {}", c.schedule, pluralize(c.devices, "device"),
                     pluralize(c.stages, "stage"), c.replicas > 1 ? fmt::format(" x {}", c.replicas) : std::string(),
                     c.micro_batch_size) +
         (c.recompute == "none" ? "" : ", recompute " + c.recompute);
}

/// The period without contention, in parts: "work of the busiest device 12 ms, waiting 1 ms, contention 0.3 ms".
std::string parts(const Choice& c) {
  const Seconds contention = known_period(c) - c.period;
  std::string text = fmt::format("{} of work on the busiest device, {} of waiting", to_text(c.work),
                                 to_text(std::max(Seconds{0}, c.period - c.work)));
  if (contention.value > 1e-3 * c.period.value) text += fmt::format(", {} of contention", to_text(contention));
  return text;
}

}  // namespace

void ChoiceReasons::add(const Choice& c) {
  Seconds& simulated = by_types_[c.device_types].simulated;
  simulated = std::min(simulated, known_period(c));
  shortest_.insert(std::upper_bound(shortest_.begin(), shortest_.end(), c, is_shorter), c);
  if (shortest_.size() > 2) shortest_.pop_back();
}

void ChoiceReasons::add_bound(const std::string& device_types, Seconds bound) {
  Seconds& shortest = by_types_[device_types].bound;
  shortest = std::min(shortest, bound);
}

void ChoiceReasons::add_unfit(const Choice& c) {
  if (c.replayed && (!shortest_unfit_ || c.period < shortest_unfit_->period)) shortest_unfit_ = c;
}

std::vector<std::string> ChoiceReasons::lines(const ChoiceTable& table, const std::string& about_parts) const {
  std::vector<std::string> lines;
  if (table.front.empty()) return lines;
  const Choice& first = table.front.front();
  lines.push_back(fmt::format("the first: {}; {}", words(first), parts(first)));
  for (const Choice& c : shortest_)
    if (c.id != first.id) {
      lines.push_back(fmt::format("the next: {} at {}; {}", words(c), to_text(known_period(c)), parts(c)));
      break;
    }
  for (const auto& [types, shortest] : by_types_) {
    if (types == first.device_types) continue;
    const bool is_simulated = shortest.simulated.value < kInfinity;
    if (is_simulated && shortest.simulated <= shortest.bound)
      lines.push_back(fmt::format("on {}: {} at best", types, to_text(shortest.simulated)));
    else
      lines.push_back(fmt::format("on {}: no shorter than {}{}", types, to_text(shortest.bound),
                                  is_simulated ? fmt::format("; {} simulated", to_text(shortest.simulated))
                                               : std::string(", by lower bounds")));
  }
  if (!about_parts.empty()) lines.push_back(about_parts);
  if (shortest_unfit_ && shortest_unfit_->period < known_period(first))
    lines.push_back(fmt::format("does not fit in memory with its messages: {} at {}", words(*shortest_unfit_),
                                to_text(shortest_unfit_->period)));
  if (!not_tried_.empty()) lines.push_back("not tried: " + join(not_tried_, "; "));
  return lines;
}

}  // namespace stagecraft
