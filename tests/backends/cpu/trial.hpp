#pragma once

#include <bit>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "backends/cpu/kernels.hpp"
#include "sim/core/random.hpp"

namespace stagecraft::test {

constexpr std::size_t kWidths[] = {4, 8};  ///< Bytes of the kernels' numbers.

/// An operation with the shape of what it reads; a loss reads its targets last.
struct Trial {
  std::string name;
  Operation op;
  std::int64_t samples = 1;
  std::vector<int> columns;                    ///< Columns of each input.
  double scale = 1;                            ///< real::Call::scale, for a loss.
  std::vector<std::int64_t> expert_rows = {};  ///< real::Call::expert_rows.
  int rows_of_input = 0;                       ///< For one sample; 0: as many as the output has.

  std::int64_t rows() const { return samples * op.rows; }
  std::int64_t input_rows() const { return samples * (rows_of_input > 0 ? rows_of_input : op.rows); }
  std::size_t gradients() const { return op.is_loss() ? 1 : columns.size(); }
};

/// Data on the host; the weights lie as real::Blocks says for numbers of `width` bytes.
struct TrialData {
  std::size_t width = 8;
  std::vector<std::vector<double>> inputs;
  std::vector<double> weights, d_output;
};

struct TrialResult {
  std::vector<double> output;
  std::vector<std::vector<double>> d_inputs;
  std::vector<double> d_weights;

  friend bool operator==(const TrialResult&, const TrialResult&) = default;
};

inline std::vector<double> drawn(Rng& rng, std::int64_t count, bool whole) {
  std::vector<double> numbers(static_cast<std::size_t>(count));
  // Exact in single precision, below 2, and never at the kink of ReLU.
  for (double& x : numbers) x = (2 * rng.integer(-1024, 1023) + 1) / 1024.0;
  if (whole)
    for (double& x : numbers) x = rng.integer(0, 1) ? rng.integer(1, 3) : -rng.integer(1, 3);
  return numbers;
}

inline TrialData data_for(const Trial& t, std::size_t width, bool whole = false) {
  Rng rng(7, t.name);
  TrialData data;
  data.width = width;
  for (const int columns : t.columns) data.inputs.push_back(drawn(rng, t.input_rows() * columns, whole));
  const auto name_numbers = [&](std::vector<double>& numbers, int count) {
    for (double& x : numbers) x = rng.integer(0, count - 1);
  };
  if (t.op.kind == OperationKind::Embedding) name_numbers(data.inputs[0], t.op.inner);
  if (t.op.kind == OperationKind::CrossEntropy) name_numbers(data.inputs[1], t.op.columns);
  data.weights = drawn(rng, real::blocks(t.op, width).total, whole);
  data.d_output = drawn(rng, t.rows() * t.op.columns, whole);
  return data;
}

/// A tensor on the device, `shift` times 64 bytes into its block, or `shift` numbers into it.
class DeviceTensor {
 public:
  DeviceTensor(real::Kernels& kernels, const std::vector<double>& numbers, std::int64_t columns, std::size_t shift = 0,
               bool is_wide = false, bool by_numbers = false)
      : kernels_(&kernels),
        bytes_(numbers.size() * (is_wide ? real::wide_width(kernels.width()) : kernels.width()) + 64 * (shift + 1)),
        block_(kernels.allocate(bytes_)) {
    const auto size = static_cast<std::int64_t>(numbers.size());
    const std::size_t width = is_wide ? real::wide_width(kernels.width()) : kernels.width();
    tensor = {static_cast<char*>(block_) + (by_numbers ? width : 64) * shift, columns > 0 ? size / columns : 0, columns,
              is_wide};
    if (!is_narrow()) {
      kernels.upload(numbers, tensor.data);
      return;
    }
    const DeviceTensor wide(kernels, numbers, columns, 0, true);
    kernels.narrow(wide.tensor, tensor);
  }
  DeviceTensor(DeviceTensor&& other) noexcept
      : tensor(other.tensor),
        kernels_(other.kernels_),
        bytes_(other.bytes_),
        block_(std::exchange(other.block_, nullptr)) {}
  DeviceTensor(const DeviceTensor&) = delete;
  DeviceTensor& operator=(const DeviceTensor&) = delete;
  DeviceTensor& operator=(DeviceTensor&&) = delete;
  ~DeviceTensor() {
    if (block_) kernels_->release(block_, bytes_);
  }

