// Tensor operations on the samples of a micro-batch, one after the other or all at once: forward and gradients.

#include <algorithm>
#include <vector>

#include "backends/cpu/operations.hpp"
#include "backends/cpu/tensor_functions.hpp"

namespace stagecraft::cpu {
namespace {

template <class T>
TensorKernels<T> kernels_of_function(TensorFunction function) {
  for (const auto& family :
       {arithmetic_kernels<T>, arrangement_kernels<T>, sum_kernels<T>, row_kernels<T>, window_kernels<T>})
    if (const TensorKernels<T> kernels = family(function); kernels.value) return kernels;
  return {};
}

/// The operands of a call: inputs and constants as they are for each sample, and weights.
template <class T>
class SampleOperands {
 public:
  explicit SampleOperands(const real::Call& call) : op_(*call.operation->tensor) {
    std::size_t input = 0;
    constants_.reserve(op_.operands.size());
    for (const TensorOperand& o : op_.operands) {
      const bool is_input = o.source == OperandSource::Input;
      if (is_input) starts_.push_back(numbers<T>(call.inputs[input++]));
      if (o.source == OperandSource::Weights) starts_.push_back(static_cast<const T*>(call.weights));
      if (o.source == OperandSource::Constant)
        starts_.push_back(constants_.emplace_back(o.values.begin(), o.values.end()).data());
      steps_.push_back(is_input ? numbers_of(o.shape) : 0);
    }
    places_.resize(starts_.size());
  }

  std::span<const T* const> operands_of(std::int64_t sample) {
    for (std::size_t i = 0; i < starts_.size(); ++i)
      places_[i] = starts_[i] ? starts_[i] + sample * steps_[i] : nullptr;
    return places_;
  }

 private:
  const TensorOperation& op_;
  std::vector<std::vector<T>> constants_;
  std::vector<const T*> starts_, places_;
  std::vector<std::int64_t> steps_;
};

template <class T>
void forward(const real::Call& call) {
  const TensorOperation& op = *call.operation->tensor;
  const TensorKernels<T> kernels = kernels_of_function<T>(op.function);
  STAGECRAFT_CHECK(kernels.value);
  const std::int64_t at_once = kernels.joins_samples ? call.samples : 1, size = numbers_of(op.shape);
  SampleOperands<T> operands(call);
  for (std::int64_t sample = 0; sample < call.samples; sample += at_once)
    kernels.value({.op = op, .operands = operands.operands_of(sample), .samples = at_once},
                  numbers<T>(call.output) + sample * size);
}

/// Adds the gradient of an operand; the gradients of two samples lie `step` numbers apart.
template <class T>
void add_gradient(const real::Call& call, const real::Tensor& d_output, std::size_t operand, T* to, std::int64_t step) {
  const TensorOperation& op = *call.operation->tensor;
  const TensorKernels<T> kernels = kernels_of_function<T>(op.function);
  if (!kernels.gradient) return;
  const std::int64_t at_once = kernels.joins_samples ? call.samples : 1, size = numbers_of(op.shape);
  const T *const output = numbers<T>(call.output), *const gradient = numbers<T>(d_output);
  SampleOperands<T> operands(call);
  for (std::int64_t sample = 0; sample < call.samples; sample += at_once)
    kernels.gradient({op, operands.operands_of(sample), output ? output + sample * size : nullptr,
                      gradient + sample * size, at_once},
                     operand, to + sample * step);
}

template <class T>
void input_gradient(const real::Call& call, const real::Tensor& d_output, std::span<const real::Gradient> d_inputs,
                    MemoryPool&) {
  const std::vector<TensorOperand>& operands = call.operation->tensor->operands;
  std::size_t input = 0;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    if (operands[i].source != OperandSource::Input) continue;
    const real::Gradient& to = d_inputs[input++];
    if (!to.tensor) continue;
    if (!to.add) std::fill_n(numbers<T>(to.tensor), to.tensor.size(), T{0});
    add_gradient<T>(call, d_output, i, numbers<T>(to.tensor), numbers_of(operands[i].shape));
  }
}

template <class T>
void weight_gradient(const real::Call& call, const real::Tensor& d_output, void* d_weights) {
  const TensorOperation& op = *call.operation->tensor;
  if (const TensorOperand* weights = op.weights())
    add_gradient<T>(call, d_output, static_cast<std::size_t>(weights - op.operands.data()), static_cast<T*>(d_weights),
                    0);
}

}  // namespace

template <class T>
OperationKernels tensor_kernels() {
  return {forward<T>, input_gradient<T>, weight_gradient<T>};
}
template OperationKernels tensor_kernels<float>();
template OperationKernels tensor_kernels<double>();

}  // namespace stagecraft::cpu
