#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "sim/model/operation.hpp"
#include "sim/training/optimizer.hpp"
#include "sim/weights/rule.hpp"

namespace stagecraft::real {

/// Row-major numbers, in memory of the device, at a multiple of 64 bytes.
struct Tensor {
  void* data = nullptr;
  std::int64_t rows = 0, columns = 0;
  bool is_wide = false;  ///< In mixed precision: numbers of 32 bits, not of 16.

  std::int64_t size() const { return rows * columns; }
  explicit operator bool() const { return data != nullptr; }
};

/// What an operation keeps from forward to backward.
struct Keeps {
  bool inputs = false, output = false;
  std::int64_t numbers = 0;  ///< Size of `saved` for one sample.
};
Keeps keeps(const Operation&);

/// Mixed precision: numbers of 2 bytes (bfloat16) are activations, their gradients and the copy of the weights that
/// passes read. Numbers of `wide_width` bytes are the weights that an update changes, sums of their gradients, states,
/// losses, and words, classes and targets of the data. With other widths there is no difference.
constexpr std::size_t kMixedWidth = 2;
constexpr std::size_t wide_width(std::size_t width) { return width == kMixedWidth ? sizeof(float) : width; }

/// Whether `Call::saved` has wide numbers: norms and losses keep what they summed; probabilities are factors of the
/// next product, which reads numbers of 2 bytes.
bool saves_wide(const Operation&);

/// Whether every real backend has a kernel for this operation. A backend may have more.
bool has_kernel(const Operation&);

/// Where the weights of an operation lie inside the weights of its stage: every block starts at a multiple of 64 bytes,
/// counted in numbers of `width` bytes, or of 4 in mixed precision, so that both copies have one layout. Linear,
/// Router: W, bias. GroupedLinear: W of each expert, bias of each expert. LayerNorm: gamma, beta. HeadNorm: gamma of Q,
/// gamma of K. Embedding: words, positions. Prepend: the row, positions. Tensor: its one array.
struct Blocks {
  std::int64_t first = 0, second = 0, total = 0;
};
Blocks blocks(const Operation&, std::size_t width);
std::int64_t second_block(const Operation&, std::size_t width);  ///< Its offset, in numbers.

/// One operation on the samples of one micro-batch.
struct Call {
  const Operation* operation = nullptr;
  std::int64_t samples = 1;
  std::span<const Tensor> inputs;  ///< A loss has two: the outputs of the net, and the targets.
  const void* weights = nullptr;   ///< Weights of this operation, not wide.
  Tensor output;                   ///< A loss writes one number.
  Tensor saved;                    ///< Kernels::saved_numbers() of them for each sample, in one row a sample.
  double scale = 1;                ///< For a loss: 1 / samples that one update averages; 1 for SumSquare.
  int first_row = 0;               ///< Where devices divide the rows of a sample: the first row that is here.
  int first_word = 0, words = 0;   ///< Where devices divide the words of an embedding or the classes of a loss: the
                                   ///< first one that is here, and how many there are in all; 0: they are not divided.
  std::span<const std::int64_t> expert_rows;  ///< GroupedLinear: the first row of each expert, then the number of rows.
};

/// Cross entropy over divided classes, in three steps. Between them the devices join `largest` (the maximum), then
/// `sums` and `targets` (the sum). All three have a number for each row.
struct DividedLoss {
  Tensor largest;  ///< Largest score. All three are wide.
  Tensor sums;     ///< Sum of exp(score - largest).
  Tensor targets;  ///< Score of the target less the largest; 0 where another device has it.
};
enum class DividedLossStep : std::uint8_t { Largest, Sums, Gradient };

/// Cross entropy over words that the ranks of a pipeline divide. A rank knows of each row a record, numbers that lie
/// side by side: the largest score, the sum of exp(score - largest), and the score of the target, or 0 where another
/// rank has it. With `width` columns of W in addition the sums of exp(score - largest) W, and W of the target, so that
/// joint records give the gradient of the input of the scores (Yeung et al., arXiv 2411.05288, algorithm 2).
struct ScoreRecords {
  Tensor here, joint;      ///< This rank's records; those that all ranks have joined, in the order of the ranks.
  std::int64_t width = 0;  ///< 0: without the gradient.

