#pragma once

#include <cstdint>

#include "sim/config/value.hpp"

namespace stagecraft {

/// Gives fields of older files, in a tree that is not checked yet, the names that they have now: a number in the
/// `group` of a stage is `consecutive`. `origin` of these values is kOldName.
void rename_old_fields(config::Value& scenario);
inline constexpr const char* kOldName = "formerly group";

/// Whether plan.micro_batch_size counts the samples of one replica, as scenario/2 has it, and not of all of them
/// together, as scenario/1 had it.
bool counts_per_replica(const config::Value& scenario);

/// Samples of the largest micro-batch of all replicas together, as the plan is written; 0 where the planner chooses.
std::int64_t written_micro_batch(const config::Value& plan, bool per_replica);

/// Inserts `software` at its place among the members of a scenario that lacks it.
void add_software(config::Value& scenario, config::Value software);

/// A settled scenario as an equal scenario/2. InputError where a micro-batch of scenario/1 is not a whole number of
/// samples for each replica, which scenario/2 cannot say.
config::Value in_second_version(config::Value scenario);

}  // namespace stagecraft
