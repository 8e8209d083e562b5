// Each operator alone: its output, its forward work and its gradients, computed by hand.
#include <doctest/doctest.h>

#include <fmt/format.h>

#include "models/onnx/graph.hpp"
#include "tests/support/checked.hpp"
#include "tests/support/onnx_writer.hpp"

namespace stagecraft::onnx_operators_test {
using onnx::Shape;
using test::OnnxWriter;

namespace {

struct Case {
  std::string type;
  std::vector<Shape> inputs;  ///< Floats; the first is data, the others are weights.
  std::vector<test::OnnxAttribute> attributes = {};
  std::string domain = {};
  std::int64_t opset = 17;
  std::vector<Shape> numbers = {};  ///< Constant integer inputs, after the other inputs.
  int outputs = 1;
};

onnx::Graph graph_of(const Case& c) {
  OnnxWriter file;
  file.opset = c.opset;
  std::vector<std::string> names, outputs;
  for (std::size_t i = 0; i < c.inputs.size(); ++i) {
    names.push_back("i" + std::to_string(i));
    if (i == 0)
      file.input(names.back(), {c.inputs[i].begin(), c.inputs[i].end()});
    else
      file.weights(names.back(), c.inputs[i]);
  }
  for (const Shape& values : c.numbers) {
    names.push_back("n" + std::to_string(names.size()));
    file.numbers(names.back(), values);
  }
  for (int o = 0; o < c.outputs; ++o) outputs.push_back("y" + std::to_string(o));
  file.output(file.nodes(c.type, names, outputs, c.attributes, c.domain));
  const std::string bytes = file.bytes();
  const onnx::File read = onnx::read_file(bytes, "test.onnx");
  return onnx::analyze_graph(read, onnx::bind_dimensions(read, {}, {}), false);
}

/// "2x3, 12 forward; 5 6 -": the shape of each output, the forward work, and the work of each input's gradient.
std::string result_of(const Case& c) {
  const onnx::Graph graph = graph_of(c);
  const onnx::Step& step = graph.steps.back();
  std::vector<std::string> shapes;
  for (const int id : step.outputs) shapes.push_back(onnx::to_text(graph.values[id].tensor.shape));
  std::string text = fmt::format("{}, {} forward;", fmt::join(shapes, " "), step.work.forward);
  for (const auto& gradient : step.work.gradients) text += gradient ? fmt::format(" {}", gradient->work) : " -";
  return text;
}

std::string error_of(const Case& c) {
  return test::input_error_of([&] { graph_of(c); });
}

}  // namespace

TEST_CASE("onnx: matrix products have their shapes and flops") {
  CHECK(result_of({"MatMul", {{2, 3, 4}, {4, 5}}}) == "2x3x5, 240 forward; 240 240");  // 2 * 30 * 4
  CHECK(result_of({"MatMul", {{7, 1, 2, 4}, {3, 4, 5}}}) == "7x3x2x5, 1680 forward; 1680 1680");
  CHECK(result_of({"MatMul", {{4}, {4}}}) == "scalar, 8 forward; 8 8");
  CHECK(result_of({"Gemm", {{2, 4}, {5, 4}, {5}}, {{"transB", 1}}}) == "2x5, 80 forward; 80 80 0");
  CHECK(result_of({"Gemm", {{4, 2}, {4, 5}}, {{"transA", 1}}}) == "2x5, 80 forward; 80 80");
  CHECK(result_of({"Einsum", {{2, 3, 4}, {2, 5, 4}}, {{"equation", "bik, bjk -> bij"}}}) ==
        "2x3x5, 240 forward; 240 240");
  CHECK(result_of({"FusedMatMul", {{2, 3, 4}, {5, 4}}, {{"transB", 1}}, "com.microsoft"}) ==
        "2x3x5, 240 forward; 240 240");
  CHECK(error_of({"MatMul", {{2, 3}, {4, 5}}}).find("MatMul 'y0': 2x3 times 4x5") != std::string::npos);
  CHECK(error_of({"Gemm", {{2, 3, 4}, {4, 5}}}).find("2x3x4 times 4x5") != std::string::npos);
}

TEST_CASE("onnx: convolutions and pooling have their shapes and flops") {
  // ResNet's first: 112 x 112 x 64 numbers, each of 7 x 7 x 3 products.
  CHECK(result_of({"Conv",
                   {{1, 3, 224, 224}, {64, 3, 7, 7}},
                   {{"kernel_shape", Shape{7, 7}}, {"strides", Shape{2, 2}}, {"pads", Shape{3, 3, 3, 3}}}}) ==
        "1x64x112x112, 236027904 forward; 236027904 236027904");
  CHECK(result_of({"Conv", {{1, 8, 10}, {8, 1, 3}, {8}}, {{"group", 8}, {"dilations", Shape{2}}}}) ==
        "1x8x6, 288 forward; 288 288 0");
  CHECK(result_of({"Conv", {{1, 1, 7, 8}, {1, 1, 3, 3}}, {{"auto_pad", "SAME_UPPER"}, {"strides", Shape{2, 2}}}}) ==
        "1x1x4x4, 288 forward; 288 288");
  // 4 x 4 pixels of 2 channels, each spread by 3 x 3 into 5 channels: 2 * 32 * 9 * 5; side (4 - 1) 2 + 3 - 2 + 1 = 8.
  CHECK(result_of({"ConvTranspose",
                   {{1, 2, 4, 4}, {2, 5, 3, 3}},
                   {{"strides", Shape{2, 2}}, {"pads", Shape{1, 1, 1, 1}}, {"output_padding", Shape{1, 1}}}}) ==
        "1x5x8x8, 2880 forward; 2880 2880");
  CHECK(result_of({"MaxPool", {{1, 2, 5, 5}}, {{"kernel_shape", Shape{3, 3}}, {"strides", Shape{2, 2}}}}) ==
        "1x2x2x2, 72 forward; 50");
  CHECK(result_of({"AveragePool",
                   {{1, 2, 5, 5}},
                   {{"kernel_shape", Shape{2, 2}}, {"strides", Shape{2, 2}}, {"ceil_mode", 1}}}) ==
        "1x2x3x3, 72 forward; 50");
  CHECK(result_of({"GlobalAveragePool", {{2, 3, 5, 7}}}) == "2x3x1x1, 210 forward; 210");
  CHECK(error_of({"Conv", {{1, 3, 8, 8}, {4, 2, 3, 3}}}).find("weights of 4x2x3x3 on an input of 1x3x8x8") !=
        std::string::npos);
  CHECK(error_of({"MaxPool", {{1, 1, 2, 2}}, {{"kernel_shape", Shape{3, 3}}}}).find("does not fit") !=
        std::string::npos);
  CHECK(error_of({"MaxPool", {{1, 1, 2, 2}}, {{"kernel_shape", Shape{1, 1}}, {"strides", Shape{0, 1}}}})
            .find("strides has the number 0") != std::string::npos);
}

TEST_CASE("onnx: wrong sizes of windows and groups are refused with what to write instead") {
  const auto error = [](std::vector<Shape> inputs, const test::OnnxAttribute& attribute) {
    return error_of({"Conv", std::move(inputs), {attribute}});
  };
  const Shape image{1, 4, 8, 8}, weights{4, 4, 3, 3};
  const auto refused = [&](const test::OnnxAttribute& attribute, const std::string& message, const std::string& help) {
    const std::string text = error({image, weights}, attribute);
    CAPTURE(text);
    CHECK(text.find(message) != std::string::npos);
    CHECK(text.find(help) != std::string::npos);
  };
  refused({"strides", Shape{0, 1}}, "strides has the number 0", "use numbers from 1 to 1073741824");
  refused({"dilations", Shape{1, -1}}, "dilations has the number -1", "use numbers from 1 to 1073741824");
  refused({"pads", Shape{1, 1, -1, 0}}, "pads has the number -1",
          "use numbers from 0 to 1073741824; instead of a negative padding, cut the input with a Slice");
  refused({"strides", Shape{2}}, "strides has 1 number, not 2",
          "give one number for each dimension after the channels");
  refused({"pads", Shape{1, 1}}, "pads has 2 numbers, not 4", "give the padding before each dimension");
  refused({"group", 3}, "3 groups of 4 channels", "use a `group` that divides the channels of the input");
  refused({"group", 0}, "0 groups of 4 channels", "use a `group` that divides the channels of the input");
  CHECK(error({image, {3, 2, 3, 3}}, {"group", 2}).find("`group` divides the first size of the weights") !=
        std::string::npos);
}

TEST_CASE("onnx: norms, softmax and activations have their flops") {
  CHECK(result_of({"BatchNormalization", {{2, 3, 4, 4}, {3}, {3}, {3}, {3}}}) == "2x3x4x4, 384 forward; 384 384 0");
  CHECK(result_of({"LayerNormalization", {{2, 6, 8}, {8}, {8}}, {}, {}, 17, {}, 3}) ==
        "2x6x8 2x6x1 2x6x1, 480 forward; 480 480 0");
  CHECK(result_of({"InstanceNormalization", {{2, 3, 4}, {3}, {3}}}) == "2x3x4, 120 forward; 120 120 0");
  CHECK(result_of({"Softmax", {{2, 10}}}) == "2x10, 100 forward; 80");
  CHECK(result_of({"Relu", {{3, 4}}}) == "3x4, 12 forward; 12");
  CHECK(result_of({"Sigmoid", {{10}}}) == "10, 40 forward; 30");
  CHECK(result_of({"Gelu", {{10}}, {}, {}, 20}) == "10, 50 forward; 110");
  CHECK(result_of({"Gelu", {{10}}, {{"approximate", "tanh"}}, {}, 20}) == "10, 90 forward; 110");
  CHECK(result_of({"PRelu", {{2, 3}, {3}}}) == "2x3, 12 forward; 12 12");
}

TEST_CASE("onnx: elementwise operators have their flops, and the gradient of a broadcast is a sum") {
  CHECK(result_of({"Add", {{2, 3}, {2, 3}}}) == "2x3, 6 forward; 0 0");
  CHECK(result_of({"Add", {{2, 3}, {3}}}) == "2x3, 6 forward; 0 6");
  CHECK(result_of({"Mul", {{2, 1}, {3}}}) == "2x3, 6 forward; 12 12");
  CHECK(result_of({"Div", {{4}, {4}}}) == "4, 4 forward; 4 12");
  CHECK(result_of({"Max", {{2, 3}, {3}, {1}}}) == "2x3, 12 forward; 6 12 12");
  CHECK(result_of({"Equal", {{2, 3}, {3}}}) == "2x3, 6 forward;");
  CHECK(error_of({"Add", {{2, 3}, {2, 2}}}).find("2x3 and 2x2 do not fit together") != std::string::npos);
  CHECK(error_of({"Sub", {{2, 3}}}).find("input 1 is missing") != std::string::npos);
}

TEST_CASE("onnx: reductions have their shapes and flops") {
  CHECK(result_of({"ReduceMean", {{2, 3, 4}}, {{"axes", Shape{-1}}}}) == "2x3x1, 24 forward; 24");
  CHECK(result_of({"ReduceMean", {{2, 3, 4}}, {{"axes", Shape{1, 2}}, {"keepdims", 0}}}) == "2, 24 forward; 24");
  CHECK(result_of({"ReduceSum", {{2, 3, 4}}, {{"keepdims", 0}}}) == "scalar, 24 forward; 24");
  CHECK(result_of({"ReduceL2", {{2, 3}}, {}, {}, 18, {{1}}}) == "2x1, 12 forward; 6");
  CHECK(result_of({"ArgMax", {{2, 3}}, {{"axis", 1}}}) == "2x1, 6 forward;");
  CHECK(result_of({"TopK", {{2, 9}}, {}, {}, 17, {{4}}, 2}) == "2x4 2x4, 18 forward; 0");
  CHECK(error_of({"ReduceMean", {{2, 3}}, {{"axes", Shape{2}}}}).find("axis 2 of 2 dimensions") != std::string::npos);
}

TEST_CASE("onnx: recurrent layers and attentions have their shapes and flops") {
  // 5 steps of 2 samples, 3 inputs, width 4: T B (8h(i + h) + 30h) = 10 (8 * 4 * 7 + 120) = 3440, in two directions.
  CHECK(result_of({"LSTM", {{5, 2, 3}, {2, 16, 3}, {2, 16, 4}, {2, 32}}, {{"hidden_size", 4}}, {}, 17, {}, 3}) ==
        "5x2x2x4 2x2x4 2x2x4, 6880 forward; 6880 1920 4960 0");
  // T B (6h(i + h) + 20h) = 10 (6 * 4 * 7 + 80).
  CHECK(result_of({"GRU", {{5, 2, 3}, {1, 12, 3}, {1, 12, 4}}, {{"hidden_size", 4}}}) ==
        "5x1x2x4, 2480 forward; 2480 720 1760 0");
  CHECK(result_of({"RNN", {{5, 2, 3}, {1, 4, 3}, {1, 4, 4}}, {{"hidden_size", 4}}}) ==
        "5x1x2x4, 720 forward; 720 240 480 0");
  // Two heads of 3 over 4 rows of one sample: scores 2 * 16; products 4 * 3 each, softmax 5. Projection 2 * 4 * 6 * 18.
  CHECK(result_of({"Attention", {{1, 4, 6}, {6, 18}, {18}}, {{"num_heads", 2}}, "com.microsoft"}) ==
        "1x4x6, 1408 forward; 1952 864 0");
  CHECK(result_of({"Attention", {{1, 2, 4, 3}, {1, 2, 5, 3}, {1, 2, 5, 3}}, {}, {}, 23}) ==
        "1x2x4x3, 680 forward; 680 240 240");
}

TEST_CASE("onnx: attention may have a bias; earlier tokens are refused") {
  const Shape bias{1, 2, 4, 4}, past{1, 2, 7, 3};
  std::vector<Shape> inputs{{1, 4, 6}, {1, 4, 6}, {1, 4, 6}, {18}, {1}, bias};
  // As above without the projection: 2 heads of 3 over 4 rows, 16 scores of 4 * 3 + 5 operations each.
  CHECK(result_of({"MultiHeadAttention", inputs, {{"num_heads", 2}}, "com.microsoft"}).find("1x4x6, 544 forward") == 0);
  inputs.insert(inputs.end(), {past, past});
  CHECK(error_of({"MultiHeadAttention", inputs, {{"num_heads", 2}}, "com.microsoft"}).find("earlier tokens") !=
        std::string::npos);
  CHECK(error_of({"Attention", {{1, 4, 6}, {6, 18}, {18}, {1}, {2, 1, 2, 7, 3}}, {{"num_heads", 2}}, "com.microsoft"})
            .find("earlier tokens") != std::string::npos);
  const Shape q{1, 2, 4, 3}, k{1, 2, 5, 3};
  CHECK(error_of({"Attention", {q, k, k, {4, 5}, k, k}, {}, {}, 23}).find("earlier tokens") != std::string::npos);
}

TEST_CASE("onnx: views and selections do no arithmetic") {
  CHECK(result_of({"Reshape", {{2, 3, 4}}, {}, {}, 17, {{0, -1}}}) == "2x12, 0 forward; 0");
  CHECK(result_of({"Flatten", {{2, 3, 4}}}) == "2x12, 0 forward; 0");
  CHECK(result_of({"Transpose", {{2, 3, 4}}, {{"perm", Shape{0, 2, 1}}}}) == "2x4x3, 0 forward; 0");
  CHECK(result_of({"Transpose", {{2, 3, 4}}}) == "4x3x2, 0 forward; 0");
  CHECK(result_of({"Squeeze", {{2, 1, 4, 1}}, {}, {}, 17, {{-1}}}) == "2x1x4, 0 forward; 0");
  CHECK(result_of({"Squeeze", {{2, 1, 4, 1}}}) == "2x4, 0 forward; 0");
  CHECK(result_of({"Unsqueeze", {{2, 4}}, {{"axes", Shape{0, 2}}}, {}, 11}) == "1x2x1x4, 0 forward; 0");
  CHECK(result_of({"Slice", {{2, 10}}, {}, {}, 17, {{8}, {-100}, {1}, {-3}}}) == "2x3, 0 forward; 0");  // 8, 5, 2.
  CHECK(result_of({"Slice", {{2, 10}}, {{"starts", Shape{2}}, {"ends", Shape{1000}}, {"axes", Shape{1}}}, {}, 9}) ==
        "2x8, 0 forward; 0");
  CHECK(result_of({"Split", {{2, 10}}, {{"axis", 1}}, {}, 17, {{3, 7}}, 2}) == "2x3 2x7, 0 forward; 0");
  CHECK(result_of({"Split", {{2, 10}}, {{"axis", 1}}, {}, 18, {}, 3}) == "2x4 2x4 2x2, 0 forward; 0");
  CHECK(result_of({"Expand", {{2, 1}}, {}, {}, 17, {{3, 1, 5}}}) == "3x2x5, 0 forward; 0");
  CHECK(result_of({"Tile", {{2, 3}}, {}, {}, 17, {{1, 4}}}) == "2x12, 0 forward; 0");
  CHECK(result_of({"Pad", {{2, 3}}, {}, {}, 17, {{0, 1, 0, 2}}}) == "2x6, 0 forward; 0");
  CHECK(result_of({"DepthToSpace", {{1, 8, 2, 3}}, {{"blocksize", 2}}}) == "1x2x4x6, 0 forward; 0");
  CHECK(result_of({"Gather", {{5, 6, 7}}, {{"axis", 1}}, {}, 17, {{0, 2}}}) == "5x2x7, 0 forward; 0");
  CHECK(result_of({"Concat", {{2, 3}, {2, 4}}, {{"axis", -1}}}) == "2x7, 0 forward; 0 0");
  CHECK(result_of({"Resize", {{1, 2, 4, 4}, {0}, {0}}, {{"mode", "linear"}}, {}, 17, {{1, 2, 8, 8}}}) ==
        "1x2x8x8, 1024 forward; 1024");  // Two operations for each of 2 x 2 neighbors.
  CHECK(error_of({"Reshape", {{2, 3}}, {}, {}, 17, {{4, 2}}}).find("2x3 cannot be read as 4x2") != std::string::npos);
  CHECK(error_of({"Split", {{2, 10}}, {{"axis", 1}}, {}, 17, {{3, 3}}, 2}).find("a dimension of 10 is not 3 + 3") !=
        std::string::npos);
  CHECK(error_of({"Transpose", {{2, 3}}, {{"perm", Shape{0, 0}}}}).find("names the dimension 0 twice") !=
        std::string::npos);
}

}  // namespace stagecraft::onnx_operators_test
