// Any bytes are read, or refused with an InputError.
#include <doctest/doctest.h>

#include "models/onnx/import.hpp"
#include "tests/support/checked.hpp"
#include "tests/support/damage.hpp"
#include "tests/support/onnx_writer.hpp"

namespace stagecraft::onnx_bytes_test {
using onnx::Shape;
using test::OnnxWriter;

namespace {

/// A small model with fields of every kind.
std::string sample() {
  OnnxWriter file;
  file.input("x", {"batch", 3, 8, 8}).weights("w", {4, 3, 3, 3}).weights("g", {4}).weights("v", {8, 4});
  file.numbers("sizes", {0, -1, 8}).numbers("two", {2});
  file.node("Conv", {"x", "w"}, "c", {{"pads", Shape{1, 1, 1, 1}}, {"strides", Shape{2, 2}}});
  file.node("BatchNormalization", {"c", "g", "g", "g", "g"}, "n");
  file.node("Relu", {"n"}, "r");
  file.node("Reshape", {"r", "sizes"}, "f");
  file.node("MatMul", {"f", "v"}, "m");
  file.node("Shape", {"m"}, "s");
  file.node("Gather", {"s", "two"}, "d");
  file.node("Range", {"d", "d", "d"}, "e");
  file.nodes("Split", {"m"}, {"a", "b"}, {{"axis", 2}});
  file.node("Mul", {"a", "b"}, "p");
  file.info("p", {"batch", 8, 2});
  file.output(file.node("ReduceMean", {"p"}, "y", {{"axes", Shape{1}}}));
  return file.bytes();
}

/// Whether the bytes were read. Any exception other than InputError ends the test.
bool reads(const std::string& bytes) {
  try {
    onnx::to_yaml(onnx::import_model(bytes, "test.onnx", {.unknown_is_zero = true}));
    return true;
  } catch (const InputError& error) {
    CHECK(!std::string(error.what()).empty());
    return false;
  }
}

}  // namespace

TEST_CASE("onnx: a file that is no model is refused with the byte of the damage") {
  const auto problem = [](const std::string& bytes) {
    return test::input_error_of([&] { onnx::read_file(bytes, "m.onnx"); });
  };
  CHECK(problem("").find("m.onnx is not an ONNX model: it has no graph") != std::string::npos);
  CHECK(problem("schema: model/1\n").find("m.onnx: byte 1") != std::string::npos);
  CHECK(problem("version https://git-lfs.github.com/spec/v1\n").find("git lfs pull") != std::string::npos);
  CHECK(problem(std::string("\x08\x08\x3a\x05\x0a", 5)).find("byte 4: 5 bytes should follow, but 1 are left") !=
        std::string::npos);
  CHECK(problem(std::string(12, '\xff')).find("a number is longer than ten bytes") != std::string::npos);
}

TEST_CASE("onnx: a field of another kind than expected is named with its byte") {
  const auto problem = [](const test::ProtobufMessage& graph) {
    const std::string bytes = test::ProtobufMessage().number(1, 8).message(7, graph).bytes();
    return test::input_error_of([&] { onnx::read_file(bytes, "m.onnx"); });
  };
  using test::ProtobufMessage;
  CHECK(problem(ProtobufMessage().number(2, 1)).find("byte 6: field 2 is neither text nor a message") !=
        std::string::npos);
  CHECK(problem(ProtobufMessage().message(5, ProtobufMessage().text(2, "float"))).find("field 2 is no whole number") !=
        std::string::npos);
  CHECK(problem(ProtobufMessage().message(5, ProtobufMessage().text(4, "seven b")))
            .find("field 4 has 7 bytes, which its numbers do") != std::string::npos);
  CHECK(
      problem(ProtobufMessage().message(5, ProtobufMessage().text(1, "\xff"))).find("the file ends inside a number") !=
      std::string::npos);
}

TEST_CASE("onnx: prefixes of a file are refused") {
  const std::string bytes = sample();
  REQUIRE(reads(bytes));
  int read = 0;
  for (std::size_t size = 0; size < bytes.size(); ++size) read += reads(bytes.substr(0, size)) ? 1 : 0;
  CHECK(read <= 1);  // One prefix is a model: it lacks only the operator version after the graph.
}

TEST_CASE("onnx: ten thousand damaged files are read or refused") {
  const std::string bytes = sample();
  std::mt19937 random(1);
  int read = 0;
  for (int i = 0; i < 10000; ++i) read += reads(test::damaged(bytes, random)) ? 1 : 0;
  CHECK(read > 100);  // Otherwise only the reader itself was tested.
}

}  // namespace stagecraft::onnx_bytes_test
