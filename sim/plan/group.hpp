#pragma once

#include <string>

#include "sim/config/fields.hpp"
#include "sim/plan/planner.hpp"

namespace stagecraft {

/// The options `group` and `shard` of planners that divide stages over groups of devices.
config::Field device_group_field();
config::Field shard_field();

void read_group(const config::Value& checked, PlanSpec&);
void read_sharding(const config::Value& checked, PlanSpec&);

/// ", group: {tensor: 8, sequence: true}, shard: optimizer": what differs from a group of one, for to_text().
std::string group_text(const PlanSpec&);

/// "tensor 8, context 2, shard optimizer": the same for a table; empty without a group.
std::string group_words(const PlanSpec&);

/// Throws InputError with every rule that the group breaks: what the model cannot be divided into, a group larger than
/// a node that must not cross it, experts that do not fit on the devices of a stage, devices of different types.
void check_group(const PlannerInput&, const Plan&);

}  // namespace stagecraft
