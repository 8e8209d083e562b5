#pragma once

#include <optional>
#include <string_view>

#include "sim/config/fields.hpp"
#include "sim/core/catalog.hpp"
#include "sim/weights/rule.hpp"

namespace stagecraft {

/// A weights policy: which weights a forward and a backward use, orthogonal to the order of work. Each is an
/// entry of the table in policy.cpp.
struct WeightsDef {
  std::string_view name, summary, source;
  bool needs_flush = false;  ///< True: only right when every iteration drains.
  WeightsRule paper;
  std::optional<WeightsRule> as_released = {};  ///< What the published code does, where it differs from its paper.
  const config::MapSpec* fields = nullptr;      ///< In addition to `fidelity`.
  /// Puts the fields of a checked map into a rule. Throws InputError for what cannot go together.
  void (*read)(const config::Value& map, WeightsRule&) = nullptr;
};

namespace weights {
Catalog<WeightsDef> catalog();
}

/// The field that every policy has in addition to its name: `fidelity`.
const config::MapSpec& weights_fields();
/// The rule that a checked `weights` map asks for. A policy without a released form has one form.
WeightsRule rule_of(const WeightsDef&, const config::Value& map);

}  // namespace stagecraft
