// Compares the options of two schedules, and reads single options from a checked map.

#include "sim/schedule/options.hpp"

namespace stagecraft {
namespace {

bool same_placing(const PlacementRule& a, const PlacementRule& b) {
  return a.placement == b.placement && a.chunks.min == b.chunks.min && a.chunks.max == b.chunks.max &&
         a.chunks.step == b.chunks.step && a.turn == b.turn;
}

}  // namespace

bool operator==(const ScheduleOptions& a, const ScheduleOptions& b) {
  if (a.placing.has_value() != b.placing.has_value() || (a.placing && !same_placing(*a.placing, *b.placing)))
    return false;
  if (a.drain_every != b.drain_every || a.update_each_micro_batch != b.update_each_micro_batch) return false;
  if (!a.own_.has_value() || !b.own_.has_value()) return a.own_.has_value() == b.own_.has_value();
  return a.equal_(a.own_, b.own_);
}

int option_or(const config::Value& map, std::string_view name, int fallback) {
  const config::Value* given = map.find(name);
  return given ? config::as_int(*given) : fallback;
}

double option_or(const config::Value& map, std::string_view name, double fallback) {
  const config::Value* given = map.find(name);
  return given ? config::as_real(*given) : fallback;
}

bool option_is(const config::Value& map, std::string_view name, std::string_view word) {
  const config::Value* given = map.find(name);
  return given && given->text == word;
}

}  // namespace stagecraft
