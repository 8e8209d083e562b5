#pragma once

#include <cstdint>
#include <vector>

#include "sim/interchange/rules/torchtitan.hpp"

namespace stagecraft {

/// What the rules of DeepSpeed look at. What is not known is 0.
struct DeepspeedRun {
  int devices = 0, stages = 1, tensor = 1, zero = 0;
  int context = 1;                    ///< Ulysses.
  int expert = 1, expert_tensor = 1;  ///< AutoEP.
  std::int64_t replicas = 0, batch = 0, micro_batch = 0, accumulation = 0;
  int mics = 0;  ///< Devices over which MiCS divides weights; 0 without it.
  bool fp16 = false, bf16 = false;
  bool overlaps_sums = false;      ///< overlap_comm.
  bool adds_gradients = false;     ///< The sum of the replicas' gradients, and not their mean.
  bool offloads_a_part = false;    ///< A share of the optimizer below 1 in the memory of hosts.
  bool divides_experts = false;    ///< AutoEP.
  bool divides_otherwise = false;  ///< Tensor or sequence groups, MiCS, hpZ, or states in the memory of hosts.
};
/// Whether a run with this number of stages may have AutoTP: DeepSpeed's pipelines do not divide matrices with it here.
constexpr bool has_autotp(int stages) { return stages == 1; }

/// Broken rules, warnings among them.
std::vector<Diagnostic> broken_deepspeed_rules(const DeepspeedRun&);

}  // namespace stagecraft