  static constexpr std::int64_t kStatistics = 3;
  static constexpr std::int64_t columns(std::int64_t width) { return kStatistics + 2 * width; }
};
enum class ScoreStep : std::uint8_t {
  Record,        ///< Makes `here`, without the sums of W, and Call::saved, exp(score - largest); weights are W.
  Join,          ///< Adds `here` to `joint`, without a Call.
  Gradient,      ///< Makes the loss of all rows, and the gradient of the scores from Call::saved.
  InputGradient  ///< Makes the gradient of the input of the scores, as output.
};

/// Attention over one part of the keys and values after another (Milakov and Gimelshein, 2018; Liu et al., Ring
/// Attention, ICLR 2024). For each sample and head, `saved` has the largest score of each row, then the sum of
/// exp(score - largest), over the parts so far; the output is not divided by that sum before the last part. In mixed
/// precision these are wide while parts come; so is the gradient of the queries.
struct KeyPart {
  Tensor keys;                               ///< Keys and values of the rows of this part, of each sample.
  std::int64_t first_row = 0, all_rows = 0;  ///< Its first row, and the rows of a sample on all devices.
  bool is_first = false, is_last = false;
};

/// Gradient of an input, written or added to. A tensor without data: the gradient is not needed.
struct Gradient {
  Tensor tensor;
  bool add = false;
};

/// State of an optimizer for the weights of one stage, wide numbers. `first` is momentum, `second` the mean of squares;
/// `last` the last gradient, `bare` the momentum of bare gradients, `average` what a reconstruction needs; null where
/// not kept.
struct OptimizerState {
  void *first = nullptr, *second = nullptr, *last = nullptr, *bare = nullptr, *average = nullptr;
  int steps = 0;            ///< Steps done so far.
  void* counter = nullptr;  ///< Device memory in which the device counts steps itself; null: the host passes `steps`.
};

/// Constants of one update in addition to the rule: PipeMare's factor of the learning rate, and the delay of the stage.
struct UpdateOptions {
  double rate_scale = 1;
  int delay = 0;  ///< Most updates between a forward and its backward.
  bool spike_compensation = false;
  Reconstruction reconstruction = Reconstruction::UpdateAverage;  ///< Which average `average` is.
};

/// The arithmetic of one device, in one number type. Calls take effect in order. Gradients of weights are added to what
/// is there, in the order of the calls; nothing depends on addresses, so equal calls give equal bits. One thread
/// computes at a time; memory, copy, add, embeddings and ScoreStep::Join may be called by others meanwhile, for
/// messages.
class Kernels {
 public:
  virtual ~Kernels() = default;
  virtual std::size_t width() const = 0;  ///< Bytes of a number that is not wide.

  virtual void* allocate(std::size_t bytes) = 0;  ///< At a multiple of 64 bytes; BackendError when there is none.
  virtual void release(void*, std::size_t bytes) = 0;
  virtual void copy(const void* from, void* to, std::size_t bytes) = 0;
  /// Copies `columns` numbers of each of some rows, which begin `from_stride` and `to_stride` numbers apart.
  virtual void copy_rows(const void* from, std::int64_t from_stride, void* to, std::int64_t to_stride,
                         std::int64_t rows, std::int64_t columns);
  virtual void zero(void*, std::size_t bytes) = 0;
  virtual void upload(std::span<const double> from, void* to) = 0;    ///< Wide numbers.
  virtual void download(const void* from, std::span<double> to) = 0;  ///< Wide numbers.
  /// Rounds wide numbers to 2 bytes, to the nearest, ties to even. Only in mixed precision.
  virtual void narrow(Tensor from, Tensor to);
  virtual bool finite(Tensor) = 0;

