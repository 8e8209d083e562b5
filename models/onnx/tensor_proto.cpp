#include "models/onnx/tensor_proto.hpp"

#include <fmt/format.h>

#include <cmath>
#include <cstring>

#include "sim/core/text.hpp"

namespace stagecraft::onnx {
namespace {

template <class T>
std::vector<double> raw_numbers(std::string_view bytes) {
  std::vector<double> values(bytes.size() / sizeof(T));
  for (std::size_t i = 0; i < values.size(); ++i) {
    T one{};
    std::memcpy(&one, bytes.data() + i * sizeof one, sizeof one);
    values[i] = static_cast<double>(one);
  }
  return values;
}

std::optional<std::vector<double>> raw_values(Type type, std::string_view bytes) {
  switch (type) {
    case Type::Float:
      return raw_numbers<float>(bytes);
    case Type::Double:
      return raw_numbers<double>(bytes);
    case Type::Int32:
      return raw_numbers<std::int32_t>(bytes);
    case Type::Int64:
      return raw_numbers<std::int64_t>(bytes);
    case Type::Bool:
    case Type::Uint8:
      return raw_numbers<std::uint8_t>(bytes);
    case Type::Int8:
      return raw_numbers<std::int8_t>(bytes);
    default:
      return {};  // Half precision and rare types: no shape depends on them.
  }
}

void check_shape(const Wire& wire, const Constant& tensor) {
  for (const std::int64_t size : tensor.shape)
    if (size < 0) wire.fail(fmt::format("the tensor '{}' has a dimension of {}", tensor.name, size));
  if (const std::string why = too_large(tensor.shape); !why.empty())
    wire.fail(fmt::format("the tensor '{}' has {}", tensor.name, why));
}

struct Data {
  std::string_view raw;
  std::vector<double> listed;
  bool external = false;
};

/// Field numbers of TensorProto in onnx.proto.
Data read_fields(Wire& wire, Constant& tensor) {
  Data data;
  const auto keep = [&](auto number) {
    if (static_cast<double>(data.listed.size()) <= kMostValues) data.listed.push_back(static_cast<double>(number));
  };
  while (wire.next()) switch (wire.field()) {
      case 1:
        wire.integers([&](std::int64_t size) {
          if (tensor.shape.size() <= kHighestRank) tensor.shape.push_back(size);
        });
        break;
      case 2:
        tensor.type = static_cast<Type>(wire.integer());
        break;
      case 4:
        wire.reals(keep);
        break;
      case 5:
      case 7:
      case 11:
        wire.integers(keep);
        break;
      case 8:
        tensor.name = wire.bytes();
        break;
      case 9:
        data.raw = wire.bytes();
        break;
      case 10:
        wire.doubles(keep);
        break;
      case 14:
        data.external = wire.integer() == 1;
        break;
      default:
        break;
    }
  return data;
}

}  // namespace

Constant read_tensor(Wire wire) {
  Constant tensor;
  const Data data = read_fields(wire, tensor);
  check_shape(wire, tensor);
  const double numbers = numbers_of(tensor.shape);
  if (!data.raw.empty() && !data.external &&
      static_cast<double>(data.raw.size()) != std::ceil(numbers * bytes_of(tensor.type)))
    wire.fail(fmt::format("the tensor '{}' of {} has {} bytes, but {} numbers of {} bytes", tensor.name,
                          to_text(tensor.shape), data.raw.size(), numbers, bytes_of(tensor.type)));
  if (numbers > kMostValues || data.external) return tensor;
  if (!data.raw.empty())
    tensor.values = raw_values(tensor.type, data.raw);
  else if (tensor.type != Type::Float16 && tensor.type != Type::Bfloat16 && tensor.type != Type::String)
    tensor.values = data.listed;
  if (tensor.values && static_cast<double>(tensor.values->size()) != numbers) tensor.values.reset();
  return tensor;
}

}  // namespace stagecraft::onnx
