#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

// Operations on arrays of any number of dimensions, of which models from ONNX files consist.

namespace stagecraft {

using TensorShape = std::vector<std::int64_t>;

/// What a tensor operation computes, y from its operands a, b and c. Operands of arithmetic are broadcast.
enum class TensorFunction : std::uint8_t {
  Unknown,    ///< Nothing here computes it.
  View,       ///< y[i] = a[offset + sum over the dimensions d of i_d strides_d].
  Select,     ///< The entries `indices` of a along the dimension `axis`.
  Concat,     ///< All operands one after the other along the dimension `axis`.
  Product,    ///< Matrix products; leading dimensions are broadcast.
  Sum,        ///< Over the dimensions in which the output has one entry.
  Mean,       ///< Likewise.
  Softmax,    ///< For each row of `length` numbers.
  Normalize,  ///< (x - mean) / sqrt(variance + epsilon), of each row of `length` numbers.
  Scale,      ///< x / sqrt(mean of x^2 + epsilon), of each row of `length` numbers.
  Where,      ///< b where a is not 0, else c.
  // The first dimension of a counts samples, the second one channels, and `window` slides over the others.
  BatchNorm,    ///< b (a - mean) / sqrt(variance + epsilon) for each channel. Mean and variance are c and d, which have
                ///< no gradients; without c and d, these are over all samples of the micro-batch.
  Convolution,  ///< With the weights b: output channels x input channels of a group x sizes of the window.
  MaxPool,      ///< The largest number in each window. The gradient goes to the first of equal ones.
  AveragePool,  ///< The mean of each window.
  // Functions of two operands.
  Add,
  Subtract,
  Multiply,
  Divide,
  Power,    ///< The exponent has no gradient.
  Minimum,  ///< The gradient goes to the smaller one; of equal ones, to b.
  Maximum,  ///< Likewise, to the larger one.
  Equal,    ///< 1 or 0, as all comparisons and logic, which have no gradients.
  Less,
  LessOrEqual,
  And,
  Or,
  // Functions of one operand.
  Not,
  Negate,
  Reciprocal,
  SquareRoot,
  Exponential,
  Logarithm,
  Sine,
  Cosine,
  Relu,
  Tanh,
  Sigmoid,
  ErrorFunction,
  Gelu,      ///< x/2 (1 + erf(x / sqrt 2)).
  GeluTanh,  ///< See OperationKind::Gelu.
};

enum class OperandSource : std::uint8_t { Input, Weights, Constant };

struct TensorOperand {
  OperandSource source = OperandSource::Input;  ///< Inputs come in the order of Operation::inputs.
  TensorShape shape = {};
  std::vector<double> values = {};  ///< The numbers of a constant, or of weights at the start; empty: drawn.
};

/// A window that slides over all dimensions of an array but the first two. It has a number for each of them.
struct TensorWindow {
  TensorShape kernel = {}, strides = {}, dilations = {};
  TensorShape before = {}, after = {};  ///< Padding at both ends of a dimension.
};

/// Arrays are row-major and of one sample.
struct TensorOperation {
  TensorFunction function = TensorFunction::Unknown;
  std::string name;                        ///< Its operator in the file, such as "MatMul".
  TensorShape shape;                       ///< The shape of the output.
  std::vector<TensorOperand> operands;     ///< At most one has weights.
  std::string tie = {};                    ///< Operations with the same word share their weights; empty: nothing does.
  std::int64_t offset = 0;                 ///< View.
  TensorShape strides = {};                ///< View.
  std::size_t axis = 0;                    ///< Select, Concat.
  std::vector<std::int64_t> indices = {};  ///< Select.
  std::int64_t length = 1;                 ///< Softmax, Normalize, Scale.
  double epsilon = 0;                      ///< Normalize, Scale, BatchNorm.
  bool first_transposed = false, second_transposed = false;  ///< Product: of the last two dimensions; not both.
  TensorWindow window = {};                                  ///< Convolution, MaxPool, AveragePool.
  std::int64_t groups = 1;                                   ///< Convolution.
  bool counts_padding = false;                               ///< AveragePool: as zeros of each window.

  const TensorOperand* weights() const;  ///< The operand that has weights; null: none.
};

std::int64_t numbers_of(const TensorShape&);

/// Distances in memory between neighbors along each dimension of `to`, for an array of the shape `from` that is
/// broadcast to it: 0 where it has a single entry.
TensorShape broadcast_strides(const TensorShape& from, const TensorShape& to);

/// What its gradients read of the forward.
bool reads_operands(TensorFunction);
bool reads_output(TensorFunction);
/// Whether an operand may be weights: its own gradient reads neither it nor the output.
bool takes_weights(TensorFunction);

/// "MatMul 8x64 of 8x32 and 32x64": the same text for operations that take the same time.
std::string to_text(const TensorOperation&);

}  // namespace stagecraft
