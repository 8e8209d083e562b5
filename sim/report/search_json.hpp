#pragma once

#include <nlohmann/json.hpp>

#include "sim/schedule/schedule.hpp"

namespace stagecraft {

/// How an order was found, as files have it.
inline nlohmann::ordered_json search_json(const Search& s) {
  return {{"objective", s.period ? "period" : "makespan"},
          {"found_s", s.found.value},
          {"lower_bound_s", s.bound.value},
          {"lower_bound_reason", s.reason},
          {"from", s.from}};
}

}  // namespace stagecraft
