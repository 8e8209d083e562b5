// Reads a tensor of an ONNX file, an initializer or a constant; also the bytes of each number type, and the limits of
// shapes.
#include <cmath>

#include <fmt/format.h>

#include "models/onnx/file.hpp"

namespace stagecraft::onnx {
namespace {

template <class T>
std::vector<double> raw_numbers(std::string_view bytes) {
  using Iterator = protozero::const_fixed_iterator<T>;
  const char* const end = bytes.data() + bytes.size() / sizeof(T) * sizeof(T);
  return {Iterator(bytes.data()), Iterator(end)};
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

void check_shape(const MessageReader& message, const Constant& tensor) {
  for (const std::int64_t size : tensor.shape)
    if (size < 0) message.fail(fmt::format("the tensor '{}' has a dimension of {}", tensor.name, size));
  if (const std::string why = too_large(tensor.shape); !why.empty())
    message.fail(fmt::format("the tensor '{}' has {}", tensor.name, why));
}

struct TensorData {
  std::string_view raw;
  std::vector<double> listed;
  bool external = false;
};

/// The field numbers come from TensorProto in onnx.proto.
TensorData read_fields(MessageReader& message, Constant& tensor) {
  TensorData data;
  const auto keep = [&](auto number) {
    if (static_cast<double>(data.listed.size()) <= kMostValues) data.listed.push_back(static_cast<double>(number));
  };
  while (message.next()) switch (message.field()) {
      case 1:  // dims
        message.integers([&](std::int64_t size) {
          if (tensor.shape.size() <= kHighestRank) tensor.shape.push_back(size);
        });
        break;
      case 2:  // data_type
        tensor.type = static_cast<Type>(message.integer());
        break;
      case 4:  // float_data
        message.floats(keep);
        break;
      case 5:   // int32_data
      case 7:   // int64_data
      case 11:  // uint64_data
        message.integers(keep);
        break;
      case 8:  // name
        tensor.name = message.bytes();
        break;
      case 9:  // raw_data
        data.raw = message.bytes();
        break;
      case 10:  // double_data
        message.doubles(keep);
        break;
      case 14:  // data_location
        data.external = message.integer() == 1;
        break;
      default:
        break;
    }
  return data;
}

}  // namespace

double bytes_of(Type type) {
  switch (static_cast<std::int32_t>(type)) {
    case 2:
    case 3:
    case 9:
    case 17:
    case 18:
    case 19:
    case 20:
      return 1;
    case 4:
    case 5:
    case 10:
    case 16:
      return 2;
    case 7:
    case 11:
    case 13:
    case 14:
      return 8;
    case 15:
      return 16;
    case 21:
    case 22:
    case 23:
      return 0.5;
    default:
      return 4;
  }
}

bool is_float(Type type) {
  return type == Type::Float || type == Type::Float16 || type == Type::Double || type == Type::Bfloat16;
}

double numbers_of(const Shape& shape) {
  double numbers = 1;
  for (const std::int64_t size : shape) numbers *= static_cast<double>(size);
  return numbers;
}

std::string to_text(const Shape& shape) { return shape.empty() ? "scalar" : fmt::format("{}", fmt::join(shape, "x")); }

std::string too_large(const Shape& shape) {
  constexpr double kMostNumbers = 1e15;
  if (shape.size() > kHighestRank) return fmt::format("{} dimensions; {} are the most", shape.size(), kHighestRank);
  if (numbers_of(shape) > kMostNumbers)
    return fmt::format("{:.3g} numbers; {:g} are the most", numbers_of(shape), kMostNumbers);
  return {};
}

Constant read_tensor(MessageReader message) {
  Constant tensor;
  const TensorData data = read_fields(message, tensor);
  check_shape(message, tensor);
  const double numbers = numbers_of(tensor.shape);
  if (!data.raw.empty() && !data.external &&
      static_cast<double>(data.raw.size()) != std::ceil(numbers * bytes_of(tensor.type)))
    message.fail(fmt::format("the tensor '{}' of {} has {} bytes, but {} numbers of {} bytes", tensor.name,
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
