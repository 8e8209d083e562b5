// The arithmetic of the emulated cuDNN: each operation of a graph by itself, as the manual describes it.
#include <bit>
#include <cmath>
#include <limits>
#include <unordered_map>

#include "tests/support/emulated_gpu/device/cudnn_objects.hpp"

namespace stagecraft::emulated_gpu::dnn {
namespace {

/// Calls with each index of an array and its position.
template <class Function>
void each_index(const Four& sizes, Function&& function) {
  std::size_t position = 0;
  Four i{};
  for (i[0] = 0; i[0] < sizes[0]; ++i[0])
    for (i[1] = 0; i[1] < sizes[1]; ++i[1])
      for (i[2] = 0; i[2] < sizes[2]; ++i[2])
        for (i[3] = 0; i[3] < sizes[3]; ++i[3]) function(i, position++);
}

std::int64_t offset_of(const Four& index, const Four& strides) {
  std::int64_t offset = 0;
  for (std::size_t a = 0; a < 4; ++a) offset += index[a] * strides[a];
  return offset;
}

/// The position of an index in an array whose sizes may be 1 where others are larger.
std::size_t position_of(const Four& index, const Four& sizes) {
  std::int64_t position = 0;
  for (std::size_t a = 0; a < 4; ++a) position = position * sizes[a] + (sizes[a] == 1 ? 0 : index[a]);
  return static_cast<std::size_t>(position);
}

float value_of(Pointwise mode, float x, float b) {
  switch (mode) {
    case Pointwise::Multiply:
      return x * b;
    case Pointwise::Add:
      return x + b;
    case Pointwise::Divide:
      return x / b;
    case Pointwise::Subtract:
      return x - b;
    case Pointwise::Exp:
      return std::exp(x);
    case Pointwise::Log:
      return std::log(x);
    case Pointwise::GreaterOrEqual:
      return x >= b ? 1.0F : 0.0F;
    default:
      throw Refused("a pointwise mode that is not emulated");
  }
}

void pointwise(const Object& operation, const TensorInfo& y, Numbers& arrays, std::vector<float>& result) {
  const Object& rule = operation.object(PointwiseRuleOf);
  const auto mode = rule.one<Pointwise>(PointwiseModeOf);
  const std::vector<TensorInfo> in = inputs_of(operation);
  each_index(y.sizes, [&](const Four& i, std::size_t at) {
    const auto read = [&](std::size_t n) { return arrays.at(in[n].id)[position_of(i, in[n].sizes)]; };
    if (mode == Pointwise::Index)
      result[at] = static_cast<float>(i[static_cast<std::size_t>(rule.one<std::int64_t>(PointwiseAxis))]);
    else if (mode == Pointwise::Select)
      result[at] = read(2) != 0 ? read(0) : read(1);
    else
      result[at] = value_of(mode, read(0), in.size() > 1 ? read(1) : 0);
  });
}

void matmul(const Object& operation, const TensorInfo& y, Numbers& arrays, std::vector<float>& result) {
  const TensorInfo a(operation.object(MatmulA)), b(operation.object(MatmulB));
  const std::vector<float>&left = arrays.at(a.id), &right = arrays.at(b.id);
  each_index(y.sizes, [&](const Four& i, std::size_t at) {
    float sum = 0;
    for (std::int64_t k = 0; k < a.sizes[3]; ++k)
      sum += left[position_of({i[0], i[1], i[2], k}, a.sizes)] * right[position_of({i[0], i[1], k, i[3]}, b.sizes)];
    result[at] = sum;
  });
}

void reduction(const Object& operation, const TensorInfo& y, Numbers& arrays, std::vector<float>& result) {
  const bool is_sum = operation.object(ReductionRuleOf).one<Reduce>(ReductionOperator) == Reduce::Sum;
  const TensorInfo x(operation.object(ReductionX));
  std::fill(result.begin(), result.end(), is_sum ? 0 : -std::numeric_limits<float>::infinity());
  each_index(x.sizes, [&](const Four& i, std::size_t at) {
    float& to = result[position_of(i, y.sizes)];
    to = is_sum ? to + arrays.at(x.id)[at] : std::max(to, arrays.at(x.id)[at]);
  });
}

/// The result is another view of the same places.
void reshape(const Object& operation, const TensorInfo& y, Numbers& arrays, std::vector<float>& result) {
  const TensorInfo x(operation.object(ReshapeX));
  std::unordered_map<std::int64_t, float> places;
  each_index(x.sizes, [&](const Four& i, std::size_t at) { places[offset_of(i, x.strides)] = arrays.at(x.id)[at]; });
  each_index(y.sizes, [&](const Four& i, std::size_t at) { result[at] = places.at(offset_of(i, y.strides)); });
}

}  // namespace

float rounded(float x, DataType type) {
  if (type != DataType::Bfloat16 || !std::isfinite(x)) return x;
  const auto bits = std::bit_cast<std::uint32_t>(x);  // To the nearest, ties to even, as cvt.rn.bf16.
  return std::bit_cast<float>((bits + 0x7fffU + (bits >> 16U & 1U)) & ~0xffffU);
}

void compute(const Object& operation, Numbers& arrays) {
  const TensorInfo y = result_of(operation);
  std::vector<float> result(static_cast<std::size_t>(y.numbers()));
  switch (operation.type) {
    case PointwiseOperation:
      pointwise(operation, y, arrays, result);
      break;
    case MatmulOperation:
      matmul(operation, y, arrays, result);
      break;
    case ReductionOperation:
      reduction(operation, y, arrays, result);
      break;
    default:
      reshape(operation, y, arrays, result);
  }
  for (float& x : result) x = rounded(x, y.type);
  arrays[y.id] = std::move(result);
}

}  // namespace stagecraft::emulated_gpu::dnn
