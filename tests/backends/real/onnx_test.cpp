// A Transformer from an ONNX file, as PyTorch exports it, really runs: its forward against plain loops, and training in
// stages against training without stages, bit for bit.

#include <doctest/doctest.h>

#include <cmath>

#include "tests/backends/real/onnx_case.hpp"
#include "tests/support/onnx_writer.hpp"

namespace stagecraft::onnx_test {
namespace {

using onnx::Shape;
using onnx::Type;
using test::OnnxWriter;

constexpr int kTokens = 5, kWidth = 6, kHeads = 2, kInner = 8, kWords = 11, kEach = kWidth / kHeads;
constexpr double kEpsilon = 1e-6;

/// Embedding and positions, attention with a causal mask, norms in pieces, GELU by erf, and scores.
class SmallTransformer {
 public:
  SmallTransformer() {
    file_.opset = 14;
    file_.input("ids", {"batch", kTokens}, Type::Int64);
    file_.weights("words", {kWords, kWidth}).weights("places", {16, kWidth});
    for (const auto& [name, value] : {std::pair{"two", 2.0F},
                                      {"one", 1.0F},
                                      {"half", 0.5F},
                                      {"low", -10000.0F},
                                      {"epsilon", static_cast<float>(kEpsilon)},
                                      {"root", 1.4142135F},
                                      {"scale", std::sqrt(static_cast<float>(kEach))}})
      file_.node("Constant", {}, name, {{"value", OnnxWriter::scalar(value)}});
    Shape here(kTokens);
    for (int i = 0; i < kTokens; ++i) here[i] = i;
    file_.numbers("here", here).numbers("sizes", {0, 0, kHeads, kEach}).numbers("joined", {0, 0, kWidth});
    file_.numbers("rows_at", {1}).numbers("columns_at", {0});
    file_.node("Unsqueeze", {"here", "rows_at"}, "rows");
    file_.node("Unsqueeze", {"here", "columns_at"}, "columns");
    file_.node("Less", {"rows", "columns"}, "later");
    file_.node("Gather", {"words", "ids"}, "word");
    file_.node("Gather", {"places", "here"}, "place");
    std::string x = file_.node("Add", {"word", "place"}, "x0");
    x = attention(x);
    x = feed_forward(x);
    file_.output(linear("scores", norm("last", x), kWidth, kWords));
  }
  std::string bytes() const { return file_.bytes(); }