  /// Size of `Call::saved` for one of some samples that are computed together. A backend may need less than keeps()
  /// says, and then sees by that size what it has.
  virtual std::int64_t saved_numbers(const Operation& op, std::int64_t /*samples*/) { return keeps(op).numbers; }
  virtual void forward(const Call&) = 0;
  /// `d_inputs` has one entry for each input of the operation, without the targets.
  virtual void input_gradient(const Call&, Tensor d_output, std::span<const Gradient> d_inputs) = 0;
  virtual void weight_gradient(const Call&, Tensor d_output, void* d_weights) = 0;  ///< `d_weights` is wide.
  /// Whether a GELU is computed together with the product before it, or its gradient with the one behind it. Then the
  /// next two are called where Node says so, and by default make two calls.
  virtual bool fuses_gelu() const { return false; }
  virtual void forward_with_gelu(const Call& product, const Call& gelu);
  /// The input gradient of a product that reads a GELU, then the one of the GELU; nothing else needs `between`, which
  /// may be left as it is.
  virtual void input_gradient_with_gelu(const Call& product, Tensor d_output, const Gradient& between, const Call& gelu,
                                        const Gradient& d_input);
  virtual void add(Tensor from, Tensor to) = 0;  ///< In mixed precision `to` may be wide where `from` is not.
  virtual void scale(double factor, Tensor) = 0;
  /// The experts of each row of scores, the one with the largest score first: as many a row as the operation has active
  /// experts. Waits for the scores. Only for backends that have kernels for experts.
  virtual void choose_experts(const Operation&, Tensor scores, std::span<std::int32_t> experts);
  /// to = max(from, to), number by number, of wide numbers. This and what follows is only for backends that run groups
  /// of devices.
  virtual void maximum(Tensor from, Tensor to);
  virtual void attention_part(const Call&, const KeyPart&);
  /// Adds to the gradients of Q, in the columns of the input that Q has, and of the keys and values of this part.
  virtual void attention_part_gradient(const Call&, const KeyPart&, Tensor d_output, Tensor d_input, Tensor d_keys);
  virtual void divided_loss(DividedLossStep, const Call&, const DividedLoss&);
  virtual void divided_scores(ScoreStep, const Call&, const ScoreRecords&);

  /// All arrays are wide. `to` may be `from`: then in place.
  virtual void update(const OptimizerRule&, const UpdateOptions&, std::int64_t count, const void* gradient,
                      OptimizerState&, const void* from, void* to) = 0;
  /// W - lr * horizon * direction.
  virtual void predict(const OptimizerRule&, Direction, int horizon, std::int64_t count, const OptimizerState&,
                       const void* from, void* to) = 0;
  virtual void reconstruct(const OptimizerRule&, Reconstruction, int delay, std::int64_t count, const OptimizerState&,
                           const void* from, void* to) = 0;
};

/// Bytes of one number of a tensor, and of all.
inline std::size_t width_of(const Kernels& kernels, const Tensor& tensor) {
  return tensor.is_wide ? wide_width(kernels.width()) : kernels.width();
}
inline std::size_t bytes_of(const Kernels& kernels, const Tensor& tensor) {
  return static_cast<std::size_t>(tensor.size()) * width_of(kernels, tensor);
}

/// A call that is made later; it owns its lists.
class KeptCall {
 public:
  explicit KeptCall(const Call& call)
      : call_(call),
        inputs_(call.inputs.begin(), call.inputs.end()),
        expert_rows_(call.expert_rows.begin(), call.expert_rows.end()) {}
  Call call() const {
    Call call = call_;
    call.inputs = inputs_;
    call.expert_rows = expert_rows_;
    return call;
  }

 private:
  Call call_;
  std::vector<Tensor> inputs_;
  std::vector<std::int64_t> expert_rows_;
};

}  // namespace stagecraft::real