  std::vector<double> download() const {
    std::vector<double> numbers(static_cast<std::size_t>(tensor.size()));
    if (!is_narrow()) {
      kernels_->download(tensor.data, numbers);
      return numbers;
    }
    std::vector<double> pairs((numbers.size() + 1) / 2);  // Floats of two numbers of 16 bits each.
    kernels_->download(tensor.data, pairs);
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      const auto pair = std::bit_cast<std::uint32_t>(static_cast<float>(pairs[i / 2]));
      numbers[i] = std::bit_cast<float>(i % 2 == 0 ? pair << 16U : pair & 0xffff0000U);
    }
    return numbers;
  }

  real::Tensor tensor;

 private:
  bool is_narrow() const { return kernels_->width() == real::kMixedWidth && !tensor.is_wide; }

  real::Kernels* kernels_;
  std::size_t bytes_;
  void* block_;
};

/// A trial in memory of the device: forward at once, then as many backwards as one likes. What real::Keeps does not
/// promise is wiped out after the forward.
class ComputedTrial {
 public:
  ComputedTrial(real::Kernels& kernels, const Trial& t, const TrialData& data, std::size_t shift = 0,
                bool by_numbers = false)
      : kernels_(&kernels),
        trial_(t),
        shift_(shift),
        by_numbers_(by_numbers),
        weights_(kernels, data.weights, 1, shift),
        output_(kernels, std::vector<double>(t.op.is_loss() ? 1 : data.d_output.size(), kJunk),
                t.op.is_loss() ? 1 : t.op.columns, shift, t.op.is_loss(), by_numbers),
        saved_(kernels,
               std::vector<double>(static_cast<std::size_t>(t.samples * kernels.saved_numbers(t.op, t.samples)), kJunk),
               kernels.saved_numbers(t.op, t.samples), shift, real::saves_wide(t.op), by_numbers),
        d_output_(kernels, data.d_output, t.op.columns, shift, false, by_numbers) {
    for (std::size_t i = 0; i < t.columns.size(); ++i) {
      const bool is_data = t.op.kind == OperationKind::Embedding || (t.op.is_loss() && i == 1);
      inputs_.emplace_back(kernels, data.inputs[i], t.columns[i], shift, is_data, by_numbers);
      tensors_.push_back(inputs_.back().tensor);
    }
    call_ = {&trial_.op, t.samples, tensors_, weights_.tensor.data, output_.tensor, saved_.tensor, t.scale,
             0,          0,         0,        trial_.expert_rows};
    kernels.forward(call_);
    output = output_.download();
    const real::Keeps keeps = real::keeps(t.op);
    if (!keeps.inputs)
      for (real::Tensor& tensor : tensors_) tensor.data = nullptr;
    if (!keeps.output) call_.output.data = nullptr;
  }

  /// The gradients of the inputs, on top of `start` when `add`; those not `wanted` stay as they are.
  std::vector<std::vector<double>> input_gradient(bool add = false, double start = kJunk,
                                                  std::vector<bool> wanted = {}) {
    wanted.resize(trial_.gradients(), wanted.empty());
    std::vector<DeviceTensor> places;
    std::vector<real::Gradient> gradients;
    for (std::size_t i = 0; i < trial_.gradients(); ++i) {
      const std::vector<double> numbers(static_cast<std::size_t>(trial_.input_rows() * trial_.columns[i]), start);
      places.emplace_back(*kernels_, numbers, trial_.columns[i], shift_, false, by_numbers_);
      gradients.push_back({wanted[i] ? places[i].tensor : real::Tensor{}, add});
    }
    kernels_->input_gradient(call_, trial_.op.is_loss() ? real::Tensor{} : d_output_.tensor, gradients);
    std::vector<std::vector<double>> results;
    for (const DeviceTensor& place : places) results.push_back(place.download());
    return results;
  }

  /// `start` plus `times` times the gradient, which reads no weights.
  std::vector<double> weight_gradient(double start = 0, int times = 1) {
    real::Call call = call_;
    call.weights = nullptr;
    const DeviceTensor sum(*kernels_, std::vector<double>(static_cast<std::size_t>(weights_.tensor.size()), start), 1,
                           shift_, true);
    for (int i = 0; i < times; ++i) kernels_->weight_gradient(call, d_output_.tensor, sum.tensor.data);
    return sum.download();
  }

  std::vector<double> saved() const { return saved_.download(); }

  std::vector<double> output;

 private:
  static constexpr double kJunk = 12345;  // Fills memory that must not be read.

  real::Kernels* kernels_;
  Trial trial_;
  std::size_t shift_;
  bool by_numbers_;
  DeviceTensor weights_, output_, saved_, d_output_;
  std::vector<DeviceTensor> inputs_;
  std::vector<real::Tensor> tensors_;
  real::Call call_;
};

