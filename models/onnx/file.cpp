// Decodes an ONNX file: nodes, attributes, inputs, outputs and their shapes; tensor.cpp reads its tensors. The numbers
// of fields stand in onnx.proto (github.com/onnx/onnx, onnx/onnx.proto).
#include "models/onnx/file.hpp"

#include <fmt/core.h>

#include "sim/core/diagnostic.hpp"
#include "sim/core/file.hpp"

namespace stagecraft::onnx {

bool MessageReader::next() {
  value_ = {};
  try {
    if (!reader_.next()) return false;
    value_ = reader_;
    reader_.skip();
    return true;
  } catch (const protozero::exception&) {
    fail_next();
  }
}

std::int64_t MessageReader::integer() const {
  if (!has(Kind::varint)) fail(fmt::format("field {} is no whole number", field()));
  return protozero::pbf_reader(value_).get_int64();
}

float MessageReader::float_value() const {
  if (!has(Kind::fixed32)) fail(fmt::format("field {} is no number of 32 bits", field()));
  return protozero::pbf_reader(value_).get_float();
}

std::string_view MessageReader::bytes() const {
  if (!has(Kind::length_delimited)) fail(fmt::format("field {} is neither text nor a message", field()));
  const protozero::data_view view = protozero::pbf_reader(value_).get_view();
  return {view.data(), view.size()};
}

void MessageReader::fail(const std::string& message) const { fail_at(reader_.data().data(), message); }

void MessageReader::fail_at(const char* where, const std::string& message) const {
  throw InputError(fmt::format("{}: byte {}: {}", *origin_->file, where - origin_->start, message),
                   "the file is cut off or damaged, or it is no ONNX file");
}

void MessageReader::fail_next() const {
  const char *const at = reader_.data().data(), *const end = at + reader_.length();
  try {
    throw;
  } catch (const protozero::varint_too_long_exception&) {
    fail_at(at + protozero::max_varint_length, "a number is longer than ten bytes");
  } catch (const protozero::invalid_tag_exception&) {
    fail(fmt::format("a field has the number {}", reader_.tag()));
  } catch (const protozero::unknown_pbf_wire_type_exception&) {
    fail(fmt::format("a field is of the kind {}, which no ONNX file has", static_cast<int>(reader_.wire_type())));
  } catch (const protozero::end_of_buffer_exception&) {
    std::uint64_t expected = has(Kind::fixed32) ? 4 : has(Kind::fixed64) ? 8 : 0;
    const char* length = value_.data().data();
    if (has(Kind::length_delimited) && length != at) expected = protozero::decode_varint(&length, end);
    if (expected == 0) fail_at(end, "the file ends inside a number");
    fail(fmt::format("{} bytes should follow, but {} are left", expected, end - at));
  }
}

void MessageReader::fail_packed() const {
  try {
    throw;
  } catch (const protozero::varint_too_long_exception&) {
    fail("a number is longer than ten bytes");
  } catch (const protozero::invalid_length_exception&) {
    fail(fmt::format("field {} has {} bytes, which its numbers do not fill", field(), bytes().size()));
  } catch (const protozero::end_of_buffer_exception&) {
    fail("the file ends inside a number");
  }
}

namespace {

Attribute read_attribute(MessageReader message) {
  Attribute attribute;
  while (message.next()) switch (message.field()) {
      case 1:  // name
        attribute.name = message.bytes();
        break;
      case 2:  // f
        attribute.real = message.float_value();
        break;
      case 3:  // i
        attribute.integer = message.integer();
        break;
      case 4:  // s
        attribute.text = message.bytes();
        break;
      case 5:  // t
        attribute.tensor = read_tensor(message.message());
        break;
      case 7:  // floats
        message.floats([&](float number) { attribute.reals.push_back(number); });
        break;
      case 8:  // ints
        message.integers([&](std::int64_t number) { attribute.integers.push_back(number); });
        break;
      default:
        break;
    }
  return attribute;
}

Node read_node(MessageReader message) {
  Node node;
  while (message.next()) switch (message.field()) {
      case 1:  // input
        node.inputs.emplace_back(message.bytes());
        break;
      case 2:  // output
        node.outputs.emplace_back(message.bytes());
        break;
      case 3:  // name
        node.name = message.bytes();
        break;
      case 4:  // op_type
        node.type = message.bytes();
        break;
      case 5:  // attribute
        node.attributes.push_back(read_attribute(message.message()));
        break;
      case 7:  // domain
        node.domain = message.bytes();
        break;
      default:
        break;
    }
  if (node.domain == "ai.onnx") node.domain.clear();
  return node;
}

Dimension read_dimension(MessageReader message) {
  Dimension dimension;
  while (message.next()) {
    if (message.field() == 1) dimension.size = message.integer();
    if (message.field() == 2) dimension.name = message.bytes();
  }
  return dimension;
}

std::vector<Dimension> read_shape(MessageReader message) {
  std::vector<Dimension> shape;
  while (message.next())
    if (message.field() == 1) shape.push_back(read_dimension(message.message()));
  return shape;
}

ValueInfo read_value(MessageReader message) {
  ValueInfo value;
  while (message.next()) {
    if (message.field() == 1) value.name = message.bytes();
    if (message.field() != 2) continue;
    for (MessageReader type = message.message(); type.next();) {
      if (type.field() != 1) continue;  // Sequences, maps and the like have no shape.
      for (MessageReader tensor = type.message(); tensor.next();) {
        if (tensor.field() == 1) value.type = static_cast<Type>(tensor.integer());
        if (tensor.field() == 2) value.shape = read_shape(tensor.message());
      }
    }
  }
  return value;
}

void read_graph(MessageReader message, File& file) {
  while (message.next()) switch (message.field()) {
      case 1:  // node
        file.nodes.push_back(read_node(message.message()));
        break;
      case 2:  // name
        file.graph = message.bytes();
        break;
      case 5:  // initializer
        file.initializers.push_back(read_tensor(message.message()));
        break;
      case 11:  // input
        file.inputs.push_back(read_value(message.message()));
        break;
      case 12:  // output
        file.outputs.push_back(read_value(message.message()));
        break;
      case 13:  // value_info
        file.values.push_back(read_value(message.message()));
        break;
      default:
        break;
    }
}

void read_opset(MessageReader message, File& file) {
  std::string domain;
  std::int64_t version = 1;
  while (message.next()) {
    if (message.field() == 1) domain = message.bytes();
    if (message.field() == 2) version = message.integer();
  }
  if (domain.empty() || domain == "ai.onnx") file.opset = version;
}

std::string name_of_function(MessageReader message) {
  while (message.next())
    if (message.field() == 1) return std::string(message.bytes());
  return {};
}

}  // namespace

File read_file(std::string_view bytes, const std::string& name) {
  if (bytes.starts_with("version https://git-lfs"))
    throw InputError(name + " is a pointer of Git LFS, not the model itself", "fetch it with `git lfs pull`");
  const Origin origin{&name, bytes.data()};
  File file;
  bool has_version = false, has_graph = false;
  MessageReader message(bytes, origin);
  while (message.next()) switch (message.field()) {
      case 1:  // ir_version
        has_version = message.integer() > 0;
        break;
      case 2:  // producer_name
        file.producer = message.bytes();
        break;
      case 7:  // graph
        if (has_graph) message.fail("there are two graphs");
        has_graph = true;
        read_graph(message.message(), file);
        break;
      case 8:  // opset_import
        read_opset(message.message(), file);
        break;
      case 25:  // functions
        file.functions.push_back(name_of_function(message.message()));
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
