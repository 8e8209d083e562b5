#pragma once

#include <vector>

#include "sim/core/parallel.hpp"
#include "sim/cost/layer_kernels.hpp"
#include "sim/cost/load.hpp"

namespace stagecraft {

/// Number formats of a run: `products` for most products, `wide` for what stays in 16 bits: scores of words and of
/// experts, and attention.
struct RunFormats {
  NumberFormat products = NumberFormat::Bf16, wide = NumberFormat::Bf16;
};

/// The kernels of one operation on one device of its stage, for the load of each replica. Whether attention is fused is
/// said by the operation, not by the stack. Inputs and slices have no kernels. InputError for attention that is not
/// fused where sequences are packed: its products and their tiles have the shape of a whole sample.
PassKernels kernels_of(const Operation&, const Degrees&, const Load&, RunFormats, const SoftwareStack&);

/// The kernels of all operations of a layer.
PassKernels kernels_of(const std::vector<Operation>&, const Degrees&, const Load&, RunFormats, const SoftwareStack&);

}  // namespace stagecraft