inline TrialResult compute(real::Kernels& kernels, const Trial& t, const TrialData& data, std::size_t shift = 0) {
  ComputedTrial device(kernels, t, data, shift);
  return {device.output, device.input_gradient(), device.weight_gradient()};
}

/// The operations of networks without a decoder of words, in shapes with and without a remainder for every vector
/// length.
inline std::vector<Trial> all_trials() {
  using enum OperationKind;
  const auto op = [](OperationKind kind, int rows, int columns) {
    Operation o;
    o.kind = kind;
    o.rows = rows;
    o.columns = columns;
    return o;
  };
  const auto linear = [&](int rows, int columns, int inner, bool bias) {
    Operation o = op(Linear, rows, columns);
    o.inner = inner;
    o.bias = bias;
    return o;
  };
  const auto attention = [&](int rows, int columns, int heads, bool causal) {
    Operation o = op(Attention, rows, columns);
    o.heads = heads;
    o.causal = causal;
    return o;
  };
  Operation embedding = op(Embedding, 4, 6);
  embedding.inner = 9;
  return {
      {"linear", linear(3, 4, 5, true), 2, {5}},
      {"linear without bias", linear(4, 37, 40, false), 3, {40}},
      {"linear of one row", linear(1, 19, 33, true), 1, {33}},
      {"linear to one number", linear(3, 1, 17, true), 5, {17}},
      {"linear 1x1", linear(1, 1, 21, true), 1, {21}},
      {"layer_norm", op(LayerNorm, 3, 10), 2, {10}},
      {"layer_norm, wider", op(LayerNorm, 2, 77), 3, {77}},
      {"relu", op(Relu, 3, 37), 2, {37}},
      {"tanh", op(Tanh, 3, 37), 2, {37}},
      {"gelu", op(Gelu, 3, 37), 2, {37}},
      {"attention", attention(5, 8, 2, false), 2, {24}},
      {"attention, causal", attention(5, 8, 2, true), 2, {24}},
      {"attention, longer", attention(19, 12, 3, true), 1, {36}},
      {"attention of one row", attention(1, 6, 6, true), 2, {18}},
      {"embedding", embedding, 3, {1}},
      {"add", op(Add, 3, 7), 2, {7, 7}},
      {"add of three", op(Add, 2, 33), 1, {33, 33, 33}},
      {"add of one", op(Add, 2, 33), 1, {33}},
      {"concat", op(Concat, 3, 22), 2, {5, 1, 16}},
      {"cross_entropy", op(CrossEntropy, 4, 11), 3, {11, 1}, 0.125},
      {"cross_entropy, wider", op(CrossEntropy, 1, 70), 2, {70, 1}, 0.5},
      {"mean_square", op(MeanSquare, 3, 13), 2, {13, 13}, 0.25},
      {"sum_square", op(SumSquare, 3, 13), 2, {13, 13}},
  };
}

/// Attention with heads of queries that share keys and values, with a window, or with wider heads of queries.
inline Operation decoder_attention(int rows, int heads, int shared, int query, int value, int window) {
  Operation o{.kind = OperationKind::Attention, .rows = rows, .columns = heads * value, .heads = heads};
  o.causal = true, o.key_value_heads = shared, o.head_width = query, o.window = window;
  return o;
}

/// The operations of Llama: attention with shared heads of keys, RMS norm, rotation, SwiGLU, and an embedding without
/// positions.
inline std::vector<Trial> llama_trials() {
  using enum OperationKind;
  const auto rotary = [](int columns, int heads, int width, int turned) {
    Operation o{.kind = Rotary, .rows = 5, .columns = columns, .heads = heads};
    o.head_width = width, o.rotary = turned;
    return o;
  };
  Operation words{.kind = Embedding, .rows = 4, .columns = 6, .inner = 9};
  words.positions = false;
  const Operation gated{.kind = GatedSilu, .rows = 3, .columns = 37, .inner = 74};
  return {
      {"rms_norm", {.kind = RmsNorm, .rows = 3, .columns = 10}, 2, {10}},
      {"rms_norm, wider", {.kind = RmsNorm, .rows = 2, .columns = 77}, 3, {77}},
      {"silu", {.kind = Silu, .rows = 3, .columns = 37}, 2, {37}},
      {"gated_silu", gated, 2, {74}},
      {"rotary", rotary(24, 6, 4, 4), 2, {24}},
      {"rotary of a part of some heads", rotary(31, 3, 8, 4), 2, {31}},
      {"embedding without positions", words, 3, {1}},
      {"attention, shared keys", decoder_attention(7, 4, 2, 3, 3, 0), 2, {24}},
      {"attention, one head of keys", decoder_attention(5, 3, 1, 4, 4, 0), 2, {20}},
  };
}

