// Parameters, floating-point operations and kept arrays of each kind of operation, how a group divides them, and
// operations as text.

#include "sim/model/operation.hpp"

#include <fmt/core.h>
#include <algorithm>

#include "sim/core/text.hpp"

namespace stagecraft {

using enum OperationKind;

HeadShape head_shape(const Operation& op) {
  const int value = op.heads > 0 ? op.columns / op.heads : 0;
  return {op.heads, op.key_value_heads > 0 ? op.key_value_heads : op.heads, op.head_width > 0 ? op.head_width : value,
          value};
}

int query_key_value_columns(const HeadShape& s) { return s.heads * s.query + s.key_value_heads * (s.query + s.value); }

double attention_pairs(const Operation& op, double rows) {
  const double window = op.window > 0 ? std::min<double>(op.window, rows) : rows;
  if (!op.fused) return rows * rows;
  return op.causal ? window * rows - window * window / 2 : window * rows;
}

// ---------------------------------------------------------------- parameters

namespace {

double linear_parameters(const Operation& op) {
  return static_cast<double>(op.inner) * op.columns + (op.bias ? op.columns : 0);
}

ParameterClass class_of(Division division) {
  if (division == Division::Experts) return ParameterClass::Expert;
  return division == Division::Replicated ? ParameterClass::Replicated : ParameterClass::Divided;
}

/// What is replicated although the operation is divided.
double replicated_parameters(const Operation& op) {
  if (op.kind == Linear && op.division == Division::Row && op.bias) return op.columns;
  if (op.kind == Embedding && op.positions) return static_cast<double>(op.rows) * op.columns;
  return op.kind == HeadNorm ? op.parameters() : 0;
}

}  // namespace

double Operation::parameters() const {
  switch (kind) {
    case Linear:
    case Router:
      return linear_parameters(*this);
    case GroupedLinear:
      return experts * linear_parameters(*this);
    case LayerNorm:
      return 2.0 * columns;
    case RmsNorm:
      return columns;
    case HeadNorm:
      return 2.0 * head_width;
    case Attention:
      return sinks ? heads : 0;
    case Prepend:
      return (1.0 + rows) * columns;
    case Embedding:
      return (static_cast<double>(inner) + (positions ? rows : 0)) * columns;
    case Tensor:
      return tensor->weights() ? static_cast<double>(numbers_of(tensor->weights()->shape)) : 0;
    default:
      return 0;
  }
}

ParametersByClass parameters_by_class(const Operation& op) {
  ParametersByClass counts{};
  const double replicated = replicated_parameters(op);
  counts[class_of(op.division)] = op.parameters() - replicated;
  counts[ParameterClass::Replicated] += replicated;
  return counts;
}

double parameters_on_device(const Operation& op, const Degrees& d) {
  const ParametersByClass counts = parameters_by_class(op);
  return counts[ParameterClass::Divided] / d.tensor + counts[ParameterClass::Replicated] +
         counts[ParameterClass::Expert] / (static_cast<double>(d.expert) * d.expert_tensor);
}

double active_parameters(const Operation& op) {
  return op.kind == GroupedLinear ? op.active * linear_parameters(op) : op.parameters();
}

// ---------------------------------------------------------------- floating-point operations

namespace {

double attention_flops(const Operation& op, Pass pass) {
  const HeadShape shape = head_shape(op);
  const double pairs = attention_pairs(op, op.rows) * shape.heads, forward = 2 * pairs * (shape.query + shape.value);
  if (pass == Pass::Forward) return forward;
  if (pass == Pass::WeightGradient) return 0;
  return 2 * forward + (op.fused ? 2 * pairs * shape.query : 0);
}

}  // namespace

Flops flops(const Operation& op, Pass pass) {
  const double rows = op.rows, numbers = rows * op.columns;
  switch (op.kind) {
    case Linear:
    case Router:
    case GroupedLinear:
      return {2 * rows * op.inner * op.columns};
    case Attention:
      return {attention_flops(op, pass)};
    case LayerNorm:
      return {5 * numbers};
    case RmsNorm:
      return {4 * numbers};
    case HeadNorm: {
      const HeadShape shape = head_shape(op);
      return {4 * rows * (shape.heads + shape.key_value_heads) * shape.query};
    }
    case CrossEntropy:
      return {pass == Pass::Forward ? 5 * numbers : pass == Pass::InputGradient ? numbers : 0};
    case MeanSquare:
    case SumSquare:
      return {pass == Pass::Forward ? 3 * numbers : pass == Pass::InputGradient ? numbers : 0};
    default:
      return {};
  }
}

Bytes output_bytes(const Operation& op, double number_bytes) {
  return {(op.is_loss() ? 1 : static_cast<double>(op.rows) * op.columns) * number_bytes};
}

// ---------------------------------------------------------------- kept arrays

namespace {

bool is_loss_or_activation(const Operation& op) {
  return op.is_loss() || op.kind == Relu || op.kind == Tanh || op.kind == Gelu || op.kind == Silu ||
         op.kind == GatedSilu;
}

ArrayDivision output_division(const Operation& op) {
  switch (op.division) {
    case Division::Replicated:
    case Division::Row:
      return ArrayDivision::Sequence;
    case Division::Column:
    case Division::Heads:
      return ArrayDivision::Tensor;
    case Division::Vocabulary:
      return op.kind == Embedding ? ArrayDivision::Sequence : ArrayDivision::Tensor;
    case Division::Experts:
      return op.kind == Combine ? ArrayDivision::Sequence : ArrayDivision::Expert;
  }
  return ArrayDivision::Sequence;
}

ArrayDivision input_division(const Operation& op) {
  switch (op.division) {
    case Division::Replicated:
      return ArrayDivision::Sequence;
    case Division::Column:
    case Division::Vocabulary:
      return is_loss_or_activation(op) ? ArrayDivision::Tensor : ArrayDivision::Sequence;
    case Division::Row:
    case Division::Heads:
      return ArrayDivision::Tensor;
    case Division::Experts:
      return op.kind == Dispatch ? ArrayDivision::Sequence : ArrayDivision::Expert;
  }
  return ArrayDivision::Sequence;
}

double input_columns(const Operation& op) {
  switch (op.kind) {
    case Linear:
    case GroupedLinear:
    case Router:
    case GatedSilu:
      return op.inner;
    case Embedding:
      return 1;
    case Attention:
      return query_key_value_columns(head_shape(op));
    default:
      return op.columns;
  }
}

bool keeps_inputs(const Operation& op) {
  switch (op.kind) {
    case Linear:
    case GroupedLinear:
    case Router:
    case LayerNorm:
    case RmsNorm:
    case HeadNorm:
    case Attention:
    case Embedding:
    case Combine:
      return true;
    default:
      return is_loss_or_activation(op);
  }
}

/// Collects the arrays of a layer, each once.
class KeptArrays {
 public:
  explicit KeptArrays(const std::vector<Operation>& operations) : operations_(operations), listed_(operations.size()) {
    arrays_.reserve(operations.size());
  }

