#pragma once

#include "models/onnx/operator.hpp"

namespace stagecraft::onnx {

/// Fills the values of a small tensor: `value` gets the place along each dimension. Nothing happens to a large one.
template <class Value>
void fill(Tensor& y, Value value) {
  if (y.numbers() > kMostValues) return;
  y.values.emplace(static_cast<std::size_t>(y.numbers()));
  Shape place(y.shape.size(), 0);
  for (double& number : *y.values) {
    number = value(place);
    for (std::size_t d = place.size(); d-- > 0;) {
      if (++place[d] < y.shape[d]) break;
      place[d] = 0;
    }
  }
}

/// The number at a place of a tensor whose values are known.
inline double value_at(const Tensor& t, const Shape& place) {
  std::int64_t at = 0;
  for (std::size_t d = 0; d < place.size(); ++d) at = at * t.shape[d] + place[d];
  return t.values->at(static_cast<std::size_t>(at));
}

}  // namespace stagecraft::onnx
