// The operators that compute each number of their output from one number of each operand.

#include "models/onnx/elementwise.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace stagecraft::onnx {

TensorFunction elementwise_function(std::string_view type) {
  using enum TensorFunction;
  static constexpr std::pair<std::string_view, TensorFunction> kTable[] = {
      {"Add", Add},
      {"Sum", Add},
      {"Sub", Subtract},
      {"Mul", Multiply},
      {"Div", Divide},
      {"Pow", Power},
      {"Min", Minimum},
      {"Max", Maximum},
      {"Where", Where},
      {"Equal", Equal},
      {"Less", Less},
      {"Greater", Less},
      {"LessOrEqual", LessOrEqual},
      {"GreaterOrEqual", LessOrEqual},
      {"And", And},
      {"Or", Or},
      {"Not", Not},
      {"Neg", Negate},
      {"Sqrt", SquareRoot},
      {"Exp", Exponential},
      {"Log", Logarithm},
      {"Reciprocal", Reciprocal},
      {"Sin", Sine},
      {"Cos", Cosine},
      {"Relu", Relu},
      {"Erf", ErrorFunction},
      {"Tanh", Tanh},
      {"Sigmoid", Sigmoid},
  };
  const auto* const it =
      std::find_if(std::begin(kTable), std::end(kTable), [&](const auto& e) { return e.first == type; });
  return it == std::end(kTable) ? Unknown : it->second;
}

bool is_variadic(std::string_view type) { return type == "Sum" || type == "Min" || type == "Max"; }

std::size_t operand_count(TensorFunction function) {
  if (function == TensorFunction::Where) return 3;
  return function >= TensorFunction::Not ? 1 : 2;
}

}  // namespace stagecraft::onnx
