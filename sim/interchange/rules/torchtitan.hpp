#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/interchange/rules/framework_rule.hpp"

namespace stagecraft {

/// What the rules of torchtitan look at. What is not known is 0, which keeps every rule about it.
struct TorchtitanRun {
  bool main = false;  ///< Configured in Python, since 2026-02-23.
  int devices = 0, ranks = 1, tensor = 1, context = 1, expert = 1, expert_tensor = 0, replicate = 1, shard = 1;
  std::string schedule = {};  ///< As torchtitan calls it.
  std::int64_t stages = 1, micro_batches = 0;
  std::int64_t local_batch = 0, micro_batch = 0, global_batch = 0;
  int sequence = 0, heads = 0, key_value_heads = 0, experts = 0;
  bool compiles_model = false, async_tensor = false, disables_graphs = false;
};

/// `place` is the part of a plan that it is about: group, shard, schedule or batch.
struct BrokenRule {
  std::string rule, place, message, help;
};
std::vector<BrokenRule> broken_torchtitan_rules(const TorchtitanRun&);

}  // namespace stagecraft
