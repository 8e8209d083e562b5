// From an ONNX file to layers: open sizes, computed shapes, and the layers that count work.
#include <doctest/doctest.h>

#include "models/onnx/import.hpp"
#include "tests/support/onnx_writer.hpp"
#include "tests/support/presets.hpp"

namespace stagecraft::onnx_import_test {
using onnx::Shape;
using onnx::Type;
using test::OnnxWriter;

namespace {

onnx::ImportedModel import_all(const OnnxWriter& file, const onnx::ImportOptions& options = {}) {
  return onnx::import_model(file.bytes(), "test.onnx", options);
}

ModelGraph import(const OnnxWriter& file, const onnx::ImportOptions& options = {}) {
  return import_all(file, options).model;
}

std::string error_of(const OnnxWriter& file, const onnx::ImportOptions& options = {}) {
  return test::input_error_of([&] { import(file, options); });
}

const Layer& layer(const ModelGraph& model, const std::string& name) {
  const auto id = model.find(name);
  REQUIRE_MESSAGE(id.has_value(), name);
  return model.layers[*id];
}

std::string names(const ModelGraph& model) {
  std::vector<std::string> list;
  for (const Layer& l : model.layers) list.push_back(l.name);
  return join(list, " ");
}

/// x -> Gemm a -> Relu b -> Gemm c.
OnnxWriter mlp(const std::vector<test::OnnxSize>& shape) {
  OnnxWriter file;
  file.input("x", shape).weights("w", {8, 16}).weights("v", {16, 4}).weights("bias", {4});
  file.node("MatMul", {"x", "w"}, "a");
  file.node("Relu", {"a"}, "b");
  file.output(file.node("Gemm", {"b", "v", "bias"}, "c"));
  return file;
}

OnnxWriter product(const std::vector<test::OnnxSize>& shape) {
  OnnxWriter file;
  file.input("x", shape).weights("w", {8, 16});
  file.output(file.node("MatMul", {"x", "w"}, "a"));
  return file;
}

}  // namespace

TEST_CASE("onnx: layers have the amounts of one sample") {
  const ModelGraph model = import(mlp({5, 8}));  // Five samples, as the file says.
  CHECK(names(model) == "x a b c");
  const Layer &x = model.layers[LayerId{0}], &a = model.layers[LayerId{1}], &b = model.layers[LayerId{2}],
              &c = model.layers[LayerId{3}];
  CHECK(x.output.value == 32);
  CHECK(x.forward.value == 0);
  CHECK(a.inputs == std::vector<LayerId>{LayerId{0}});
  CHECK(a.forward.value == 2 * 8 * 16);
  CHECK(a.weight_gradient.value == 2 * 8 * 16);
  CHECK(a.input_gradient.value == 0);  // No layer needs the gradient of the input data.
  CHECK(a.parameters == 128);
  CHECK(a.output.value == 64);
  CHECK(a.stash.value == 32);
  CHECK(b.forward.value == 16);
  CHECK(b.input_gradient.value == 16);
  CHECK(b.weight_gradient.value == 0);
  CHECK(b.stash.value == 0);  // The next layer already stashes its output.
  CHECK(c.input_gradient.value == 2 * 16 * 4);
  CHECK(c.parameters == 68);
  CHECK(c.stash.value == 64);
  CHECK(c.output.value == 16);
  CHECK(model.precision.weight == 4);
}

TEST_CASE("onnx: open sizes count samples or must be given") {
  CHECK(import(mlp({"batch", 8}), {.batch = 3}).layers[LayerId{1}].forward.value == 256);
  CHECK(import(mlp({"rows", 8})).layers[LayerId{1}].forward.value == 256);  // The first dimension counts samples.
  CHECK(import(mlp({test::OnnxSize(-1), 8})).layers[LayerId{1}].forward.value == 256);
  CHECK(import(product({"batch", "sequence", 8}), {.batch = 2, .sizes = {{"sequence", 7}}})
            .layers[LayerId{1}]
            .forward.value == 7 * 256);
  // A name that holds "batch" counts samples wherever it stands; the first dimension does not then.
  CHECK(import(product({"sequence", "batch", 8}), {.sizes = {{"sequence", 7}}}).layers[LayerId{1}].forward.value ==
        7 * 256);
  CHECK(error_of(mlp({"batch", "sequence", 8})) ==
        "0: : the dimension 'sequence' of the input 'x' has no size [give it with --set sequence=N, or in a scenario "
        "as model.sizes.sequence]\n");
  CHECK(error_of(mlp({"batch", "sequence", 8}), {.sizes = {{"seqence", 7}}})
            .find("no dimension of the inputs is called 'seqence' [did you mean 'sequence'?]") != std::string::npos);
  CHECK(error_of(mlp({"batch", test::OnnxSize(-1), 8})).find("the dimension 'x.1'") != std::string::npos);
  CHECK(import(mlp({5, 8}), {.batch = 5}).layers[LayerId{1}].forward.value == 256);
  CHECK(import(mlp({"batch", 8}), {.sizes = {{"batch", 3}}}).layers[LayerId{1}].forward.value == 256);
  CHECK(error_of(mlp({"batch", 8}), {.batch = 2, .sizes = {{"batch", 3}}})
            .find("the dimension 'batch' counts samples: 3 of them, or 2?") != std::string::npos);
  // Neither name says what it counts: both are given, and the second counts samples.
  CHECK(import(product({"t", "b", 8}), {.batch = 4, .sizes = {{"t", 7}, {"b", 4}}}).layers[LayerId{1}].forward.value ==
        7 * 256);
  CHECK(error_of(mlp({5, 8}), {.batch = 4})
            .find("no input has a dimension of 4, the samples said with --batch; 'x' is 5x8") != std::string::npos);
  CHECK(error_of(mlp({"batch", "wide"}), {.sizes = {{"wide", 9}}}).find("1x9 times 8x16") != std::string::npos);
}

TEST_CASE("onnx: shapes that exporters compute from shapes are known") {
  // x of batch x sequence x 8 as heads: Reshape to [batch, sequence, 2, 8 / 2] by Shape, Gather, Div, Concat.
  OnnxWriter file;
  file.input("x", {"batch", "sequence", 8}).weights("w", {8, 8}).numbers("one", {1});
  file.node("MatMul", {"x", "w"}, "a");
  file.node("Shape", {"a"}, "shape");
  for (const int d : {0, 1, 2}) {
    file.node("Constant", {}, "c" + std::to_string(d), {{"value", OnnxWriter::scalar(std::int64_t{d})}});
    file.node("Gather", {"shape", "c" + std::to_string(d)}, "s" + std::to_string(d), {{"axis", 0}});
  }
  file.node("Constant", {}, "heads", {{"value", OnnxWriter::scalar(std::int64_t{2})}});
  file.node("Div", {"s2", "heads"}, "width");
  std::vector<std::string> parts;
  for (const std::string name : {"s0", "s1", "heads", "width"})
    parts.push_back(file.node("Unsqueeze", {name}, name + "_u", {{"axes", Shape{0}}}));
  file.node("Concat", parts, "sizes", {{"axis", 0}});
  file.node("Reshape", {"a", "sizes"}, "split");
  file.node("Transpose", {"split"}, "turned", {{"perm", Shape{0, 2, 3, 1}}});
  file.node("Transpose", {"split"}, "other", {{"perm", Shape{0, 2, 1, 3}}});
  file.output(file.node("MatMul", {"other", "turned"}, "scores"));
  const onnx::ImportedModel imported = import_all(file, {.batch = 3, .sizes = {{"sequence", 5}}});
  CHECK(names(imported.model) == "x a scores");
  CHECK(imported.notes.back() == "MatMul 3x2x5x5");
  const Layer& scores = imported.model.layers.back();
  CHECK(scores.forward.value == 2 * 2 * 5 * 5 * 4);
  CHECK(scores.input_gradient.value == 2 * scores.forward.value);  // Both sides.
  CHECK(scores.weight_gradient.value == 0);
  CHECK(scores.stash.value == 5 * 8 * 4);  // Both are the same numbers.
  CHECK(import(file, {.sizes = {{"sequence", 5}}, .keep_all = true}).layers.size() == 6);
}

TEST_CASE("onnx: arithmetic on shapes is computed") {
  // Range(0, 6, 2) has 3 numbers; Where, ConstantOfShape, Slice, Cast, Mul, Floor and ReduceProd on the way.
  OnnxWriter file;
  file.input("x", {1, 6, 4}).weights("w", {4, 4});
  file.node("MatMul", {"x", "w"}, "a");
  file.node("Shape", {"a"}, "shape");  // 1 6 4
  file.numbers("from", {1}).numbers("to", {3}).numbers("minus", {-1}).numbers("three", {3});
  file.node("Slice", {"shape", "from", "to"}, "last");  // 6 4
  file.node("ReduceProd", {"last"}, "count");           // 24
  file.node("Constant", {}, "half", {{"value", OnnxWriter::scalar(0.4F)}});
  file.node("Cast", {"count"}, "real", {{"to", 1}});
  file.node("Mul", {"real", "half"}, "less");  // 9.6
  file.node("Floor", {"less"}, "floor");       // 9
  file.node("Cast", {"floor"}, "nine", {{"to", 7}});
  file.node("Sub", {"nine", "three"}, "six");
  file.node("ConstantOfShape", {"from"}, "ones", {{"value", OnnxWriter::whole("", {1})}});  // 1
  file.node("Equal", {"six", "minus"}, "is_open");
  file.node("Where", {"is_open", "ones", "six"}, "rows");  // 6
  file.node("Concat", {"rows", "minus"}, "sizes", {{"axis", 0}});
  file.output(file.node("Reshape", {"a", "sizes"}, "y"));
  const onnx::ImportedModel imported = import_all(file, {.keep_all = true});
  CHECK(names(imported.model) == "x a y");
  CHECK(imported.notes.back() == "Reshape 6x4");
}

TEST_CASE("onnx: branches and parts of a tensor decide what is sent") {
  // a (1 x 12) is cut into q, k and v; two branches read parts of it, and meet again.
  OnnxWriter file;
  file.input("x", {1, 4}).weights("w", {4, 12}).weights("u", {4, 4});
  file.node("MatMul", {"x", "w"}, "a");
  file.nodes("Split", {"a"}, {"q", "k", "v"}, {{"axis", 1}});
  file.node("Mul", {"q", "k"}, "left");
  file.node("MatMul", {"v", "u"}, "right");
  file.node("Concat", {"left", "right"}, "both", {{"axis", 1}});
  file.node("Identity", {"both"}, "same");
  file.node("Sqrt", {"right"}, "unused");
  file.output("same");
  const ModelGraph model = import(file);
  CHECK(names(model) == "x a left right both");
  CHECK(layer(model, "a").output.value == 48);
  CHECK(layer(model, "left").inputs == std::vector<LayerId>{LayerId{1}});
  CHECK(layer(model, "left").stash.value == 32);  // Each of q and k for the gradient of the other.
  CHECK(layer(model, "right").stash.value == 16);
  CHECK(layer(model, "both").inputs == std::vector<LayerId>{LayerId{2}, LayerId{3}});
  CHECK(layer(model, "both").output.value == 32);
  OnnxWriter first = OnnxWriter();
  first.input("x", {1, 4}).weights("w", {4, 12}).numbers("zero", {0}).numbers("three", {3}).numbers("one", {1});
  first.node("MatMul", {"x", "w"}, "a");
  first.node("Slice", {"a", "zero", "three", "one"}, "part");
  first.output(first.node("Relu", {"part"}, "y"));
  CHECK(layer(import(first), "a").output.value == 12);  // Three numbers of twelve are read.
}

TEST_CASE("onnx: weights count once, ties are found, and constants are no weights") {
  // An embedding whose table makes the scores as well; a mask, a scalar and running statistics are no weights.
  OnnxWriter file;
  file.input("ids", {1, 6}, Type::Int64).weights("table", {100, 8}).weights("bias", {100});
  file.weights("gamma", {6}).weights("beta", {6}).weights("mean", {6}).weights("var", {6}).weights("unread", {99});
  file.weights("mask", {6, 8}, Type::Bool).weights("scale", {});
  file.node("Gather", {"table", "ids"}, "words");
  file.node("BatchNormalization", {"words", "gamma", "beta", "mean", "var"}, "norm");
  file.node("Where", {"mask", "norm", "scale"}, "masked");
  file.node("Mul", {"masked", "scale"}, "scaled");
  file.node("Transpose", {"table"}, "turned", {{"perm", Shape{1, 0}}});
  file.node("MatMul", {"scaled", "turned"}, "scores");
  file.output(file.node("Add", {"scores", "bias"}, "y"));
  const ModelGraph model = import(file);
  CHECK(names(model) == "ids words norm masked scaled scores y");
  CHECK(model.parameters() == 800 + 12 + 100);
  CHECK(layer(model, "words").parameters == 800);
  CHECK(layer(model, "words").tie == "table");
  CHECK(layer(model, "words").forward.value == 0);
  CHECK(layer(model, "words").weight_gradient.value == 0);
  CHECK(layer(model, "words").stash.value == 48);  // Six words of 64 bits.
  CHECK(layer(model, "scores").parameters == 0);
  CHECK(layer(model, "scores").tie == "table");
  CHECK(layer(model, "scores").weight_gradient.value == 2 * 6 * 8 * 100);
  CHECK(layer(model, "norm").parameters == 12);
  CHECK(layer(model, "scaled").weight_gradient.value == 0);
  CHECK(layer(model, "scaled").stash.value == 0);  // The factor is not learned.
  CHECK(layer(model, "y").parameters == 100);
}

TEST_CASE("onnx: the number format of the file is the precision") {
  OnnxWriter half;
  half.input("x", {1, 8}, Type::Float16).weights("w", {8, 16}, Type::Float16);
  half.output(half.node("MatMul", {"x", "w"}, "y"));
  CHECK(import(half).precision.weight == 2);
  CHECK(import(half).layers.back().output.value == 32);
}

TEST_CASE("onnx: tensors that are too large are refused") {
  const auto problem_of = [](const std::vector<std::int64_t>& shape) {
    OnnxWriter file;
    file.input("x", {shape.begin(), shape.end()});
    file.output(file.node("Relu", {"x"}, "y"));
    return error_of(file);
  };
  CHECK(problem_of({1 << 30, 1 << 30}).find("the input 'x' has 1.15e+18 numbers; 1e+15 are the most") !=
        std::string::npos);
  CHECK(problem_of(std::vector<std::int64_t>(65, 1)).find("the input 'x' has 65 dimensions; 64 are the most") !=
        std::string::npos);
  OnnxWriter file;
  file.input("x", {1 << 25, 1}).input("y", {1, 1 << 25});
  file.output(file.node("MatMul", {"x", "y"}, "z"));
  CHECK(error_of(file).find("it makes 1.13e+15 numbers; 1e+15 are the most") != std::string::npos);
}

TEST_CASE("onnx: unknown operators are refused, or count as no work if asked") {
  OnnxWriter file;
  file.input("x", {1, 8}).weights("w", {8, 4});
  file.node("Rellu", {"x"}, "r");
  file.node("Mystery", {"r"}, "m", {}, "my.domain");
  file.output(file.node("MatMul", {"m", "w"}, "y"));
  const std::string error = error_of(file);
  CHECK(error.find("the operator 'Rellu' is not known; 1 node of it, the first 'r' [did you mean 'Relu'?") !=
        std::string::npos);
  CHECK(error.find("the operator 'my.domain.Mystery' is not known") != std::string::npos);
  CHECK(error_of(file, {.unknown_is_zero = true}).find("the file has no shape for 'r'") != std::string::npos);
  file.function = "Mystery";
  CHECK(error_of(file).find("the file defines it itself; onnx.inliner") != std::string::npos);
  file.info("r", {1, 8}).info("m", {1, 8});
  const onnx::ImportedModel imported = import_all(file, {.unknown_is_zero = true});
  REQUIRE(imported.warnings.size() == 2);
  CHECK(imported.warnings[0].find("'Rellu' is not known; 1 node of it, the first 'r'; it counts as no work") !=
        std::string::npos);
  CHECK(layer(imported.model, "r").forward.value == 0);
  CHECK(layer(imported.model, "y").forward.value == 64);
}

TEST_CASE("onnx: shapes in the file that contradict its operators are a warning") {
  OnnxWriter file = mlp({"batch", 8});
  file.info("b", {"batch", 17}).info("a", {"batch", 16}).info("c", {"elsewhere", 4});
  const onnx::ImportedModel imported = import_all(file);
  REQUIRE(imported.warnings.size() == 1);
  CHECK(imported.warnings[0] ==
        "1 shape in the file is other than its operators make, the first: 'b' is 1x16, not 1x17");
}

TEST_CASE("onnx: invalid graphs are refused") {
  OnnxWriter unordered;
  unordered.input("x", {1, 8});
  unordered.node("Relu", {"b"}, "a");
  unordered.output(unordered.node("Relu", {"x"}, "b"));
  CHECK(error_of(unordered).find("reads 'b', which no node before it writes") != std::string::npos);
  OnnxWriter twice;
  twice.input("x", {1, 8});
  twice.node("Relu", {"x"}, "a");
  twice.output(twice.node("Relu", {"x"}, "a"));
  CHECK(error_of(twice).find("two things in the graph are called 'a'") != std::string::npos);
  OnnxWriter nothing;
  nothing.input("x", {1, 8});
  nothing.output(nothing.node("Shape", {"x"}, "y"));
  CHECK(error_of(nothing).find("no output of the graph depends on its inputs") != std::string::npos);
  CHECK(error_of(OnnxWriter()).find("the graph has no inputs") != std::string::npos);
  OnnxWriter running;
  running.input("x", {1, 8}).input("shape", {2}, Type::Int64);
  running.output(running.node("Reshape", {"x", "shape"}, "y"));
  CHECK(error_of(running).find("its input 1 ('shape') decides on a shape, but is only known when the model runs") !=
        std::string::npos);
}

TEST_CASE("onnx: the model file reads back to the same model") {
  OnnxWriter file = mlp({1, 8});
  file.weights("e", {9, 3}).input("null", {1, 2}, Type::Int64);
  file.node("Gather", {"e", "null"}, "a: \"b\", [c\\\n\xff");
  file.node("Gather", {"e", "null"}, "a: \"b\", [c\\\n\xfe");
  file.node("Concat", {"a: \"b\", [c\\\n\xff", "a: \"b\", [c\\\n\xfe"}, "1.5", {{"axis", 1}});
  file.output("1.5");
  const onnx::ImportedModel imported = import_all(file);
  config::Problems problems;
  const config::Value tree = config::parse_yaml(onnx::to_yaml(imported), "model.yaml", problems);
  problems.throw_if_any();
  const ModelGraph again = test::model_of(tree);
  REQUIRE(again.layers.size() == imported.model.layers.size());
  for (const LayerId l : again.layers.ids()) {
    const Layer &a = imported.model.layers[l], &b = again.layers[l];
    CHECK(a.name == b.name);
    CHECK(a.inputs == b.inputs);
    CHECK(a.forward == b.forward);
    CHECK(a.input_gradient == b.input_gradient);
    CHECK(a.weight_gradient == b.weight_gradient);
    CHECK(a.parameters == b.parameters);
    CHECK(a.output == b.output);
    CHECK(a.stash == b.stash);
    CHECK(a.tie == b.tie);
  }
  CHECK(again.layers[*again.find("a: \"b\", [c\\___1")].tie == "e");
}

}  // namespace stagecraft::onnx_import_test
