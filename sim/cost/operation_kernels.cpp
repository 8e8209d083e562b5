// Chooses the kernels of an operation, with the sizes of the part that one device of a stage has.

#include "sim/cost/operation_kernels.hpp"

#include "sim/core/diagnostic.hpp"

namespace stagecraft {
namespace {

using enum OperationKind;

/// One operation with the sizes that one device has.
class OperationPart {
 public:
  OperationPart(const Operation& op, const Degrees& degrees, const Load& load, RunFormats formats,
                const SoftwareStack& software)
      : op_(op),
        degrees_(degrees),
        software_(software),
        formats_(formats),
        load_(load),
        tokens_(load.rows_of(op) / degrees.context) {}

  PassKernels kernels() const {
    switch (op_.kind) {
      case Input:
      case Slice:
      case Tensor:  // Its layer has given amounts.
        return {};
      case Linear:
        return linear();
      case LayerNorm:
      case RmsNorm:
      case HeadNorm:
        return norm_kernels(numbers(), software_);
      case Relu:
      case Tanh:
      case Gelu:
      case Silu:
        return activation_kernels(numbers(), numbers(), software_);
      case GatedSilu:
        return activation_kernels(2 * numbers(), numbers(), software_);
      case Attention:
        return attention();
      case Embedding:
        return embedding_kernels(tokens_ * op_.columns, software_);
      case Add:
        return sum_kernels((static_cast<double>(op_.inputs.size()) - 1) * numbers(), software_);
      case Prepend:
        return sum_kernels(numbers(), software_);
      case Concat:
      case FirstRow:
        return copy_kernels(numbers());
      case Rotary:
        return rotary_kernels(rows() * op_.heads * op_.rotary / heads_divisor(), software_);
      case Router:
        return router_kernels(rows(), op_.inner, op_.columns, formats_.wide, software_);
      case Dispatch:
        return permutation_kernels(rows() * op_.columns);
      case Combine:  // Its rows are tokens; it reads the rows of all their experts.
        return permutation_kernels(tokens_ / degrees_.tensor * op_.active * op_.columns);
      case GroupedLinear:
        return grouped();
      case CrossEntropy:
        return loss_kernels(numbers(), software_);
      case MeanSquare:
      case SumSquare:
        return activation_kernels(numbers(), 0, software_);
    }
    return {};
  }

 private:
  bool is(Division division) const { return op_.division == division; }

  /// Rows of the operation on one device: its part of the sequence where the group replicates the operation, and the
  /// rows that were sent to its experts.
  double rows() const {
    if (is(Division::Experts)) return tokens_ / degrees_.tensor * degrees_.expert_tensor * op_.imbalance;
    return is(Division::Replicated) && degrees_.sequence ? tokens_ / degrees_.tensor : tokens_;
  }

  /// Devices that divide the columns of the output.
  double columns_divisor() const {
    if (is(Division::Experts)) return is_activation() ? degrees_.expert_tensor : 1;
    return is(Division::Column) || is(Division::Heads) || is(Division::Vocabulary) ? degrees_.tensor : 1;
  }

  bool is_activation() const {
    return op_.kind == Relu || op_.kind == Tanh || op_.kind == Gelu || op_.kind == Silu || op_.kind == GatedSilu;
  }
  double heads_divisor() const { return is(Division::Heads) ? degrees_.tensor : 1; }
  double numbers() const { return rows() * op_.columns / columns_divisor(); }

  /// Scores of words stay in 16 bits.
  PassKernels linear() const {
    const NumberFormat format = is(Division::Vocabulary) ? formats_.wide : formats_.products;
    const double in = is(Division::Row) ? double(op_.inner) / degrees_.tensor : op_.inner;
    const double out = op_.columns / columns_divisor();
    return linear_kernels(rows(), in, out, format, software_);
  }

  PassKernels attention() const {
    if (!op_.fused && op_.per_token && !load_.has_whole_samples())
      throw InputError(
          "attention that is not fused multiplies whole samples, so its time for packed sequences is not known",
          "a model with flash_attention: true");
    const HeadShape heads = head_shape(op_);
    const double rows = op_.rows, context = degrees_.context;
    // The last rank of a plain division of the sequence has most of the pairs that no mask hides.
    const double skew = op_.causal && !software_.balanced_context ? 2 * context / (context + 1) : 1;
    AttentionShape shape{.heads = load_.samples * heads.heads / heads_divisor(),
                         .queries = rows / context,
                         .keys = rows,
                         .width = (heads.query + heads.value) / 2.0,
                         .visible = attention_pairs(op_, rows) / (rows * rows) * pairs_factor(op_, load_)};
    if (op_.fused) shape.heads *= skew;
    SoftwareStack software = software_;
    software.fused_attention = op_.fused;
    return attention_kernels(shape, formats_.products, formats_.wide, software);
  }

  /// The bias of each expert is added to its rows alone, in a loop on the host (TEGroupedMLP._apply_bias of
  /// Megatron-Core). Launches of each expert: forward 2, a product and a sum; backward 6, two products, two sums and
  /// two casts for the gradients of bias and weight; 2 and 3 more join them. No module is around each of them as around
  /// others.
  PassKernels weighted_bias(double experts) const {
    constexpr double kOfLaunch = 0.5;  // Chosen with two runs of GPT-OSS on H100 in sight.
    PassKernels kernels = weighted_bias_kernels(rows() * op_.columns);
    kernels.forward.front().count = kOfLaunch * (2 * experts + 2);
    kernels.input_gradient.front().count = kOfLaunch * (6 * experts + 3);
    return kernels;
  }

  PassKernels grouped() const {
    const double experts = double(op_.experts) / degrees_.expert;
    const double in = op_.inner / (op_.within_expert == Division::Row ? double(degrees_.expert_tensor) : 1);
    const double out = op_.columns / (op_.within_expert == Division::Column ? double(degrees_.expert_tensor) : 1);
    PassKernels kernels = grouped_kernels(experts, rows() / experts, in, out, formats_.products);
    const bool is_last = op_.within_expert == Division::Row;
    if (op_.bias && is_last && software_.weights_in_experts) kernels.add(weighted_bias(experts));
    return kernels;
  }

  const Operation& op_;
  const Degrees& degrees_;
  const SoftwareStack& software_;
  RunFormats formats_;
  Load load_;
  double tokens_;
};

}  // namespace

PassKernels kernels_of(const Operation& op, const Degrees& degrees, const Load& load, RunFormats formats,
                       const SoftwareStack& software) {
  return OperationPart(op, degrees, load, formats, software).kernels();
}

PassKernels kernels_of(const std::vector<Operation>& operations, const Degrees& degrees, const Load& load,
                       RunFormats formats, const SoftwareStack& software) {
  PassKernels kernels;
  for (const Operation& op : operations) kernels.add(kernels_of(op, degrees, load, formats, software));
  return kernels;
}

}  // namespace stagecraft
