#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <protozero/pbf_reader.hpp>

#include "sim/core/file.hpp"

// An ONNX file as its messages: nodes, tensors and types, without weights.

namespace stagecraft::onnx {

/// The file that is read: an error names it and the byte at which reading failed. It outlives its readers.
struct Origin {
  const std::string* file;
  const char* start;
};

/// One message of a protobuf file, field by field, as views into the file. protozero decodes it; this class checks the
/// kind of each value, which protozero only asserts, and turns every failure into an InputError.
class MessageReader {
 public:
  MessageReader(std::string_view message, const Origin& origin)
      : reader_(message.data(), message.size()), origin_(&origin) {}

  bool next();  ///< Goes to the next field; false after the last one.
  std::uint32_t field() const { return value_.tag(); }

  std::int64_t integer() const;
  float float_value() const;
  std::string_view bytes() const;  ///< A string, a message, or packed numbers.
  MessageReader message() const { return {bytes(), *origin_}; }

  /// Calls `take` for each number of a repeated field, packed or not.
  template <class Visitor>
  void integers(Visitor visit) const {
    if (has(Kind::varint)) return visit(integer());
    packed<&protozero::pbf_reader::get_packed_int64>(visit);
  }
  template <class Visitor>
  void floats(Visitor visit) const {
    if (has(Kind::fixed32)) return visit(float_value());
    packed<&protozero::pbf_reader::get_packed_float>(visit);
  }
  template <class Visitor>
  void doubles(Visitor visit) const {
    if (has(Kind::fixed64)) return visit(protozero::pbf_reader(value_).get_double());
    packed<&protozero::pbf_reader::get_packed_double>(visit);
  }

  /// Throws InputError with the file and the byte after the current field.
  [[noreturn]] void fail(const std::string& message) const;

 private:
  using Kind = protozero::pbf_wire_type;

  bool has(Kind kind) const { return value_.has_wire_type(kind); }

  template <auto get, class Visitor>
  void packed(Visitor visit) const {
    bytes();  // Checks the kind.
    protozero::pbf_reader value = value_;
    try {
      for (const auto number : (value.*get)()) visit(number);
    } catch (const protozero::exception&) {
      fail_packed();
    }
  }
  // These two explain the exception of protozero that is being handled.
  [[noreturn]] void fail_next() const;
  [[noreturn]] void fail_packed() const;
  [[noreturn]] void fail_at(const char* where, const std::string& message) const;

  protozero::pbf_reader reader_;  ///< After the current field.
  protozero::pbf_reader value_;   ///< At the value of the current field; copies of this reader read the value.
  const Origin* origin_;
};

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

/// Bytes of one number; 4 for an unknown type.
double bytes_of(Type);
bool is_float(Type);
/// How many numbers a tensor of this shape has; a scalar has one.
double numbers_of(const Shape&);
std::string to_text(const Shape&);  ///< "1x64x112x112"; "scalar".
constexpr std::size_t kHighestRank = 64;
/// "1e+18 numbers; 1e+15 are the most", or of dimensions; empty for a shape that can be counted.
std::string too_large(const Shape&);

/// A tensor that stands in the file, or that follows from it. Only a small one has `values`, because shapes may depend
/// on them; 64-bit integers are exact to 2^53.
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
  std::vector<std::string> inputs, outputs;  ///< An empty name is an input or output that is not given.
  std::vector<Attribute> attributes;
};

/// A size, or the name of an open one, or neither.
struct Dimension {
  std::int64_t size = -1;  ///< -1: open.
  std::string name;
};

struct ValueInfo {
  std::string name;
  Type type = Type::Undefined;
  std::optional<std::vector<Dimension>> shape;
};

/// The graph in an ONNX file. Weights are known by name, type and shape; their bytes are neither copied nor
/// looked at, and may lie in other files.
struct File {
  std::string producer, graph;
  std::int64_t opset = 1;
  std::vector<Node> nodes;
  std::vector<Constant> initializers;
  std::vector<ValueInfo> inputs, outputs, values;
  std::vector<std::string> functions;  ///< Operators that the file defines itself.
};

class MessageReader;
Constant read_tensor(MessageReader);

/// Throws InputError for bytes that are no ONNX model.
File read_file(std::string_view bytes, const std::string& name);

}  // namespace stagecraft::onnx