  std::vector<KeptArray> collect() {
    for (int o = 0; o < std::ssize(operations_); ++o) {
      const Operation& op = operations_[o];
      if (keeps_inputs(op))
        for (const int from : op.inputs) keep_value(from, o);
      if (op.kind != Attention) continue;
      if (op.fused)
        keep_value(o, o);
      else
        arrays_.push_back({static_cast<double>(op.rows) * op.rows * op.heads, output_division(op), o, o, true});
    }
    return std::move(arrays_);
  }

 private:
  void keep_value(int from, int reader) {
    const Operation& op = operations_[reader];
    const bool is_product = (op.kind == Linear || op.kind == GroupedLinear) && op.division != Division::Vocabulary;
    std::size_t& listed = place(from);
    if (listed > 0) {
      arrays_[listed - 1].of_one_product = false;
      return;
    }
    listed = arrays_.size() + 1;
    if (from >= 0) {
      const Operation& maker = operations_[from];
      const double numbers = static_cast<double>(maker.rows) * maker.columns;
      arrays_.push_back({numbers, output_division(maker), reader, from, false, is_product});
    } else {
      arrays_.push_back({op.rows * input_columns(op), input_division(op), reader, from, false, is_product});
    }
  }

  /// Inputs of the layer, which have negative numbers, come after its operations.
  std::size_t& place(int from) {
    const std::size_t at = from >= 0 ? from : operations_.size() + (-1 - from);
    if (at >= listed_.size()) listed_.resize(at + 1);
    return listed_[at];
  }

  const std::vector<Operation>& operations_;
  std::vector<std::size_t> listed_;  ///< Places in `arrays_`, counted from 1, of what is listed; else 0.
  std::vector<KeptArray> arrays_;
};

}  // namespace

std::vector<KeptArray> kept_arrays(const std::vector<Operation>& operations) {
  return KeptArrays(operations).collect();
}

Bytes stash_bytes(const std::vector<Operation>& operations, double number_bytes) {
  double numbers = 0;
  for (const KeptArray& array : kept_arrays(operations)) numbers += array.numbers;
  return {numbers * number_bytes};
}

// ---------------------------------------------------------------- words

std::string_view to_text(OperationKind kind) {
  constexpr std::string_view names[] = {
      "input",     "linear", "layer_norm",    "relu",        "tanh",           "gelu",    "attention",
      "embedding", "add",    "concat",        "rms_norm",    "head_norm",      "silu",    "gated_silu",
      "rotary",    "slice",  "router",        "dispatch",    "grouped_linear", "combine", "prepend",
      "first_row", "tensor", "cross_entropy", "mean_square", "sum_square"};
  return names[static_cast<int>(kind)];
}

std::string_view to_text(Division division) {
  constexpr std::string_view names[] = {"replicated", "column", "row", "heads", "vocabulary", "experts"};
  return names[static_cast<int>(division)];
}

std::string_view to_text(ParameterClass c) {
  constexpr std::string_view names[] = {"divided", "replicated", "expert"};
  return names[static_cast<int>(c)];
}

namespace {

std::string attention_text(const Operation& op) {
  const HeadShape shape = head_shape(op);
  std::string text = " " + pluralize(op.heads, "head");
  if (shape.key_value_heads != shape.heads) text += fmt::format(" {} of keys", shape.key_value_heads);
  if (shape.query != shape.value) text += fmt::format(" of {}", shape.query);
  if (op.causal) text += " causal";
  if (op.window > 0) text += " in " + pluralize(op.window, "row");
  return text;
}

}  // namespace

std::string to_text(const Operation& op) {
  if (op.kind == Tensor) return to_text(*op.tensor);
  std::string text = fmt::format("{} {}x{}", to_text(op.kind), op.rows, op.columns);
  if (op.kind == Linear || op.kind == Router || op.kind == GroupedLinear)
    text += fmt::format(" from {}{}", op.inner, op.bias ? "" : " without bias");
  if (op.kind == GroupedLinear) text += " for " + pluralize(op.experts, "expert");
  if (op.kind == Embedding)
    text += fmt::format(" of {}{}", pluralize(op.inner, "word"), op.positions ? "" : " without positions");
  if (op.kind == Attention) text += attention_text(op);
  if (op.kind == HeadNorm || op.kind == Rotary) text += " " + pluralize(op.heads, "head");
  if (op.kind == Rotary) text += fmt::format(" {} of {}", op.rotary, op.head_width);
  return text;
}

}  // namespace stagecraft
