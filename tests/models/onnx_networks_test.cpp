// Whole networks as exporters write them, compared with their builders: ResNet-50 and BERT base.
#include <doctest/doctest.h>

#include <functional>

#include "models/onnx/import.hpp"
#include "tests/support/onnx_writer.hpp"
#include "tests/support/presets.hpp"

namespace stagecraft::onnx_networks_test {
using onnx::Shape;
using onnx::Type;
using test::OnnxWriter;

namespace {

double sum(const ModelGraph& model, Flops Layer::*amount, const std::function<bool(const Layer&)>& counts) {
  double total = 0;
  for (const Layer& layer : model.layers)
    if (counts(layer)) total += (layer.*amount).value;
  return total;
}

/// He et al., Deep Residual Learning for Image Recognition, CVPR 2016, table 1, 50 layers.
class ResNet {
 public:
  ResNet() {
    file_.input("image", {"batch", 3, 224, 224});
    std::string x = convolution("conv1", "image", 3, 64, 7, 2, true);
    x = file_.node("MaxPool", {x}, "pool",
                   {{"kernel_shape", Shape{3, 3}}, {"strides", Shape{2, 2}}, {"pads", Shape{1, 1, 1, 1}}});
    int channels = 64, stage = 0;
    for (const int blocks : {3, 4, 6, 3}) {
      const int narrow = 64 << stage;
      for (int b = 0; b < blocks; ++b) {
        x = bottleneck("s" + std::to_string(stage) + "b" + std::to_string(b), x, channels, narrow,
                       b == 0 && stage > 0 ? 2 : 1);
        channels = 4 * narrow;
      }
      ++stage;
    }
    x = file_.node("GlobalAveragePool", {x}, "mean");
    x = file_.node("Flatten", {x}, "flat");
    file_.weights("fc.w", {1000, 2048}).weights("fc.b", {1000});
    file_.output(file_.node("Gemm", {x, "fc.w", "fc.b"}, "fc", {{"transB", 1}}));
  }
  std::string bytes() const { return file_.bytes(); }

 private:
  std::string convolution(const std::string& name, const std::string& x, int from, int to, int kernel, int stride,
                          bool relu) {
    const std::int64_t pad = kernel / 2;
    file_.weights(name + ".w", {to, from, kernel, kernel});
    for (const char* parameter : {".gamma", ".beta", ".mean", ".var"}) file_.weights(name + parameter, {to});
    const std::string c = file_.node("Conv", {x, name + ".w"}, name,
                                     {{"kernel_shape", Shape{kernel, kernel}},
                                      {"strides", Shape{stride, stride}},
                                      {"pads", Shape{pad, pad, pad, pad}}});
    const std::string n = file_.node("BatchNormalization",
                                     {c, name + ".gamma", name + ".beta", name + ".mean", name + ".var"}, name + ".bn");
    return relu ? file_.node("Relu", {n}, name + ".relu") : n;
  }
  std::string bottleneck(const std::string& name, const std::string& x, int channels, int narrow, int stride) {
    const std::string inner = convolution(name + "c1", x, channels, narrow, 1, 1, true);
    const std::string middle = convolution(name + "c2", inner, narrow, narrow, 3, stride, true);
    const std::string outer = convolution(name + "c3", middle, narrow, 4 * narrow, 1, 1, false);
    const std::string past =
        channels == 4 * narrow ? x : convolution(name + "down", x, channels, 4 * narrow, 1, stride, false);
    return file_.node("Relu", {file_.node("Add", {outer, past}, name + ".add")}, name + ".addrelu");
  }
  OnnxWriter file_;
};

/// Devlin et al., NAACL 2019, as PyTorch exports it: norms and GELU in pieces, heads by Reshape to computed sizes.
class Bert {
 public:
  Bert() {
    file_.opset = 14;
    for (const char* name : {"ids", "segments"}) file_.input(name, {"batch", "sequence"}, Type::Int64);
    file_.input("mask", {"batch", "sequence"});
    file_.weights("words", {30522, 768}).weights("places", {512, 768}).weights("kinds", {2, 768});
    constant("two", 2.0F);
    constant("one", 1.0F);
    constant("epsilon", 1e-12F);
    constant("half", 0.5F);
    constant("root", 1.4142135F);
    constant("eight", 8.0F);
    constant("low", -10000.0F);
    file_.numbers("zero", {0}).numbers("first", {1}).numbers("mask_axes", {1, 2});
    std::string x = embeddings();
    const std::string open = file_.node("Unsqueeze", {"mask", "mask_axes"}, "wide_mask");
    bias_ = file_.node("Mul", {file_.node("Sub", {"one", open}, "closed"), "low"}, "mask_bias");
    for (int l = 0; l < 12; ++l) x = layer("l" + std::to_string(l), x);
    file_.node("Constant", {}, "cls", {{"value", OnnxWriter::scalar(std::int64_t{0})}});
    const std::string top = file_.node("Gather", {x, "cls"}, "top", {{"axis", 1}});
    file_.weights("pool.w", {768, 768}).weights("pool.b", {768});
    file_.output(x).output(file_.node("Tanh", {file_.node("Gemm", {top, "pool.w", "pool.b"}, "pool")}, "pooled"));
  }
  std::string bytes() const { return file_.bytes(); }