 private:
  std::string norm(const std::string& n, const std::string& x) {
    file_.weights(n + ".g", {kWidth}).weights(n + ".b", {kWidth});
    const auto mean = [&](const std::string& input, const std::string& as) {
      return file_.node("ReduceMean", {input}, n + as, {{"axes", Shape{-1}}});
    };
    const std::string difference = file_.node("Sub", {x, mean(x, ".mean")}, n + ".difference");
    const std::string square = file_.node("Pow", {difference, "two"}, n + ".square");
    const std::string root =
        file_.node("Sqrt", {file_.node("Add", {mean(square, ".variance"), "epsilon"}, n + ".safe")}, n + ".root");
    const std::string scaled = file_.node("Mul", {file_.node("Div", {difference, root}, n + ".q"), n + ".g"}, n + ".s");
    return file_.node("Add", {scaled, n + ".b"}, n + ".out");
  }
  std::string linear(const std::string& name, const std::string& x, int from, int to) {
    file_.weights(name + ".w", {from, to}).weights(name + ".b", {to});
    return file_.node("Add", {file_.node("MatMul", {x, name + ".w"}, name), name + ".b"}, name + ".biased");
  }
  std::string heads(const std::string& name, const std::string& x, const Shape& order) {
    return file_.node("Transpose", {file_.node("Reshape", {x, "sizes"}, name + ".split")}, name + ".heads",
                      {{"perm", order}});
  }
  std::string attention(const std::string& x) {
    const std::string qkv = linear("qkv", norm("first", x), kWidth, 3 * kWidth);
    file_.nodes("Split", {qkv}, {"q", "k", "v"}, {{"axis", -1}});
    const std::string scores = file_.node(
        "Div", {file_.node("MatMul", {heads("q", "q", {0, 2, 1, 3}), heads("k", "k", {0, 2, 3, 1})}, "qk"), "scale"},
        "scaled");
    const std::string p = file_.node("Softmax", {file_.node("Where", {"later", "low", scores}, "masked")}, "p");
    const std::string context = file_.node("MatMul", {p, heads("v", "v", {0, 2, 1, 3})}, "context");
    const std::string back = file_.node(
        "Reshape", {file_.node("Transpose", {context}, "turned", {{"perm", Shape{0, 2, 1, 3}}}), "joined"}, "back");
    return file_.node("Add", {linear("projection", back, kWidth, kWidth), x}, "x1");
  }
  std::string feed_forward(const std::string& x) {
    const std::string h = linear("up", norm("second", x), kWidth, kInner);
    const std::string e = file_.node("Erf", {file_.node("Div", {h, "root"}, "h.root")}, "h.erf");
    const std::string shifted = file_.node("Add", {e, "one"}, "h.shifted");
    const std::string gelu = file_.node("Mul", {file_.node("Mul", {h, shifted}, "h.product"), "half"}, "gelu");
    return file_.node("Add", {linear("down", gelu, kInner, kWidth), x}, "x2");
  }
  OnnxWriter file_;
};

// ---------------------------------------------------------------- plain loops

using Matrix = std::vector<std::vector<double>>;

Matrix linear(const test::NamedWeights& w, const std::string& name, const Matrix& x, int columns) {
  Matrix y(x.size(), std::vector<double>(columns));
  for (std::size_t r = 0; r < x.size(); ++r)
    for (int c = 0; c < columns; ++c) {
      y[r][c] = w.array(name + ".biased")[c];
      for (std::size_t i = 0; i < x[r].size(); ++i) y[r][c] += x[r][i] * w.array(name)[i * columns + c];
    }
  return y;
}

Matrix norm(const test::NamedWeights& w, const std::string& name, Matrix x) {
  for (std::vector<double>& row : x) {
    double mean = 0, variance = 0;
    for (const double v : row) mean += v / kWidth;
    for (const double v : row) variance += (v - mean) * (v - mean) / kWidth;
    for (int i = 0; i < kWidth; ++i)
      row[i] = (row[i] - mean) / std::sqrt(variance + static_cast<float>(kEpsilon)) * w.array(name + ".s")[i] +
               w.array(name + ".out")[i];
  }
  return x;
}

void add(Matrix& to, const Matrix& x) {
  for (std::size_t r = 0; r < x.size(); ++r)
    for (std::size_t i = 0; i < x[r].size(); ++i) to[r][i] += x[r][i];
}

/// Each row looks at itself and at earlier ones.
Matrix attended(const Matrix& qkv) {
  Matrix y(kTokens, std::vector<double>(kWidth, 0));
  for (int h = 0; h < kHeads; ++h)
    for (int r = 0; r < kTokens; ++r) {
      std::vector<double> p;
      double sum = 0;
      for (int c = 0; c <= r; ++c) {
        double score = 0;
        for (int i = h * kEach; i < (h + 1) * kEach; ++i) score += qkv[r][i] * qkv[c][kWidth + i];
        sum += p.emplace_back(std::exp(score / std::sqrt(static_cast<float>(kEach))));
      }
      for (int c = 0; c <= r; ++c)
        for (int i = h * kEach; i < (h + 1) * kEach; ++i) y[r][i] += p[c] / sum * qkv[c][2 * kWidth + i];
    }
  return y;
}

Matrix scores_of(const test::NamedWeights& w, const std::vector<double>& words) {
  Matrix x(kTokens, std::vector<double>(kWidth));
  for (int r = 0; r < kTokens; ++r)
    for (int i = 0; i < kWidth; ++i)
      x[r][i] = w.array("word")[static_cast<int>(words[r]) * kWidth + i] + w.array("x0")[r * kWidth + i];
  add(x, linear(w, "projection", attended(linear(w, "qkv", norm(w, "first", x), 3 * kWidth)), kWidth));
  Matrix h = linear(w, "up", norm(w, "second", x), kInner);
  for (std::vector<double>& row : h)
    for (double& v : row) v *= 0.5F * (1 + std::erf(v / 1.4142135F));
  add(x, linear(w, "down", h, kWidth));
  return linear(w, "scores", norm(w, "last", x), kWords);
}

/// The mean over samples and rows of -log softmax of the target.
double cross_entropy(const Matrix& scores, const std::vector<double>& targets) {
  double loss = 0;
  for (int r = 0; r < kTokens; ++r) {
    double sum = 0;
    for (const double s : scores[r]) sum += std::exp(s);
    loss += (std::log(sum) - scores[r][static_cast<int>(targets[r])]) / kTokens;
  }
  return loss;
}

}  // namespace

TEST_CASE("onnx: the forward of an exported Transformer equals plain loops") {
  const ModelGraph model = test::onnx_model(SmallTransformer().bytes(), "loss: cross_entropy\n");
  test::check_loss(model, 3, [](const test::NamedWeights& weights, const Dataset& data) {
    double loss = 0;
    for (int sample = 0; sample < 3; ++sample) {
      std::vector<double> words(kTokens), targets(kTokens);
      data.input(0, 0, sample, words);
      data.target(0, sample, targets);
      loss += cross_entropy(scores_of(weights, words), targets) / 3;
    }
    return loss;
  });
}

TEST_CASE("onnx: training in stages equals training without, to the last bit") {
  const ModelGraph model = test::onnx_model(SmallTransformer().bytes(), "loss: cross_entropy\n");
  test::check_stages(model, "graph", {"first.mean", "second.q", "h.product"});
  test::check_stages(model, "gpipe", {"first.mean", "second.q", "h.product"});
  test::check_stages(model, "graph", {"masked", "up", "last.s"});
  test::check_stages(model, "zb-h1", {"second.mean"});
}

TEST_CASE("onnx: several tensors cross an edge, and a shared table stays in one stage") {
  const ModelGraph model = test::onnx_model(SmallTransformer().bytes());
  const Plan plan = test::cut_at(model, {"qk"}, 2, 1);
  const Workload workload = make_workload(model, plan, {}, test::training_of(OptimizerKind::Sgd, 0.01));
  CHECK(workload.tensors[0].size() == 2);  // The queries, keys and values in one, and what the sum after them reads.
  CHECK(model.find("loss of the output").has_value());
}

TEST_CASE("onnx: what no kernel computes is refused with its operator and its node") {
  OnnxWriter file;
  file.input("x", {"batch", 3, 8, 8}).weights("k", {3, 4, 3, 3});
  file.output(file.node("ConvTranspose", {"x", "k"}, "up"));
  const ModelGraph model = test::onnx_model(file.bytes());
  const Operation& up = model.layers[LayerId{1}].operations.back();
  CHECK(!cpu::has_kernel(up));
  CHECK(to_text(up) == "ConvTranspose 1x4x10x10");
}

}  // namespace stagecraft::onnx_test
