#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "sim/core/enum_array.hpp"
#include "sim/core/parallel.hpp"
#include "sim/core/quantity.hpp"
#include "sim/model/tensor_operation.hpp"

namespace stagecraft {

enum class OperationKind : std::uint8_t {
  Input,      ///< Data of the task.
  Linear,     ///< y = x W^T + b; W is columns x inner.
  LayerNorm,  ///< (x - mean) / sqrt(variance + 1e-5) * gamma + beta, of each row.
  Relu,
  Tanh,
  Gelu,       ///< x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))): Hendrycks and Gimpel, 2016.
  Attention,  ///< Attention with `heads` heads. Its input holds Q, K and V side by side; a latent attention has three
              ///< inputs: Q, then K and V of each head, then the rotated numbers of K, which all heads share.
  Embedding,  ///< Row of the word (one of `inner`), plus row of the position (one of `rows`) if it has `positions`.
  Add,        ///< Sum of all inputs.
  Concat,     ///< Inputs side by side.
  RmsNorm,    ///< x / sqrt(mean of x^2 + 1e-5) * gamma, of each row: Zhang and Sennrich, NeurIPS 2019.
  HeadNorm,   ///< RMS norm of each head of Q with one gamma and of each head of K with another; V is copied.
  Silu,       ///< x / (1 + exp(-x)).
  GatedSilu,  ///< SwiGLU: silu(left half of the input) * right half; `inner` = 2 columns. Shazeer, 2020.
  Rotary,     ///< Turns the last `rotary` numbers of the first `heads` heads by the position: Su et al., 2021.
  Slice,      ///< Columns of its input from column `inner` on. It is a view: no work, no memory.
  Router,     ///< Scores of `experts` experts from `inner` numbers. A row goes to the `active` ones with the largest
              ///< scores; of equal scores, the first experts.
  Dispatch,   ///< Copies each row to its `active` experts; input 1 is the router. It has `active` times the rows.
  GroupedLinear,  ///< A linear operation for each of `experts` experts, on the rows of that expert.
  Combine,        ///< The sum of the rows of the experts of each token, weighted by the softmax of their scores alone.
                  ///< Input 1 is the router: Jiang et al., Mixtral of Experts, 2024.
  Prepend,        ///< A learned row in front of the rows of a sample, and a learned position added to each: the class
                  ///< token of ViT. It has one row more than its input.
  FirstRow,       ///< The first row of each sample, of `inner` rows.
  Tensor,         ///< What `tensor` says, on arrays of any number of dimensions.
  CrossEntropy,   ///< Cross entropy of softmax; each row has a class as target. Mean over the rows of a sample.
  MeanSquare,     ///< Mean over the numbers of a sample.
  SumSquare,      ///< Sum over the numbers of a sample: whole numbers stay whole.
};

/// How the devices of a tensor or expert group divide an operation (Megatron-LM's rules). Without a tensor and an
/// expert group, every operation is whole.
enum class Division : std::uint8_t {
  Replicated,  ///< Each device has all parameters; with sequence parallelism it works on its part of the rows.
  Column,      ///< Linear, and activations after it: each device has some columns of the output.
  Row,         ///< Linear: each device has some columns of the input, so its outputs are partial sums.
  Heads,       ///< Attention and what acts on heads: each device has some heads.
  Vocabulary,  ///< Embedding, scores and loss: each device has some words.
  Experts,     ///< Each device has some experts, and `within_expert` divides these over the expert-tensor group.
};

/// How many devices hold a parameter: its memory divisor and the group that sums its gradient follow from it.
enum class ParameterClass : std::uint8_t {
  Divided,     ///< Divided over the tensor group; gradients are summed over data and context.
  Replicated,  ///< Whole on each device of the tensor group.
  Expert,      ///< Divided over expert x expert_tensor devices; gradients are summed over the expert replicas.
};

/// One computation over an operation: forward, the gradient of its inputs, or the gradient of its parameters.
enum class Pass : std::uint8_t { Forward, InputGradient, WeightGradient };

/// One primitive computation inside a layer. For one sample it makes `rows` rows of `columns` numbers; a loss makes one
/// number. Parameters, floating-point operations, bytes kept for backward and kernels are derived from it; real
/// backends have a kernel for most kinds.
struct Operation {
  OperationKind kind = OperationKind::Input;
  std::vector<int> inputs = {};  ///< Not negative: an earlier operation of the layer; -1 - i: input i of the layer.
  int rows = 1, columns = 1;     ///< Shape of the output; a loss has the shape of its input here.
  int inner = 0;                 ///< Linear, GatedSilu: columns of the input. Embedding: number of known words.
                                 ///< FirstRow: rows of the input.
  int heads = 1;                 ///< Attention, HeadNorm: heads of Q. Rotary: heads that it turns.
  bool causal = false;           ///< Attention: no row looks at a later one.
  bool bias = true;              ///< Linear, Router, GroupedLinear: a bias for each column.

  int key_value_heads = 0;  ///< Attention, HeadNorm: heads of K and V, which heads of Q share; 0: `heads`.
  int head_width = 0;       ///< Numbers of a head of Q and K; 0: columns / heads, the width of a head of V.
  int rotary = 0;           ///< Rotary: numbers of each head that it turns.
  int window = 0;           ///< Attention: each row looks at this many rows, itself included; 0: at all rows.
  bool fused =
      false;  ///< Attention: one kernel that keeps no probabilities and skips pairs that are masked (Dao, 2023).
  bool sinks = false;     ///< Attention: a learned score for each head in the softmax, which belongs to no row.
  bool positions = true;  ///< Embedding: learned positions.