/// Attention for which the CPU alone has kernels.
inline std::vector<Trial> window_trials() {
  return {
      {"attention, window", decoder_attention(9, 2, 2, 4, 4, 3), 2, {24}},
      {"attention, shared keys, window, wider queries", decoder_attention(9, 4, 2, 5, 3, 4), 2, {36}},
  };
}

/// Norms of heads, attention with keys from short vectors, and experts. Copies of rows are as many as the numbers of
/// all rows of the input, so a Dispatch reads narrower rows and a Combine wider ones.
inline std::vector<Trial> expert_trials() {
  using enum OperationKind;
  const auto norm = [](int columns, int heads, int shared, int width) {
    Operation o{.kind = HeadNorm, .rows = 3, .columns = columns, .heads = heads};
    o.key_value_heads = shared, o.head_width = width;
    return o;
  };
  const auto latent = [](int rows, int heads, int query, int value) {
    Operation o{.kind = Attention, .inputs = {0, 1, 2}, .rows = rows, .columns = heads * value, .heads = heads};
    o.causal = true, o.head_width = query;
    return o;
  };
  const auto experts = [](OperationKind kind, int rows, int columns, int inner, int count, int active) {
    Operation o{.kind = kind, .inputs = {0, 1}, .rows = rows, .columns = columns, .inner = inner};
    o.experts = count, o.active = active;
    return o;
  };
  Operation router = experts(Router, 3, 5, 7, 5, 2), bare = experts(GroupedLinear, 3, 33, 19, 3, 1);
  bare.bias = false;
  return {
      {"head_norm", norm(2 * 5 + 5 + 4, 2, 1, 5), 2, {19}},
      {"head_norm, one row of each head", norm(3 * 3 * 8, 3, 3, 8), 1, {72}},
      {"slice", {.kind = Slice, .rows = 3, .columns = 5, .inner = 4}, 2, {11}},
      {"latent attention", latent(5, 3, 6, 4), 2, {18, 3 * (4 + 4), 2}},
      {"latent attention, longer", latent(19, 2, 5, 7), 1, {10, 2 * (2 + 7), 3}},
      {"router", router, 2, {7}},
      {"dispatch", experts(Dispatch, 6, 8, 0, 5, 2), 2, {4, 5}},
      {"dispatch to one expert", experts(Dispatch, 3, 7, 0, 4, 1), 1, {7, 4}},
      {"grouped_linear", experts(GroupedLinear, 6, 4, 5, 4, 2), 2, {5}, 1, {0, 5, 5, 11, 12}},
      {"grouped_linear without bias", bare, 1, {19}, 1, {0, 0, 2, 3}},
      {"combine", experts(Combine, 3, 9, 0, 5, 2), 2, {18, 5}},
      {"combine of three", experts(Combine, 2, 33, 0, 6, 3), 1, {99, 6}},
      {"combine of one expert", experts(Combine, 4, 5, 0, 3, 1), 2, {5, 3}},
  };
}

/// Operations of ViT, whose output has other rows than their input.
inline std::vector<Trial> image_trials() {
  using enum OperationKind;
  return {
      {"prepend", {.kind = Prepend, .rows = 4, .columns = 7}, 3, {7}, 1, {}, 3},
      {"prepend to one row", {.kind = Prepend, .rows = 2, .columns = 33}, 1, {33}, 1, {}, 1},
      {"first_row", {.kind = FirstRow, .columns = 19, .inner = 5}, 3, {19}, 1, {}, 5},
      {"first_row of one", {.kind = FirstRow, .columns = 6, .inner = 1}, 2, {6}, 1, {}, 1},
  };
}

/// Every operation for which all real backends have a kernel.
inline std::vector<Trial> real_trials() {
  std::vector<Trial> trials = all_trials();
  for (Trial& t : llama_trials()) trials.push_back(std::move(t));
  return trials;
}

/// Every operation for which the CPU has a kernel.
inline std::vector<Trial> cpu_trials() {
  std::vector<Trial> trials = real_trials();
  for (Trial& t : window_trials()) trials.push_back(std::move(t));
  for (Trial& t : expert_trials()) trials.push_back(std::move(t));
  for (Trial& t : image_trials()) trials.push_back(std::move(t));
  return trials;
}

}  // namespace stagecraft::test
