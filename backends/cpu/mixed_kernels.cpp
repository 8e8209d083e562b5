// Mixed precision on the CPU: the numbers of 16 bits that an operation reads become floats, its kernel for floats
// computes, and what it writes is rounded once. Attention rounds its probabilities as well, because the next product
// reads them as numbers of 16 bits.
#include <algorithm>
#include <list>
#include <vector>

#include "backends/cpu/kernels.hpp"
#include "backends/cpu/loops.hpp"
#include "backends/cpu/operations.hpp"
#include "backends/real/formulas/bfloat16.hpp"

namespace stagecraft::cpu {
namespace {

using real::Bfloat16;

void widen(std::int64_t count, const void* from, float* to) {
  put(false, count, to, [x = static_cast<const Bfloat16*>(from)](std::int64_t i) { return static_cast<float>(x[i]); });
}

void round_to(std::int64_t count, const float* from, void* to) {
  auto* const numbers = static_cast<Bfloat16*>(to);
  for (std::int64_t i = 0; i < count; ++i) numbers[i] = Bfloat16(from[i]);
}

/// Floats in place of the tensors of one call. Results go back where they belong, rounded.
class FloatTensors {
 public:
  explicit FloatTensors(MemoryPool& pool) : pool_(pool) {}

  real::Tensor read(const real::Tensor& t) {
    if (!t || t.is_wide) return t;
    const real::Tensor wide = fresh(t);
    widen(t.size(), t.data, numbers<float>(wide));
    return wide;
  }
  /// A result: with `add` it starts from what is there. Equal places are one result.
  real::Tensor write(const real::Tensor& t, bool add) {
    if (!t || t.is_wide) return t;
    for (const auto& [narrow, wide] : results_)
      if (narrow.data == t.data) return wide;
    const real::Tensor wide = add ? read(t) : fresh(t);
    results_.push_back({t, wide});
    return wide;
  }
  void round_results() const {
    for (const auto& [narrow, wide] : results_) round_to(narrow.size(), numbers<float>(wide), narrow.data);
  }

  /// The call of a forward writes its output and what it keeps; the calls of a backward read them.
  real::Call call(const real::Call& narrow, bool writes) {
    real::Call wide = narrow;
    for (const real::Tensor& input : narrow.inputs) inputs_.push_back(read(input));
    wide.inputs = inputs_;
    const std::int64_t weights = real::blocks(*narrow.operation, sizeof(float)).total;
    if (weights > 0 && narrow.weights) wide.weights = read({const_cast<void*>(narrow.weights), 1, weights}).data;
    wide.output = writes ? write(narrow.output, false) : read(narrow.output);
    wide.saved = writes ? write(narrow.saved, false) : read(narrow.saved);
    return wide;
  }

 private:
  real::Tensor fresh(const real::Tensor& t) {
    return {scratch_.emplace_back(pool_, t.size()).data(), t.rows, t.columns, true};
  }

  struct Result {
    real::Tensor narrow, wide;
  };
  MemoryPool& pool_;
  std::list<Scratch<float>> scratch_;
  std::vector<Result> results_;
  std::vector<real::Tensor> inputs_;
};

class MixedKernels final : public real::Kernels {
 public:
  std::size_t width() const override { return real::kMixedWidth; }

  void* allocate(std::size_t bytes) override { return floats_->allocate(bytes); }
  void release(void* block, std::size_t bytes) override { floats_->release(block, bytes); }
  void copy(const void* from, void* to, std::size_t bytes) override { floats_->copy(from, to, bytes); }
  void zero(void* to, std::size_t bytes) override { floats_->zero(to, bytes); }
  void upload(std::span<const double> from, void* to) override { floats_->upload(from, to); }
  void download(const void* from, std::span<double> to) override { floats_->download(from, to); }
  void narrow(real::Tensor from, real::Tensor to) override { round_to(to.size(), numbers<float>(from), to.data); }
  bool finite(real::Tensor tensor) override { return floats_->finite(FloatTensors(pool_).read(tensor)); }

