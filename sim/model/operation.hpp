#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace stagecraft {

enum class OperationKind : std::uint8_t {
  Input,      ///< Data of the task.
  Linear,     ///< y = x W^T + b; W is columns x inner.
  LayerNorm,  ///< (x - mean) / sqrt(variance + 1e-5) * gamma + beta, of each row.
  Relu,
  Tanh,
  Gelu,          ///< x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))): Hendrycks and Gimpel, 2016.
  Attention,     ///< Attention with `heads` heads; its input holds Q, K and V side by side.
  Embedding,     ///< Row of the word (one of `inner`) plus row of the position (one of `rows`).
  Add,           ///< Sum of all inputs.
  Concat,        ///< Inputs side by side.
  CrossEntropy,  ///< Cross entropy of softmax; each row has a class as target. Mean over the rows of a sample.
  MeanSquare,    ///< Mean over the numbers of a sample.
  SumSquare,     ///< Sum over the numbers of a sample: whole numbers stay whole.
};

/// One primitive computation inside a layer, for which a real backend has a kernel. For one sample it makes `rows` rows
/// of `columns` numbers; a loss makes one number.
struct Operation {
  OperationKind kind = OperationKind::Input;
  std::vector<int> inputs = {};  ///< Not negative: an earlier operation of the layer; -1 - i: input i of the layer.
  int rows = 1, columns = 1;     ///< Shape of the output; a loss has the shape of its input here.
  int inner = 0;                 ///< Linear: columns of the input. Embedding: number of known words.
  int heads = 1;
  bool causal = false;  ///< Attention: no row looks at a later one.
  bool bias = true;

  double parameters() const;
  bool is_loss() const { return kind >= OperationKind::CrossEntropy; }
  friend bool operator==(const Operation&, const Operation&) = default;
};

std::string_view to_text(OperationKind);
/// "linear 64x512 from 2048": the same text for operations that take the same time.
std::string to_text(const Operation&);

}  // namespace stagecraft
