// Attention in mixed precision by cuDNN, which keeps the logarithm of the sum of exponentials of each row of scores, as
// a float, in place of all probabilities.
#include "backends/cuda/attention_plan.hpp"
#include "backends/cuda/kernels/operations.hpp"
#include "backends/cuda/launch_limit.hpp"
#include "sim/core/diagnostic.hpp"

namespace stagecraft::cuda {
namespace {

constexpr std::int64_t kNarrowPerFloat = sizeof(float) / sizeof(Bfloat16);

AttentionShape shape_of(const Operation& op, std::int64_t samples) {
  return {samples, op.heads, op.rows, op.columns / op.heads, op.causal};
}

std::int64_t statistics_numbers(const Operation& op) {
  return kNarrowPerFloat * op.heads * static_cast<std::int64_t>(op.rows);
}

/// The driver calls of an execution, at most: cuDNN does not say how many kernels it launches. Its engines fuse a
/// forward into one, and a backward into three or more, for sums of rows, two gradients and the third; both may clear
/// memory first. With too small a number a call could block in the driver, with too large a one streams are shorter.
void count_calls(cudaStream_t stream) {
  constexpr int kMostCalls = 8;
  for (int i = 0; i < kMostCalls; ++i) submitted(stream, "cudnnBackendExecute");
}

}  // namespace

std::int64_t library_saved_numbers(const Operation& op, std::int64_t samples) {
  // With two rows or one, the probabilities would not take more memory, and the size could not tell.
  if (op.kind != OperationKind::Attention || op.rows <= kNarrowPerFloat) return 0;
  if (head_shape(op).key_value_heads < op.heads) return 0;  // The plans have as many heads of keys as of queries.
  return AttentionPlans::has(shape_of(op, samples)) ? statistics_numbers(op) : 0;
}

bool library_has_gradient(const real::Call& call) {
  return AttentionPlans::has_backward(shape_of(*call.operation, call.samples));
}

bool is_for_library(const real::Call& call) {
  const Operation& op = *call.operation;
  return call.inputs.size() == 1 && op.rows > kNarrowPerFloat && call.saved.columns == statistics_numbers(op);
}

void library_attention(const Device& device, const real::Call& call) {
  AttentionPlans::use(shape_of(*call.operation, call.samples), device.stream,
                      [&](AttentionPlan& plan, cudnn::Handle handle) {
                        const Scratch<char> workspace(*device.memory, plan.forward_workspace());
                        plan.forward(handle, {.input = call.inputs[0].data,
                                              .output = call.output.data,
                                              .statistics = static_cast<float*>(call.saved.data),
                                              .workspace = workspace.data()});
                      });
  count_calls(device.stream);
}

void library_attention_gradient(const Device& device, const real::Call& call, const real::Tensor& d_output,
                                const real::Gradient& to) {
  STAGECRAFT_CHECK(call.output);
  const Scratch<Bfloat16> apart(*device.memory, to.add ? to.tensor.size() : 0);  // cuDNN writes and cannot add.
  void* const gradient = to.add ? apart.data() : to.tensor.data;
  AttentionPlans::use(shape_of(*call.operation, call.samples), device.stream,
                      [&](AttentionPlan& plan, cudnn::Handle handle) {
                        const Scratch<float> row_sums(*device.memory, plan.shape().statistics());
                        const Scratch<char> workspace(*device.memory, plan.backward_workspace());
                        plan.backward(handle, {.input = call.inputs[0].data,
                                               .output = call.output.data,
                                               .statistics = static_cast<float*>(call.saved.data),
                                               .d_output = d_output.data,
                                               .gradient = gradient,
                                               .row_sums = row_sums.data(),
                                               .workspace = workspace.data()});
                      });
  count_calls(device.stream);
  if (to.add) add(device, to.tensor.size(), apart.data(), static_cast<Bfloat16*>(to.tensor.data));
}

}  // namespace stagecraft::cuda
