#pragma once

#include <cstdint>
#include <vector>

#include "sim/interchange/rules/torchtitan.hpp"

namespace stagecraft {

/// What the rules of DeepSpeed look at. What is not known is 0.
struct DeepspeedRun {
  int devices = 0, stages = 1, zero = 0;
  std::int64_t replicas = 0, batch = 0, micro_batch = 0, accumulation = 0;
  bool fp16 = false, bf16 = false;
  bool overlaps_sums = false;      ///< overlap_comm.
  bool offloads_a_part = false;    ///< A share of the optimizer below 1 in the memory of hosts.
  bool divides_experts = false;    ///< AutoEP.
  bool divides_otherwise = false;  ///< Tensor or sequence groups, MiCS, hpZ, or states in the memory of hosts.
};
/// Broken rules, warnings among them.
std::vector<Diagnostic> broken_deepspeed_rules(const DeepspeedRun&);

}  // namespace stagecraft
