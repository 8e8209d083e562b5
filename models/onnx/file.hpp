#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stagecraft::onnx {

using Shape = std::vector<std::int64_t>;

/// TensorProto.DataType of onnx.proto.
enum class Type : std::int32_t {
  Undefined = 0,
  Float = 1,
  Uint8 = 2,
  Int8 = 3,
  Int32 = 6,
  Int64 = 7,
  String = 8,
  Bool = 9,
  Float16 = 10,
  Double = 11,
  Bfloat16 = 16,
};

/// Bytes of one number; 4 of a type nobody knows.
double bytes_of(Type);
bool is_float(Type);
/// Of a shape; 1 of none.
double numbers_of(const Shape&);
std::string to_text(const Shape&);  ///< "1x64x112x112"; "scalar".
constexpr std::size_t kHighestRank = 64;
/// "1e+18 numbers; 1e+15 are the most", or of dimensions; empty for a shape that can be counted.
std::string too_large(const Shape&);

/// Numbers that stand in the file, or that follow from it. `values` only of a few, which shapes may depend on; 64-bit
/// whole numbers are exact to 2^53.
struct Constant {
  std::string name;
  Type type = Type::Undefined;
  Shape shape;
  std::optional<std::vector<double>> values;
};
constexpr double kMostValues = 4096;

struct Attribute {
  std::string name, text;
  std::optional<std::int64_t> integer;
  std::optional<double> real;
  std::vector<std::int64_t> integers;
  std::vector<double> reals;
  std::optional<Constant> tensor;
};

struct Node {
  std::string name, type, domain;
  std::vector<std::string> inputs, outputs;  ///< Empty: left out.
  std::vector<Attribute> attributes;
};

/// Known, or by name, or neither.
struct Dimension {
  std::int64_t size = -1;
  std::string name;
};

struct ValueInfo {
  std::string name;
  Type type = Type::Undefined;
  std::optional<std::vector<Dimension>> shape;
};

/// What an ONNX file says of its graph. Weights are known by name, type and shape; their bytes are neither copied nor
/// looked at, and may lie in other files.
struct File {
  std::string producer, graph;
  std::int64_t opset = 1;
  std::vector<Node> nodes;
  std::vector<Constant> initializers;
  std::vector<ValueInfo> inputs, outputs, values;
  std::vector<std::string> functions;  ///< Operators that the file defines itself.
};

/// Throws InputError for bytes that are no ONNX model.
File read_file(std::string_view bytes, const std::string& name);

}  // namespace stagecraft::onnx
