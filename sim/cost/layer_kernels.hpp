#pragma once

#include <vector>

#include "sim/cost/kernel.hpp"
#include "sim/cost/software.hpp"

namespace stagecraft {

/// Kernels of the three passes over something, on one device.
struct PassKernels {
  std::vector<Kernel> forward, input_gradient, weight_gradient;

  void add(const PassKernels&);
  /// Input gradient, then weight gradient.
  std::vector<Kernel> backward() const;
};

// Kernels by the part of a layer, for numbers of 16 bits between operations. `rows` and `numbers` count what one device
// has of one micro-batch. Numbers may be fractions where a group divides unevenly.

/// y = x W^T. Products in fewer than 16 bits need casts: the forward reads the input and writes it and its transpose,
/// the backward does the same to the gradient of the output.
PassKernels linear_kernels(double rows, double in, double out, NumberFormat, const SoftwareStack&);
/// A layer norm or an RMS norm: 4 bytes a number forward, 6 backward.
PassKernels norm_kernels(double numbers, const SoftwareStack&);
/// A residual sum, with dropout and its mask where the stack has it.
PassKernels sum_kernels(double numbers, const SoftwareStack&);
/// The rotation of queries and keys.
PassKernels rotary_kernels(double numbers, const SoftwareStack&);
/// An activation that makes `out` numbers from `in`; a gated one reads twice as many as it writes.
PassKernels activation_kernels(double in, double out, const SoftwareStack&);
/// Numbers that are copied from one place to another.
PassKernels copy_kernels(double numbers);
/// The look-up of words and positions, with their sum and dropout.
PassKernels embedding_kernels(double numbers, const SoftwareStack&);
/// Softmax and cross entropy of this many logits.
PassKernels loss_kernels(double logits, const SoftwareStack&);

/// The core of attention: scores, softmax, context.
struct AttentionShape {
  double heads = 1;  ///< Heads of one device times samples.
  double queries = 0, keys = 0;
  double width = 0;      ///< Numbers of a head; of Q, K and of V in the mean.
  double visible = 0.5;  ///< Fused attention: share of the pairs that no mask hides.
};
PassKernels attention_kernels(const AttentionShape&, NumberFormat, NumberFormat wide, const SoftwareStack&);

/// Scores and the choice of experts for these tokens, in 16 bits.
PassKernels router_kernels(double tokens, double hidden, double experts, NumberFormat wide, const SoftwareStack&);
/// Rows that are brought into the order of experts, or back.
PassKernels permutation_kernels(double numbers);
/// One linear operation of each of `experts` experts, with `rows` rows each. Their casts are separate kernels, too
/// (split_quantize and group_quantize of Transformer Engine's GroupedLinear).
PassKernels grouped_kernels(double experts, double rows, double in, double out, NumberFormat);
/// The bias of each expert times the weight of a row, added to rows that a product left in 16 bits. Megatron-Core does
/// it for one expert after the other in fp32 (TEGroupedMLP._apply_bias). Bytes of each number: forward 28, of which the
/// product writes 4, the sum reads 6 and writes 4, the concatenation moves 8 and the cast 6; backward 40, of which
/// casts move 12, the concatenation 4, and gradients of bias and weights 12 each.
PassKernels weighted_bias_kernels(double numbers);

}  // namespace stagecraft
