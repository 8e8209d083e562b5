#pragma once

#include <vector>

#include "sim/core/parallel.hpp"
#include "sim/cost/layer_kernels.hpp"
#include "sim/model/operation.hpp"

namespace stagecraft {

/// How the devices of a stage divide an operation, as far as its kernels depend on it.
struct OperationShard {
  int tensor = 1;
  bool sequence = false;  ///< Rows of what the tensor group replicates are divided over it (sequence parallelism).
  int context = 1, expert = 1, expert_tensor = 1;
};

/// Number formats of a run: `products` for most products, `wide` for what stays in 16 bits: scores of words and of
/// experts, and attention.
struct RunFormats {
  NumberFormat products = NumberFormat::Bf16, wide = NumberFormat::Bf16;
};

/// The kernels of one operation on one device of its stage, for a micro-batch of `samples` samples of each replica.
/// Whether attention is fused is said by the operation, not by the stack. Inputs and slices have no kernels.
PassKernels kernels_of(const Operation&, const OperationShard&, double samples, RunFormats, const SoftwareStack&);

/// The kernels of all operations of a layer.
PassKernels kernels_of(const std::vector<Operation>&, const OperationShard&, double samples, RunFormats,
                       const SoftwareStack&);

}  // namespace stagecraft
