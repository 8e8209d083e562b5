#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <protozero/pbf_writer.hpp>

#include "models/onnx/file.hpp"

namespace stagecraft::test {

/// A protobuf message; field numbers come from onnx.proto.
class ProtobufMessage {
 public:
  ProtobufMessage& number(std::uint32_t field, std::int64_t value) {
    protozero::pbf_writer(bytes_).add_int64(field, value);
    return *this;
  }
  ProtobufMessage& text(std::uint32_t field, std::string_view value) {
    protozero::pbf_writer(bytes_).add_bytes(field, value.data(), value.size());
    return *this;
  }
  ProtobufMessage& message(std::uint32_t field, const ProtobufMessage& value) { return text(field, value.bytes_); }
  ProtobufMessage& real(std::uint32_t field, float value) {
    protozero::pbf_writer(bytes_).add_float(field, value);
    return *this;
  }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

struct OnnxAttribute {
  ProtobufMessage message;

  OnnxAttribute(std::string_view name, std::int64_t value) { message.text(1, name).number(3, value); }
  OnnxAttribute(std::string_view name, int value) : OnnxAttribute(name, std::int64_t{value}) {}
  OnnxAttribute(std::string_view name, float value) { message.text(1, name).real(2, value); }
  OnnxAttribute(std::string_view name, const char* value) { message.text(1, name).text(4, value); }
  OnnxAttribute(std::string_view name, const onnx::Shape& values) {
    message.text(1, name);
    for (const std::int64_t value : values) message.number(8, value);
  }
  OnnxAttribute(std::string_view name, const ProtobufMessage& tensor) { message.text(1, name).message(5, tensor); }
};

/// A size, or the name of one that is open.
struct OnnxSize {
  std::int64_t size = -1;
  std::string name;

  OnnxSize(std::int64_t s) : size(s) {}  // NOLINT: a shape is written {1, 3, "width"}.
  OnnxSize(int s) : size(s) {}           // NOLINT
  OnnxSize(const char* n) : name(n) {}   // NOLINT
};

/// An ONNX file, piece by piece. Weights have no bytes of their own: they say that these lie elsewhere.
class OnnxWriter {
 public:
  std::int64_t opset = 17;
  std::string function = {};  ///< An operator that the file defines itself.

  OnnxWriter& input(const std::string& name, const std::vector<OnnxSize>& shape, onnx::Type type = onnx::Type::Float) {
    graph_.message(11, value(name, shape, type));
    return *this;
  }
  OnnxWriter& output(const std::string& name) {
    graph_.message(12, ProtobufMessage().text(1, name));
    return *this;
  }
  OnnxWriter& info(const std::string& name, const std::vector<OnnxSize>& shape) {
    graph_.message(13, value(name, shape, onnx::Type::Float));
    return *this;
  }
  OnnxWriter& weights(const std::string& name, const onnx::Shape& shape, onnx::Type type = onnx::Type::Float) {
    graph_.message(5, tensor(name, shape, type).number(14, 1));
    return *this;
  }
  OnnxWriter& numbers(const std::string& name, const onnx::Shape& values) {
    graph_.message(5, whole(name, values));
    return *this;
  }
  OnnxWriter& reals(const std::string& name, const std::vector<float>& values) {
    ProtobufMessage message = tensor(name, {static_cast<std::int64_t>(values.size())}, onnx::Type::Float);
    for (const float value : values) message.real(4, value);
    graph_.message(5, message);
    return *this;
  }
  /// A node called as its first output, which is also its result.
  std::string node(const std::string& type, const std::vector<std::string>& inputs, const std::string& output,
                   const std::vector<OnnxAttribute>& attributes = {}, const std::string& domain = {}) {
    return nodes(type, inputs, {output}, attributes, domain);
  }
  std::string nodes(const std::string& type, const std::vector<std::string>& inputs,
                    const std::vector<std::string>& outputs, const std::vector<OnnxAttribute>& attributes = {},
                    const std::string& domain = {}) {
    ProtobufMessage node;
    for (const std::string& name : inputs) node.text(1, name);
    for (const std::string& name : outputs) node.text(2, name);
    node.text(3, outputs.front()).text(4, type);
    for (const OnnxAttribute& attribute : attributes) node.message(5, attribute.message);
    if (!domain.empty()) node.text(7, domain);
    graph_.message(1, node);
    return outputs.front();
  }
  std::string bytes() const {
    ProtobufMessage graph = graph_;
    graph.text(2, "net");
    const ProtobufMessage version = ProtobufMessage().text(1, "").number(2, opset);
    ProtobufMessage model = ProtobufMessage().number(1, 8).message(7, graph).message(8, version);
    if (!function.empty()) model.message(25, ProtobufMessage().text(1, function));
    return model.bytes();
  }

  static ProtobufMessage whole(const std::string& name, const onnx::Shape& values) {
    ProtobufMessage message = tensor(name, {static_cast<std::int64_t>(values.size())}, onnx::Type::Int64);
    for (const std::int64_t value : values) message.number(7, value);
    return message;
  }
  static ProtobufMessage scalar(std::int64_t value) { return tensor("", {}, onnx::Type::Int64).number(7, value); }
  static ProtobufMessage scalar(float value) { return tensor("", {}, onnx::Type::Float).real(4, value); }

 private:
  static ProtobufMessage tensor(const std::string& name, const onnx::Shape& shape, onnx::Type type) {
    ProtobufMessage message;
    for (const std::int64_t size : shape) message.number(1, size);
    return message.number(2, static_cast<std::int64_t>(type)).text(8, name);
  }
  static ProtobufMessage value(const std::string& name, const std::vector<OnnxSize>& shape, onnx::Type type) {
    ProtobufMessage sizes;
    for (const OnnxSize& size : shape)
      sizes.message(1, size.name.empty() && size.size < 0 ? ProtobufMessage()
                       : size.name.empty()                ? ProtobufMessage().number(1, size.size)
                                                          : ProtobufMessage().text(2, size.name));
    const ProtobufMessage typed = ProtobufMessage().number(1, static_cast<std::int64_t>(type)).message(2, sizes);
    return ProtobufMessage().text(1, name).message(2, ProtobufMessage().message(1, typed));
  }
  ProtobufMessage graph_;
};

}  // namespace stagecraft::test
