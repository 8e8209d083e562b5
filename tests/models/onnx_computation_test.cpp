// What the layers of an ONNX file compute, as operations: which nodes become which, and where weights are shared.
#include <doctest/doctest.h>

#include "models/onnx/computation.hpp"
#include "sim/core/text.hpp"
#include "tests/support/onnx_writer.hpp"

namespace stagecraft::onnx_computation_test {
using onnx::Shape;
using onnx::Type;
using test::OnnxAttribute;
using test::OnnxWriter;

namespace {

/// The name and the operations of each layer.
std::vector<std::pair<std::string, Operations>> layers_of(const OnnxWriter& writer, bool tied = true) {
  const std::string bytes = writer.bytes();
  const onnx::File file = onnx::read_file(bytes, "test.onnx");
  const onnx::Graph graph = onnx::analyze_graph(file, onnx::bind_dimensions(file, {}, {}), false);
  const onnx::ImportedLayers layers = onnx::make_layers(graph, 1, false);
  const onnx::Computation computation(graph, file.opset, layers, tied);
  std::vector<std::pair<std::string, Operations>> named;
  for (const LayerId l : layers.model.layers.ids())
    named.emplace_back(layers.model.layers[l].name, computation.of_layer(l));
  return named;
}

/// "layer: operation; operation" for each layer.
std::vector<std::string> computed(const OnnxWriter& writer, bool tied = true) {
  std::vector<std::string> lines;
  for (const auto& [layer, operations] : layers_of(writer, tied)) {
    std::vector<std::string> texts;
    for (const Operation& op : operations) {
      texts.push_back(to_text(op));
      if (op.tensor && op.tensor->weights()) texts.back() += " <" + op.tensor->tie + ">";
    }
    lines.push_back(layer + ": " + join(texts, "; "));
  }
  return lines;
}

using Lines = std::vector<std::string>;

/// Words -> rows of a table, plus positions, which depend on the file alone.
OnnxWriter embedding() {
  OnnxWriter file;
  file.input("ids", {"batch", 3}, Type::Int64);
  file.weights("table", {9, 4}).weights("places", {5, 4}).numbers("here", {0, 1, 2});
  file.node("Gather", {"table", "ids"}, "words");
  file.node("Gather", {"places", "here"}, "place");
  file.output(file.node("Add", {"words", "place"}, "sum"));
  return file;
}

}  // namespace

TEST_CASE("onnx: dense layers compute products, sums and activations") {
  OnnxWriter file;
  file.input("x", {"batch", 8}).weights("w", {8, 16}).weights("v", {4, 16}).weights("b", {4});
  file.node("MatMul", {"x", "w"}, "a");
  file.node("Relu", {"a"}, "r");
  file.output(file.node("Gemm", {"r", "v", "b"}, "y", {{"transB", 1}}));
  CHECK(computed(file) == Lines{"x: input 1x8", "a: MatMul 1x16 of 1x8 and 8x16 <w>", "r: Relu 1x16 of 1x16",
                                "y: Gemm 1x4 of 1x16 and 4x16 <v>; Gemm 1x4 of 1x4 and 4 <b>"});
  CHECK(computed(file, false)[1] == "a: MatMul 1x16 of 1x8 and 8x16 <>");
}

TEST_CASE("onnx: look-ups are embeddings, and parts of weights are computed where they are read") {
  CHECK(computed(embedding()) == Lines{"ids: input 3x1", "words: embedding 3x4 of 9 words without positions",
                                       "sum: Gather 3x4 of 5x4 <places>; Add 1x3x4 of 1x3x4 and 3x4"});
}

TEST_CASE("onnx: heads are views in the layers that read them, and norms are three operations") {
  OnnxWriter file;
  file.input("x", {"batch", 6, 8}).weights("g", {8}).weights("b", {8}).numbers("sizes", {0, 6, 2, 4});
  file.node("LayerNormalization", {"x", "g", "b"}, "n");
  file.node("Reshape", {"n", "sizes"}, "split");
  file.node("Transpose", {"split"}, "q", {{"perm", Shape{0, 2, 1, 3}}});
  file.node("Transpose", {"split"}, "k", {{"perm", Shape{0, 2, 3, 1}}});
  file.node("MatMul", {"q", "k"}, "scores");
  file.output(file.node("Softmax", {"scores"}, "p", {{"axis", -1}}));
  CHECK(computed(file) ==
        Lines{"x: input 6x8",
              "n: LayerNormalization 1x6x8 of 1x6x8; LayerNormalization 1x6x8 of 1x6x8 and 8 <g>; LayerNormalization "
              "1x6x8 of 1x6x8 and 8 <b>",
              "scores: Transpose 1x2x6x4 of 1x6x2x4; Transpose 1x2x4x6 of 1x6x2x4; MatMul 1x2x6x6 of 1x2x6x4 and "
              "1x2x4x6",
              "p: Softmax 1x2x6x6 of 1x2x6x6"});
}

TEST_CASE("onnx: a transposed table is a factor, and ties have its name") {
  OnnxWriter file = embedding();
  file.node("Transpose", {"table"}, "turned", {{"perm", Shape{1, 0}}});
  file.output(file.node("MatMul", {"sum", "turned"}, "scores"));
  CHECK(computed(file).back() == "scores: MatMul 3x9 of 3x4 and 9x4 <table>");
}

TEST_CASE("onnx: masks of whole numbers are ones, and constants have their values") {
  OnnxWriter file;
  file.input("x", {"batch", 4}).input("mask", {"batch", 4}, Type::Int64).weights("w", {4, 4});
  file.node("Constant", {}, "low", {{"value", OnnxWriter::scalar(-10000.0F)}});
  file.node("Constant", {}, "one", {{"value", OnnxWriter::scalar(1.0F)}});
  file.node("Cast", {"mask"}, "open", {{"to", 1}});
  file.node("Sub", {"one", "open"}, "closed");
  file.node("Mul", {"closed", "low"}, "bias");
  file.node("MatMul", {"x", "w"}, "h");
  file.output(file.node("Add", {"h", "bias"}, "y"));
  CHECK(computed(file) == Lines{"x: input 1x4", "mask: Ones 1x4 of one number", "closed: Sub 1x4 of one number and 1x4",
                                "bias: Mul 1x4 of 1x4 and one number", "h: MatMul 1x4 of 1x4 and 4x4 <w>",
                                "y: Add 1x4 of 1x4 and 1x4"});
}

TEST_CASE("onnx: convolutions, pooling and batch norms have their operations") {
  OnnxWriter file;
  file.input("x", {"batch", 3, 9, 9}).weights("k", {4, 3, 3, 3}).weights("b", {4}).weights("g", {4}).weights("h", {4});
  file.reals("m", {0, 0, 0, 0}).reals("v", {1, 1, 1, 1});
  file.node("Conv", {"x", "k", "b"}, "conv", {{"strides", Shape{2, 2}}});
  file.node("BatchNormalization", {"conv", "g", "h", "m", "v"}, "given");
  file.nodes("BatchNormalization", {"given", "g", "h", "m", "v"}, {"own", "mean", "var"}, {{"training_mode", 1}});
  file.node("MaxPool", {"own"}, "pool", {{"kernel_shape", Shape{2, 2}}});
  file.node("GlobalMaxPool", {"pool"}, "largest");
  file.output(file.node("GlobalAveragePool", {"largest"}, "mean of all"));
  CHECK(computed(file) ==
        Lines{"x: input 27x9", "conv: Conv 1x4x4x4 of 1x3x9x9 and 4x3x3x3 <k>; Conv 1x4x4x4 of 1x4x4x4 and 4x1x1 <b>",
              "given: BatchNormalization 1x4x4x4 of 1x4x4x4 and 4x1x1 and 4x1x1 and 4x1x1 <g>; BatchNormalization "
              "1x4x4x4 of 1x4x4x4 and 4x1x1 <h>",
              "own: BatchNormalization 1x4x4x4 of 1x4x4x4 and 4x1x1 <g>; BatchNormalization 1x4x4x4 of 1x4x4x4 and "
              "4x1x1 <h>",
              "pool: MaxPool 1x4x3x3 of 1x4x4x4 by 2x2", "largest: GlobalMaxPool 1x4x1x1 of 1x4x3x3 by 3x3",
              "mean of all: GlobalAveragePool 1x4x1x1 of 1x4x1x1"});
}

TEST_CASE("onnx: activations of networks for images are sums, products, minima and maxima") {
  OnnxWriter file;
  file.input("x", {"batch", 2}).weights("w", {2, 2});
  file.node("MatMul", {"x", "w"}, "m");
  file.node("Clip", {"m"}, "clip", {{"min", 0.0F}, {"max", 6.0F}});
  file.node("HardSwish", {"clip"}, "swish");
  file.node("LeakyRelu", {"swish"}, "leaky");
  file.output(file.node("Max", {"leaky", "m", "x"}, "max"));
  CHECK(computed(file) ==
        Lines{"x: input 1x2", "m: MatMul 1x2 of 1x2 and 2x2 <w>",
              "clip: Clip 1x2 of 1x2 and one number; Clip 1x2 of 1x2 and one number",
              "swish: HardSwish 1x2 of 1x2 and one number; HardSwish 1x2 of 1x2 and one number; HardSwish 1x2 of 1x2 "
              "and one number; HardSwish 1x2 of 1x2 and one number; HardSwish 1x2 of 1x2 and 1x2",
              "leaky: LeakyRelu 1x2 of 1x2 and one number; LeakyRelu 1x2 of 1x2 and 1x2",
              "max: Max 1x2 of 1x2 and 1x2; Max 1x2 of 1x2 and 1x2"});
}

TEST_CASE("onnx: a LeakyRelu is the larger of x and alpha x, or the smaller one if alpha is above 1") {
  const auto function_of = [](float alpha) {
    OnnxWriter writer;
    writer.input("x", {"batch", 2});
    writer.output(writer.node("LeakyRelu", {"x"}, "y", {{"alpha", alpha}}));
    return layers_of(writer).back().second.back().tensor->function;
  };
  CHECK(function_of(0.1F) == TensorFunction::Maximum);
  CHECK(function_of(-1) == TensorFunction::Maximum);
  CHECK(function_of(2) == TensorFunction::Minimum);
}

TEST_CASE("onnx: what nothing computes is an operation without a function") {
  OnnxWriter file;
  file.input("x", {"batch", 3, 8, 8}).weights("k", {3, 4, 3, 3}).weights("g", {4}).weights("m", {4});
  const Shape two{2, 2}, pads{1, 1, 1, 1};
  file.node("ConvTranspose", {"x", "k"}, "up");
  file.node("AveragePool", {"up"}, "partly", {{"kernel_shape", two}, {"ceil_mode", 1}, {"count_include_pad", 1}});
  file.node("MaxPool", {"partly"}, "empty", {{"kernel_shape", Shape{1, 1}}, {"pads", pads}});
  file.node("BatchNormalization", {"empty", "g", "g", "m", "m"}, "n");
  file.numbers("four", {4}).node("Reshape", {file.node("GlobalMaxPool", {"n"}, "scale"), "four"}, "flat");
  file.output(file.node("BatchNormalization", {"n", "flat", "g", "m", "m"}, "scaled", {{"training_mode", 1}}));
  CHECK(computed(file) ==
        Lines{"x: input 24x8", "up: ConvTranspose 1x4x10x10",
              "partly: AveragePool with ceil_mode and count_include_pad (export it with ceil_mode 0) 1x4x9x9",
              "empty: MaxPool with windows of padding alone (export it with smaller pads) 1x4x11x11",
              "n: BatchNormalization without statistics 1x4x11x11",
              "scale: GlobalMaxPool 1x4x1x1 of 1x4x11x11 by 11x11",
              "scaled: BatchNormalization with a computed scale 1x4x11x11"});
}

TEST_CASE("onnx: views have the strides of their numbers") {
  OnnxWriter file;
  file.input("x", {1, 6, 8}).numbers("from", {4}).numbers("to", {0}).numbers("axis", {1}).numbers("step", {-2});
  file.node("Slice", {"x", "from", "to", "axis", "step"}, "s");
  file.output("s");
  const std::string bytes = file.bytes();
  const onnx::File read = onnx::read_file(bytes, "test.onnx");
  const onnx::Graph graph = onnx::analyze_graph(read, onnx::bind_dimensions(read, {}, {}), false);
  const onnx::Tensor& slice = graph.values[graph.steps.back().outputs.front()].tensor;
  CHECK(slice.shape == Shape{1, 2, 8});
  CHECK(slice.offset == 32);
  CHECK(slice.strides == Shape{0, -16, 1});
}

}  // namespace stagecraft::onnx_computation_test
