#pragma once

#include <any>
#include <optional>
#include <string_view>
#include <utility>

#include "sim/config/fields.hpp"
#include "sim/plan/placement.hpp"

namespace stagecraft {

/// The options of a schedule as values: what the builder acts on, and a struct of the schedule's own. Default: none
/// were given.
class ScheduleOptions {
 public:
  std::optional<PlacementRule> placing = {};  ///< Where the schedule wants the stages, when it has a say.
  int drain_every = 0;                        ///< Iterations between two drains; 0: none before the end.
  bool update_each_micro_batch = false;

  ScheduleOptions() = default;

  /// Keeps the schedule's own options, which compare with ==.
  template <class Own>
  void keep(Own options) {
    own_ = std::move(options);
    equal_ = [](const std::any& a, const std::any& b) {
      const Own *left = std::any_cast<Own>(&a), *right = std::any_cast<Own>(&b);
      return left && right && *left == *right;
    };
  }
  /// The schedule's own options; their defaults when none were given.
  template <class Own>
  Own as() const {
    const Own* options = std::any_cast<Own>(&own_);
    return options ? *options : Own{};
  }

  friend bool operator==(const ScheduleOptions&, const ScheduleOptions&);

 private:
  std::any own_;
  bool (*equal_)(const std::any&, const std::any&) = nullptr;
};

/// A member of a checked map of options, or `fallback` when it is not given.
int option_or(const config::Value& map, std::string_view name, int fallback);
double option_or(const config::Value& map, std::string_view name, double fallback);
bool option_is(const config::Value& map, std::string_view name, std::string_view word);

}  // namespace stagecraft
