// Field numbers are those of onnx.proto (github.com/onnx/onnx, onnx/onnx.proto).
#include "models/onnx/file.hpp"

#include <fmt/format.h>

#include "models/onnx/tensor_proto.hpp"
#include "sim/core/diagnostic.hpp"

namespace stagecraft::onnx {
namespace {

Attribute read_attribute(Wire wire) {
  Attribute attribute;
  while (wire.next()) switch (wire.field()) {
      case 1:
        attribute.name = wire.bytes();
        break;
      case 2:
        attribute.real = wire.real();
        break;
      case 3:
        attribute.integer = wire.integer();
        break;
      case 4:
        attribute.text = wire.bytes();
        break;
      case 5:
        attribute.tensor = read_tensor(wire.message());
        break;
      case 7:
        wire.reals([&](float number) { attribute.reals.push_back(number); });
        break;
      case 8:
        wire.integers([&](std::int64_t number) { attribute.integers.push_back(number); });
        break;
      default:
        break;
    }
  return attribute;
}

Node read_node(Wire wire) {
  Node node;
  while (wire.next()) switch (wire.field()) {
      case 1:
        node.inputs.emplace_back(wire.bytes());
        break;
      case 2:
        node.outputs.emplace_back(wire.bytes());
        break;
      case 3:
        node.name = wire.bytes();
        break;
      case 4:
        node.type = wire.bytes();
        break;
      case 5:
        node.attributes.push_back(read_attribute(wire.message()));
        break;
      case 7:
        node.domain = wire.bytes();
        break;
      default:
        break;
    }
  if (node.domain == "ai.onnx") node.domain.clear();
  return node;
}

Dimension read_dimension(Wire wire) {
  Dimension dimension;
  while (wire.next()) {
    if (wire.field() == 1) dimension.size = wire.integer();
    if (wire.field() == 2) dimension.name = wire.bytes();
  }
  return dimension;
}

std::vector<Dimension> read_shape(Wire wire) {
  std::vector<Dimension> shape;
  while (wire.next())
    if (wire.field() == 1) shape.push_back(read_dimension(wire.message()));
  return shape;
}

ValueInfo read_value(Wire wire) {
  ValueInfo value;
  while (wire.next()) {
    if (wire.field() == 1) value.name = wire.bytes();
    if (wire.field() != 2) continue;
    for (Wire type = wire.message(); type.next();) {
      if (type.field() != 1) continue;  // Sequences, maps and the like have no shape.
      for (Wire tensor = type.message(); tensor.next();) {
        if (tensor.field() == 1) value.type = static_cast<Type>(tensor.integer());
        if (tensor.field() == 2) value.shape = read_shape(tensor.message());
      }
    }
  }
  return value;
}

void read_graph(Wire wire, File& file) {
  while (wire.next()) switch (wire.field()) {
      case 1:
        file.nodes.push_back(read_node(wire.message()));
        break;
      case 2:
        file.graph = wire.bytes();
        break;
      case 5:
        file.initializers.push_back(read_tensor(wire.message()));
        break;
      case 11:
        file.inputs.push_back(read_value(wire.message()));
        break;
      case 12:
        file.outputs.push_back(read_value(wire.message()));
        break;
      case 13:
        file.values.push_back(read_value(wire.message()));
        break;
      default:
        break;
    }
}

void read_opset(Wire wire, File& file) {
  std::string domain;
  std::int64_t version = 1;
  while (wire.next()) {
    if (wire.field() == 1) domain = wire.bytes();
    if (wire.field() == 2) version = wire.integer();
  }
  if (domain.empty() || domain == "ai.onnx") file.opset = version;
}

std::string name_of_function(Wire wire) {
  while (wire.next())
    if (wire.field() == 1) return std::string(wire.bytes());
  return {};
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

File read_file(std::string_view bytes, const std::string& name) {
  if (bytes.starts_with("version https://git-lfs"))
    throw InputError(name + " is a pointer of Git LFS, not the model itself", "fetch it with `git lfs pull`");
  const Origin origin{&name, bytes.data()};
  File file;
  bool has_version = false, has_graph = false;
  Wire wire(bytes, origin);
  while (wire.next()) switch (wire.field()) {
      case 1:
        has_version = wire.integer() > 0;
        break;
      case 2:
        file.producer = wire.bytes();
        break;
      case 7:
        if (has_graph) wire.fail("there are two graphs");
        has_graph = true;
        read_graph(wire.message(), file);
        break;
      case 8:
        read_opset(wire.message(), file);
        break;
      case 25:
        file.functions.push_back(name_of_function(wire.message()));
        break;
      default:
        break;
    }
  if (!has_version || !has_graph)
    throw InputError(name + " is not an ONNX model: it has no " + (has_graph ? "version" : "graph"),
                     "give a file that an exporter wrote, such as torch.onnx.export");
  return file;
}

}  // namespace stagecraft::onnx