 private:
  void constant(const std::string& name, float value) {
    file_.node("Constant", {}, name, {{"value", OnnxWriter::scalar(value)}});
  }
  std::string size(const std::string& input, int axis, const std::string& name) {
    file_.node("Shape", {input}, name + ".shape");
    file_.node("Constant", {}, name + ".axis", {{"value", OnnxWriter::scalar(std::int64_t{axis})}});
    file_.node("Gather", {name + ".shape", name + ".axis"}, name + ".size");
    return file_.node("Unsqueeze", {name + ".size", "zero"}, name);
  }
  std::string embeddings() {
    Shape numbers(512);
    for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<std::int64_t>(i);
    file_.numbers("all", numbers);
    file_.node("Slice", {"all", "zero", size("ids", 1, "tokens"), "zero"}, "here");
    file_.node("Gather", {"places", "here"}, "place");
    file_.node("Gather", {"words", "ids"}, "word");
    file_.node("Gather", {"kinds", "segments"}, "kind");
    file_.node("Add", {"word", "kind"}, "both");
    return norm("embed", file_.node("Add", {"both", "place"}, "all_three"));
  }
  std::string norm(const std::string& name, const std::string& x) {
    const std::string n = name + ".norm.";
    file_.weights(n + "w", {768}).weights(n + "b", {768});
    const auto mean = [&](const std::string& input, const std::string& as) {
      return file_.node("ReduceMean", {input}, n + as, {{"axes", Shape{-1}}});
    };
    const std::string difference = file_.node("Sub", {x, mean(x, "mean")}, n + "difference");
    const std::string square = file_.node("Pow", {difference, "two"}, n + "square");
    const std::string safe = file_.node("Add", {mean(square, "variance"), "epsilon"}, n + "safe");
    const std::string quotient = file_.node("Div", {difference, file_.node("Sqrt", {safe}, n + "deviation")}, n + "q");
    return file_.node("Add", {file_.node("Mul", {quotient, n + "w"}, n + "scaled"), n + "b"}, n + "out");
  }
  std::string linear(const std::string& name, const std::string& x, int from, int to) {
    file_.weights(name + ".w", {from, to}).weights(name + ".b", {to});
    return file_.node("Add", {file_.node("MatMul", {x, name + ".w"}, name), name + ".b"}, name + ".biased");
  }
  std::string heads(const std::string& name, const std::string& x, const Shape& order) {
    file_.numbers(name + ".heads", {12}).numbers(name + ".width", {64});
    const std::string sizes =
        file_.node("Concat", {size(x, 0, name + ".n"), size(x, 1, name + ".s"), name + ".heads", name + ".width"},
                   name + ".sizes", {{"axis", 0}});
    return file_.node("Transpose", {file_.node("Reshape", {x, sizes}, name + ".split")}, name + ".turned",
                      {{"perm", order}});
  }
  std::string layer(const std::string& l, const std::string& x) {
    const std::string q = heads(l + "q", linear(l + "q", x, 768, 768), {0, 2, 1, 3});
    const std::string k = heads(l + "k", linear(l + "k", x, 768, 768), {0, 2, 3, 1});
    const std::string v = heads(l + "v", linear(l + "v", x, 768, 768), {0, 2, 1, 3});
    const std::string scores = file_.node("Div", {file_.node("MatMul", {q, k}, l + "qk"), "eight"}, l + "scores");
    const std::string shown = file_.node("Add", {scores, bias_}, l + "shown");
    const std::string p = file_.node("Softmax", {shown}, l + "p", {{"axis", -1}});
    const std::string c =
        file_.node("Transpose", {file_.node("MatMul", {p, v}, l + "pv")}, l + "c", {{"perm", Shape{0, 2, 1, 3}}});
    file_.numbers(l + "flat", {0, 0, -1});
    const std::string o = linear(l + "o", file_.node("Reshape", {c, l + "flat"}, l + "context"), 768, 768);
    const std::string y = norm(l + "a", file_.node("Add", {o, x}, l + "first"));
    const std::string up = linear(l + "up", y, 768, 3072);
    const std::string erf = file_.node("Erf", {file_.node("Div", {up, "root"}, l + "g1")}, l + "g2");
    const std::string wide = file_.node("Mul", {up, file_.node("Add", {erf, "one"}, l + "g3")}, l + "g4");
    const std::string down = linear(l + "down", file_.node("Mul", {wide, "half"}, l + "g5"), 3072, 768);
    return norm(l + "f", file_.node("Add", {down, y}, l + "second"));
  }
  OnnxWriter file_;
  std::string bias_;
};

}  // namespace

TEST_CASE("onnx: ResNet-50 equals the model of its builder") {
  const ModelGraph model = onnx::import_model(ResNet().bytes(), "resnet50.onnx", {.batch = 4}).model;
  const ModelGraph built = test::model_of(test::file_tree("models/resnet50.yaml"));
  CHECK(model.parameters() == 25557032);
  // 4.089 GMAC: convolutions and the dense layer (torchvision's documentation of resnet50: 4.09 GFLOPS).
  const auto product = [](const Layer& l) { return l.type == "Conv" || l.type == "Gemm"; };
  CHECK(sum(model, &Layer::forward, product) / 2e9 == doctest::Approx(4.089).epsilon(1e-4));
  // The builder counts only the ReLU after a sum, and a loss, which the file does not have.
  const auto here = [](const Layer& l) { return l.type != "Relu" || l.name.ends_with("addrelu"); };
  const auto there = [](const Layer& l) { return l.name != "loss"; };
  CHECK(sum(model, &Layer::forward, here) == sum(built, &Layer::forward, there));
  CHECK(sum(model, &Layer::weight_gradient, here) == sum(built, &Layer::weight_gradient, there));
  // No layer needs the gradient of the image: 2 * 112^2 * 64 * 7^2 * 3 operations less.
  CHECK(sum(model, &Layer::input_gradient, here) + 236027904 == sum(built, &Layer::input_gradient, there));
  CHECK(model.layers[*model.find("s2b0.add")].inputs.size() == 2);
  CHECK(model.layers[*model.find("fc")].inputs == std::vector<LayerId>{*model.find("mean")});
}

TEST_CASE("onnx: BERT base equals the model of its builder") {
  const ModelGraph model =
      onnx::import_model(Bert().bytes(), "bert.onnx", {.batch = 2, .sizes = {{"sequence", 512}}}).model;
  CHECK(model.parameters() == 109482240);  // Hugging Face's BertModel of bert-base-uncased, with its pooler.
  const ModelGraph built = test::model_of(test::file_tree("models/bert-base.yaml"));
  const auto product = [](const Layer& l) { return l.type == "MatMul"; };
  const auto same = [](const Layer& l) { return l.type == "transformer_layer"; };
  CHECK(sum(model, &Layer::forward, product) == sum(built, &Layer::forward, same));
  // The builder halves the work of both gradients; scores and their sums have no weights.
  const double layers = 12, scores = 4.0 * 512 * 512 * 768;
  CHECK(sum(model, &Layer::weight_gradient, product) + layers * scores == sum(built, &Layer::weight_gradient, same));
  CHECK(sum(model, &Layer::input_gradient, product) - layers * scores == sum(built, &Layer::input_gradient, same));
  CHECK(model.layers[*model.find("pool")].forward.value == 2.0 * 768 * 768);
  // Nothing that works out sizes is left, and no reshape.
  CHECK(!model.find("l0q.sizes"));
  CHECK(!model.find("l0q.split"));
}

}  // namespace stagecraft::onnx_networks_test
