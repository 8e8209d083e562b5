#pragma once

#include <memory>
#include <string>
#include <vector>

#include "sim/config/value.hpp"
#include "sim/cost/cost_rules.hpp"

namespace stagecraft {

/// The rules that `software` and `run.precision` of a checked scenario ask for, with the figures of the cluster's
/// device types from topologies/devices. A type without such a file has its rates alone. InputError
/// for a number format that a device does not have.
std::shared_ptr<const CostRules> read_cost_rules(const config::Value& tree, const std::shared_ptr<const Cluster>&);

/// The stack of a settled scenario, with the switches that the scenario gives it.
SoftwareStack software_of(const config::Value& tree);

/// Writes out the `software` of a checked scenario: the stack that a name of another one stands for, what overlaps, and
/// bytes of gradients. Without it, plain. Problems: a release that is not known, and overlap that the stack has not.
void settle_software(config::Value& tree, config::Problems&);

/// "software.fused_loss: true": the facts that a settled scenario writes in place of its stack's, but for the release,
/// what overlaps, and the bytes of gradients.
std::vector<std::string> replaced_facts(const config::Value& tree);

/// What a name of a stack means now, if the scenario has one that stands for another stack with other switches.
std::vector<std::string> software_notes(const config::Value& tree);

/// Writes `software` at its place among the members of a scenario that leaves it out.
void add_software(config::Value& scenario, std::string name, std::string origin);

/// Writes `flash_attention` into the transformer of a checked scenario that leaves it out: what the software stack has;
/// without a stack false, or what the configuration says that the model was read from.
void settle_attention(config::Value& tree);

}  // namespace stagecraft