  void forward(const real::Call& narrow) override {
    FloatTensors tensors(pool_);
    const real::Call call = tensors.call(narrow, true);
    if (is_attention(call))
      mixed_attention_kernels().forward(call);
    else
      floats_->forward(call);
    tensors.round_results();
  }
  void input_gradient(const real::Call& narrow, real::Tensor d_output,
                      std::span<const real::Gradient> d_inputs) override {
    FloatTensors tensors(pool_);
    const real::Call call = tensors.call(narrow, false);
    std::vector<real::Gradient> wide;
    for (const real::Gradient& d : d_inputs) wide.push_back({tensors.write(d.tensor, d.add), d.add});
    if (is_attention(call))
      mixed_attention_kernels().input_gradient(call, tensors.read(d_output), wide, pool_);
    else
      floats_->input_gradient(call, tensors.read(d_output), wide);
    tensors.round_results();
  }
  void weight_gradient(const real::Call& narrow, real::Tensor d_output, void* d_weights) override {
    FloatTensors tensors(pool_);
    floats_->weight_gradient(tensors.call(narrow, false), tensors.read(d_output), d_weights);
  }
  void add(real::Tensor from, real::Tensor to) override {
    FloatTensors tensors(pool_);
    floats_->add(tensors.read(from), tensors.write(to, true));
    tensors.round_results();
  }
  void scale(double factor, real::Tensor t) override {
    FloatTensors tensors(pool_);
    floats_->scale(factor, tensors.write(t, true));
    tensors.round_results();
  }

  void maximum(real::Tensor from, real::Tensor to) override { floats_->maximum(from, to); }
  void attention_part(const real::Call& narrow, const real::KeyPart& part) override {
    FloatTensors tensors(pool_);
    const real::Call call = tensors.call(narrow, true);
    real::KeyPart wide = part;
    wide.keys = tensors.read(part.keys);
    cpu::attention_part<float, true>(call, wide, pool_);
  }
  void attention_part_gradient(const real::Call& narrow, const real::KeyPart& part, real::Tensor d_output,
                               real::Tensor d_input, real::Tensor d_keys) override {
    FloatTensors tensors(pool_);
    const real::Call call = tensors.call(narrow, false);
    real::KeyPart wide = part;
    wide.keys = tensors.read(part.keys);
    cpu::attention_part_gradient<float, true>(call, wide, tensors.read(d_output), d_input, tensors.write(d_keys, true),
                                              pool_);
    tensors.round_results();
  }
  void divided_loss(real::DividedLossStep step, const real::Call& narrow, const real::DividedLoss& rows) override {
    FloatTensors tensors(pool_);
    floats_->divided_loss(step, tensors.call(narrow, true), rows);
  }
  /// The weights of the call belong to the scores: records have a row of them.
  void divided_scores(real::ScoreStep step, const real::Call& narrow, const real::ScoreRecords& records) override {
    if (step == real::ScoreStep::Join) return floats_->divided_scores(step, narrow, records);
    FloatTensors tensors(pool_);
    real::Call call = tensors.call(narrow, true);
    if (narrow.weights)
      call.weights = tensors.read({const_cast<void*>(narrow.weights), narrow.operation->columns, records.width}).data;
    floats_->divided_scores(step, call, records);
    tensors.round_results();
  }

  void update(const OptimizerRule& rule, const real::UpdateOptions& options, std::int64_t count, const void* gradient,
              real::OptimizerState& state, const void* from, void* to) override {
    floats_->update(rule, options, count, gradient, state, from, to);
  }
  void predict(const OptimizerRule& rule, Direction direction, int horizon, std::int64_t count,
               const real::OptimizerState& state, const void* from, void* to) override {
    floats_->predict(rule, direction, horizon, count, state, from, to);
  }
  void reconstruct(const OptimizerRule& rule, Reconstruction reconstruction, int delay, std::int64_t count,
                   const real::OptimizerState& state, const void* from, void* to) override {
    floats_->reconstruct(rule, reconstruction, delay, count, state, from, to);
  }

 private:
  static bool is_attention(const real::Call& call) { return call.operation->kind == OperationKind::Attention; }

  std::unique_ptr<real::Kernels> floats_ = make_kernels(sizeof(float));
  MemoryPool pool_;
};

}  // namespace

std::unique_ptr<real::Kernels> make_mixed_kernels() { return std::make_unique<MixedKernels>(); }

bool has_mixed_kernel(const Operation& op) {
  switch (op.kind) {
    case OperationKind::Attention:
      return has_kernel(op) && op.inputs.size() < 2;
    case OperationKind::Router:  // Choices among experts were not tried in 16 bits.
    case OperationKind::Dispatch:
    case OperationKind::GroupedLinear:
    case OperationKind::Combine:
      return false;
    default:
      return has_kernel(op);
  }
}

}  // namespace stagecraft::cpu
