#pragma once

#include <string>
#include <string_view>

#include "sim/config/fields.hpp"
#include "sim/planners/shared/planner.hpp"

namespace stagecraft {

/// The options `group` and `shard` of planners that divide stages over groups of devices.
config::Field device_group_field();
config::Field dispatcher_field();  ///< For a group, and for published runs.
config::Field shard_field();

/// Why a plan with this option, `group` or `shard`, cannot be for a planner without it.
Diagnostic no_groups(const PlannerDef&, const std::string& option, const Where&);

/// "optimizer": the value of the option `shard`.
std::string_view to_text(StateSharding);

void read_group(const config::Value& checked, PlanSpec&);
void read_sharding(const config::Value& checked, PlanSpec&);
/// For a shape with its degrees and its sharding. All devices with the same part of the parameters are no cut.
void set_shard_within(StageShape&, int devices);

/// ", group: {tensor: 8, sequence: true}, shard: optimizer": what differs from a group of one, for to_text().
std::string group_text(const PlanSpec&);

/// "TP 8, CP 2, ZeRO-1": the same for a table; empty without a group.
std::string group_words(const PlanSpec&);

/// Throws InputError with every rule that the group breaks: what the model cannot be divided into, a group larger than
/// a node that must not cross it, experts that do not fit on the devices of a stage, devices of different types, stages
/// that share a device in different groups. Where stages divide the model in their own ways, the group of the plan
/// counts for the others alone; check_own_group() has the rules for one of these stages.
void check_group(const PlannerInput&, const Plan&);
void check_own_group(const PlannerInput&, const Stage&, const PlanSpec& division, const std::string& path);

}  // namespace stagecraft