  int experts = 0, active = 0;  ///< Router, Dispatch, GroupedLinear, Combine: all experts, and experts of one row.
  int nodes = 0;                ///< Dispatch: the experts of a row are on at most this many nodes; 0: on any.
  int groups = 0;               ///< Dispatch: groups of experts, of which a row has `nodes`; 0: each on one node.
  double imbalance = 1;         ///< Dispatch, GroupedLinear: rows of the busiest device over the mean.

  Division division = Division::Replicated;
  Division within_expert = Division::Replicated;  ///< Division::Experts: Column or Row over the expert-tensor group.
  bool per_token = true;  ///< Its rows grow with the tokens of a sample. False for a pooled head, or for patches.

  std::shared_ptr<const TensorOperation> tensor = {};  ///< Tensor: what it computes.

  double parameters() const;
  bool is_loss() const { return kind >= OperationKind::CrossEntropy; }
  friend bool operator==(const Operation&, const Operation&) = default;
};

/// Heads and widths of an Attention or a HeadNorm, with the defaults filled in.
struct HeadShape {
  int heads = 1, key_value_heads = 1;
  int query = 0, value = 0;  ///< Numbers of a head of Q and K, and of a head of V.
};
HeadShape head_shape(const Operation&);

/// Columns of Q, K and V side by side, which is what an Attention with a single input reads.
int query_key_value_columns(const HeadShape&);

/// Pairs of a query and a key that an Attention computes for one head and a sequence of `rows` rows. A kernel that is
/// not fused computes all rows^2 of them and masks some. A fused kernel skips masked pairs: causal attention has rows^2
/// / 2 (as in Dao, 2023, and Megatron-LM's count of operations), and with a window w < rows it has w rows - w^2 / 2;
/// without a causal mask, a window has at most w rows.
double attention_pairs(const Operation&, double rows);

/// Numbers of parameters by class. The position table of an embedding, the bias of a row-divided linear and the scales
/// of a HeadNorm are replicated although their operation is divided.
using ParametersByClass = EnumArray<ParameterClass, double, 3>;
ParametersByClass parameters_by_class(const Operation&);

/// Numbers of parameters on each device of a stage that is divided so.
double parameters_on_device(const Operation&, const Degrees&);

/// Parameters that work on one token: of a GroupedLinear only `active` experts count.
double active_parameters(const Operation&);

/// Floating-point operations for one sample; a multiplication with an addition counts as two.
///   linear           2 rows inner columns in each of the three passes; grouped linears and routers likewise
///   attention        2 pairs heads (query + value width) forward, twice that for the input gradient; a fused kernel
///                    computes Q K^T in its backward once more (2.5 times in all where the widths are equal; Dao, 2023)
///   norms            5 (RMS: 4) for each number in each pass
///   losses           5 (squares: 3) for each number forward, 1 backward
/// Activations, rotations, sums, permutations and look-ups count as 0: memory bounds them.
Flops flops(const Operation&, Pass);

/// Bytes of its output for one sample, with this many bytes for a number. A loss has one number.
Bytes output_bytes(const Operation&, double number_bytes);

/// How the devices of a tensor or expert group divide an array that lies between two operations.
enum class ArrayDivision : std::uint8_t {
  Sequence,  ///< Rows, with sequence parallelism; else each device has all of it.
  Tensor,    ///< Columns, heads or words over the tensor group.
  Expert,    ///< The rows that were sent to experts: over the tensor group, columns over the expert-tensor group.
};

/// An array that a layer keeps from its forward to its backward.
struct KeptArray {
  double numbers = 0;  ///< For one sample.
  ArrayDivision division = ArrayDivision::Sequence;
  int operation = -1;           ///< The operation that keeps it; the first one, if several read the same array.
  int producer = -1;            ///< The operation that makes it; negative: an input of the layer.
  bool probabilities = false;   ///< The inside of an attention, which selective recomputation drops.
  bool of_one_product = false;  ///< One product alone reads it, and none of the vocabulary, which stays in 16 bits.
};

/// The arrays that a list of operations keeps; an array that several operations read is listed once. Linear operations,
/// norms, activations, attention and losses keep their inputs, a fused attention also its output, another one its
/// probabilities (heads rows^2), a Combine what it sums. Rotations, sums, permutations and views keep nothing.
/// Statistics of norms and of the softmax, and indices, are left out: they are below one number a row and head. With
/// sums in place this makes 12 + 4 g/a + 6 f/h bytes for each number of the width in 16 bits for a layer of Llama, and
/// 34 + 5 a s/h with dropout masks for one of GPT (Korthikanti et al., MLSys 2023).
std::vector<KeptArray> kept_arrays(const std::vector<Operation>&);

/// Bytes that a list of operations keeps for one sample, with this many bytes for a number.
Bytes stash_bytes(const std::vector<Operation>&, double number_bytes);

std::string_view to_text(OperationKind);
std::string_view to_text(Division);
std::string_view to_text(ParameterClass);
/// "linear 64x512 from 2048": the same text for operations that take the same time.
std::string to_text(const Operation&);

}  // namespace stagecraft
