// The kernels of each kind of operation (product, norm, attention, loss), forward and backward, for given sizes;
// operation_kernels.cpp chooses among them and knows the sizes.

#include "sim/cost/layer_kernels.hpp"

#include <cmath>

namespace stagecraft {
namespace {

Kernel memory_bound(double bytes, double count = 1) {
  Kernel kernel;
  kernel.bytes = Bytes{bytes};
  kernel.count = count;
  return kernel;
}

Kernel product(double m, double n, double k, NumberFormat format) {
  Kernel kernel;
  kernel.kind = KernelKind::Product;
  kernel.m = m, kernel.n = n, kernel.k = k;
  kernel.format = format;
  return kernel;
}

PassKernels memory_bound_both(double forward, double backward, double forward_count, double backward_count) {
  return {{memory_bound(forward, forward_count)}, {memory_bound(backward, backward_count)}, {}};
}

PassKernels fused_attention(const AttentionShape& shape) {
  Kernel kernel;
  kernel.kind = KernelKind::FusedAttention;
  kernel.m = shape.queries, kernel.n = shape.keys, kernel.k = shape.width;
  kernel.batch = shape.heads;
  kernel.visible = shape.visible;
  kernel.attention_core = true;
  PassKernels kernels{{kernel}, {kernel}, {}};
  kernels.input_gradient.front().backward = true;
  kernels.input_gradient.front().count = 3;
  return kernels;
}

/// Q K^T, softmax with the mask, and P V; backward dP = dO V^T has the shape of Q K^T, and dV, dQ and dK that of P V.
std::vector<Kernel> unfused_core(const AttentionShape& shape, NumberFormat format, int deep, double softmax_bytes,
                                 bool dropout) {
  const double scores = shape.heads * shape.queries * shape.keys;
  std::vector<Kernel> kernels = {product(shape.queries, shape.keys, shape.width, format)};
  for (int i = 0; i < deep; ++i) kernels.push_back(product(shape.queries, shape.width, shape.keys, format));
  for (Kernel& kernel : kernels) {
    kernel.batch = shape.heads;
    kernel.unaligned = std::fmod(shape.width, 8) != 0;
  }
  kernels.push_back(memory_bound(softmax_bytes * scores));
  if (dropout) kernels.push_back(memory_bound(5 * scores));
  for (Kernel& kernel : kernels) kernel.attention_core = true;
  return kernels;
}

PassKernels unfused_attention(const AttentionShape& shape, NumberFormat format, const SoftwareStack& software) {
  PassKernels kernels{
      unfused_core(shape, format, 1, 4, software.dropout), unfused_core(shape, format, 3, 6, software.dropout), {}};
  const double context = shape.heads * shape.queries * shape.width;
  kernels.forward.push_back(memory_bound(4 * context, 2));          // Layout of the context.
  kernels.input_gradient.push_back(memory_bound(16 * context, 4));  // Layouts, and the gradients of Q, K, V joined.
  return kernels;
}

/// A product of a narrow format has its input cast before the forward and the gradient of its output before the
/// backward: 2 bytes of a number are read, and a byte for each of both directions in which products read it is written.
void add_casts(PassKernels& kernels, double in, double out, NumberFormat format) {
  if (!is_narrow(format)) return;
  kernels.forward.push_back(memory_bound(4 * in));
  kernels.input_gradient.push_back(memory_bound(4 * out));
}

}  // namespace

void PassKernels::add(const PassKernels& other) {
  forward.insert(forward.end(), other.forward.begin(), other.forward.end());
  input_gradient.insert(input_gradient.end(), other.input_gradient.begin(), other.input_gradient.end());
  weight_gradient.insert(weight_gradient.end(), other.weight_gradient.begin(), other.weight_gradient.end());
}

std::vector<Kernel> PassKernels::backward() const {
  std::vector<Kernel> kernels = input_gradient;
  kernels.insert(kernels.end(), weight_gradient.begin(), weight_gradient.end());
  return kernels;
}

PassKernels linear_kernels(double rows, double in, double out, NumberFormat format, const SoftwareStack& software) {
  PassKernels kernels{
      {product(rows, out, in, format)}, {product(rows, in, out, format)}, {product(out, in, rows, format)}};
  kernels.weight_gradient.front().output_bytes = software.weight_gradient_bytes;
  add_casts(kernels, rows * in, rows * out, format);
  return kernels;
}

PassKernels norm_kernels(double numbers, const SoftwareStack& software) {
  PassKernels kernels =
      memory_bound_both(4 * software.norm_traffic * numbers, 6 * software.norm_traffic * numbers, 1, 1);
  kernels.weight_gradient = {memory_bound(0)};  // It sums what the input gradient left in cache: a launch, no traffic.
  return kernels;
}

PassKernels sum_kernels(double numbers, const SoftwareStack& software) {
  const double mask = software.dropout ? 1 : 0;
  return memory_bound_both((6 + mask) * numbers, (4 + mask) * numbers, 1, 1);
}

PassKernels rotary_kernels(double numbers, const SoftwareStack& software) {
  return memory_bound_both(4 * software.norm_traffic * numbers, 4 * software.norm_traffic * numbers, 2, 2);
}

PassKernels activation_kernels(double in, double out, const SoftwareStack& software) {
  const double passes = software.norm_traffic > 1 ? 2 : 1;  // Gate and product apart.
  return memory_bound_both(passes * 2 * (in + out), passes * 2 * (2 * in + out), 1, 1);
}

PassKernels copy_kernels(double numbers) { return memory_bound_both(4 * numbers, 4 * numbers, 1, 1); }

PassKernels embedding_kernels(double numbers, const SoftwareStack& software) {
  return memory_bound_both((software.dropout ? 11 : 6) * numbers, 8 * numbers, 4, 4);
}

PassKernels loss_kernels(double logits, const SoftwareStack& software) {
  return memory_bound_both(software.loss_forward_traffic * logits, software.loss_backward_traffic * logits, 6, 3);
}

PassKernels attention_kernels(const AttentionShape& shape, NumberFormat format, NumberFormat wide,
                              const SoftwareStack& software) {
  if (software.fused_attention) return fused_attention(shape);
  return unfused_attention(shape, is_narrow(format) ? wide : format, software);
}

PassKernels router_kernels(double tokens, double hidden, double experts, NumberFormat wide,
                           const SoftwareStack& software) {
  PassKernels kernels = linear_kernels(tokens, hidden, experts, wide, software);
  kernels.add(memory_bound_both(8 * tokens * experts, 8 * tokens * experts, 6, 6));
  return kernels;
}

PassKernels permutation_kernels(double numbers) {
  PassKernels kernels = memory_bound_both(4 * numbers, 4 * numbers, 2, 2);
  kernels.forward.front().reorders_rows = kernels.input_gradient.front().reorders_rows = true;
  return kernels;
}

PassKernels weighted_bias_kernels(double numbers) { return memory_bound_both(28 * numbers, 40 * numbers, 1, 1); }

PassKernels grouped_kernels(double experts, double rows, double in, double out, NumberFormat format) {
  Kernel kernel = product(rows, out, in, format);
  // An expert alone on its device is a product like any other (multi_stream_cublas_gemm of Transformer Engine).
  if (experts > 1) kernel.kind = KernelKind::GroupedProduct;
  kernel.batch = experts;
  kernel.count = 2;
  PassKernels kernels{{kernel}, {kernel}, {kernel}};
  add_casts(kernels, experts * rows * in, experts * rows * out, format);
  return kernels;
}

}  // namespace stagecraft
