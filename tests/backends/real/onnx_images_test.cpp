// A residual network for images from an ONNX file really runs: its forward against plain loops, and training in stages
// against training without stages, bit for bit.

#include <doctest/doctest.h>

#include <cmath>

#include "tests/backends/real/onnx_case.hpp"
#include "tests/support/onnx_writer.hpp"

namespace stagecraft::onnx_images_test {
namespace {

using onnx::Shape;
using test::NamedWeights;
using test::OnnxWriter;

constexpr int kClasses = 5;
const std::vector<float> kMean{0.25F, -0.5F, 0, 1}, kVariance{0.5F, 2, 1, 1.5F};

/// Convolutions with strides, padding, dilation, groups and a bias; batch norms of both forms; pooling of three kinds;
/// and a residual branch.
class SmallNetwork {
 public:
  SmallNetwork() {
    file_.input("image", {"batch", 3, 8, 6});
    convolution("stem", "image", {4, 3, 3, 3}, {{"pads", Shape{1, 1, 1, 1}}});
    trained_norm("stem.n", "stem", 4);
    file_.node("Relu", {"stem.n"}, "stem.r");
    const Shape three{3, 3}, two{2, 2};
    file_.node("MaxPool", {"stem.r"}, "pool", {{"kernel_shape", three}, {"strides", two}, {"pads", Shape{1, 1, 1, 1}}});
    convolution("a", "pool", {4, 2, 3, 3}, {{"group", 2}, {"dilations", two}, {"pads", Shape{2, 2, 2, 2}}}, true);
    file_.reals("mean", kMean).reals("variance", kVariance).weights("a.g", {4}).weights("a.h", {4});
    file_.node("BatchNormalization", {"a", "a.g", "a.h", "mean", "variance"}, "a.n", {{"epsilon", 0.125F}});
    file_.node("Constant", {}, "zero", {{"value", OnnxWriter::scalar(0.0F)}});
    file_.node("Constant", {}, "one", {{"value", OnnxWriter::scalar(1.0F)}});
    file_.node("Clip", {"a.n", "zero", "one"}, "a.r");
    convolution("b", "a.r", {8, 4, 3, 3}, {{"strides", two}, {"pads", Shape{1, 1, 1, 1}}});
    trained_norm("b.n", "b", 8);
    convolution("c", "pool", {8, 4, 1, 1}, {{"strides", two}});
    trained_norm("c.n", "c", 8);
    file_.node("Add", {"b.n", "c.n"}, "sum");
    file_.node("HardSwish", {"sum"}, "sum.r");
    file_.node("AveragePool", {"sum.r"}, "means", {{"kernel_shape", Shape{2, 1}}});
    file_.node("GlobalAveragePool", {"means"}, "mean of all");
    file_.node("Flatten", {"mean of all"}, "flat");
    file_.weights("scores.w", {kClasses, 8}).weights("scores.b", {kClasses});
    file_.output(file_.node("Gemm", {"flat", "scores.w", "scores.b"}, "scores", {{"transB", 1}}));
  }
  std::string bytes() const { return file_.bytes(); }

 private:
  void convolution(const std::string& name, const std::string& x, const Shape& weights,
                   const std::vector<test::OnnxAttribute>& attributes, bool bias = false) {
    file_.weights(name + ".w", weights);
    std::vector<std::string> inputs{x, name + ".w"};
    if (bias) file_.weights(inputs.emplace_back(name + ".b"), {weights[0]});
    file_.node("Conv", inputs, name, attributes);
  }
  /// Exporters write the training form with the running statistics as further outputs.
  void trained_norm(const std::string& name, const std::string& x, int channels) {
    for (const char* const part : {".g", ".h", ".m", ".v"}) file_.weights(name + part, {channels});
    file_.nodes("BatchNormalization", {x, name + ".g", name + ".h", name + ".m", name + ".v"},
                {name, name + ".mean", name + ".variance"}, {{"training_mode", 1}});
  }
  OnnxWriter file_;
};

// ---------------------------------------------------------------- plain loops

struct Image {
  int channels = 0, height = 0, width = 0;
  std::vector<double> numbers = std::vector<double>(static_cast<std::size_t>(channels * height * width), 0.0);

  double& at(int c, int y, int x) { return numbers[(c * height + y) * width + x]; }
  double at(int c, int y, int x) const { return numbers[(c * height + y) * width + x]; }
  bool has(int y, int x) const { return y >= 0 && y < height && x >= 0 && x < width; }

  template <class Visit>
  void each(Visit visit) {
    for (int c = 0; c < channels; ++c)
      for (int y = 0; y < height; ++y)
        for (int x = 0; x < width; ++x) visit(c, y, x);
  }
};
using Images = std::vector<Image>;

/// A square window.
struct Window {
  int size = 1, stride = 1, padding = 0, dilation = 1, groups = 1;

  int slide(int length) const { return (length + 2 * padding - (size - 1) * dilation - 1) / stride + 1; }
};

Image convolved(const Image& from, int channels, const double* weights, const Window& w) {
  Image to{channels, w.slide(from.height), w.slide(from.width)};
  const int inputs = from.channels / w.groups;
  to.each([&](int c, int y, int x) {
    for (int i = 0; i < inputs; ++i)
      for (int j = 0; j < w.size; ++j)
        for (int k = 0; k < w.size; ++k) {
          const int v = y * w.stride + j * w.dilation - w.padding, u = x * w.stride + k * w.dilation - w.padding;
          if (!from.has(v, u)) continue;
          to.at(c, y, x) += weights[((c * inputs + i) * w.size + j) * w.size + k] *
                            from.at(c / (channels / w.groups) * inputs + i, v, u);
        }
  });
  return to;
}

Images convolved(const Images& from, int channels, const double* weights, const Window& w) {
  Images to;
  for (const Image& image : from) to.push_back(convolved(image, channels, weights, w));
  return to;
}

/// (x - mean) / sqrt(variance + epsilon) scale + shift, with one of each for a channel.
void normalize(Images& images, int c, double mean, double variance, double epsilon, const double* scale,
               const double* shift) {
  for (Image& image : images)
    image.each([&](int channel, int y, int x) {
      double& v = image.at(channel, y, x);
      if (channel == c) v = (v - mean) / std::sqrt(variance + epsilon) * scale[c] + shift[c];
    });
}

/// Normalizes each channel with the statistics of all images.
void batch_norm(Images& images, const double* scale, const double* shift) {
  for (int c = 0; c < images[0].channels; ++c) {
    double mean = 0, variance = 0;
    const double count = static_cast<double>(images.size()) * images[0].height * images[0].width;
    const auto each = [&](auto visit) {
      for (Image& image : images)
        for (int y = 0; y < image.height; ++y)
          for (int x = 0; x < image.width; ++x) visit(image.at(c, y, x));
    };
    each([&](double v) { mean += v / count; });
    each([&](double v) { variance += (v - mean) * (v - mean) / count; });
    normalize(images, c, mean, variance, 1e-5, scale, shift);
  }
}

template <class Function>
void activate(Images& images, Function function) {
  for (Image& image : images)
    for (double& v : image.numbers) v = function(v);
}

Image largest(const Image& from, const Window& w) {
  Image to{from.channels, w.slide(from.height), w.slide(from.width)};
  to.each([&](int c, int y, int x) {
    double& v = to.at(c, y, x) = -1e300;
    for (int j = 0; j < w.size; ++j)
      for (int k = 0; k < w.size; ++k)
        if (const int b = y * w.stride + j - w.padding, a = x * w.stride + k - w.padding; from.has(b, a))
          v = std::max(v, from.at(c, b, a));
  });
  return to;
}

/// The loss of the scores of one image.
double cross_entropy(const NamedWeights& w, const Image& image, int target) {
  double scores[kClasses], sum = 0;
  for (int s = 0; s < kClasses; ++s) {
    scores[s] = w.array("scores", 1)[s];
    for (int c = 0; c < image.channels; ++c) {
      // Means of two rows each, of which there is one; then the mean of these.
      double mean = 0;
      for (int x = 0; x < image.width; ++x) mean += (image.at(c, 0, x) + image.at(c, 1, x)) / 2 / image.width;
      scores[s] += mean * w.array("scores")[s * image.channels + c];
    }
    sum += std::exp(scores[s]);
  }
  return std::log(sum) - scores[target];
}

Images features_of(const NamedWeights& w, Images images) {
  Images stem = convolved(images, 4, w.array("stem"), {.size = 3, .padding = 1});
  batch_norm(stem, w.array("stem.n"), w.array("stem.n", 1));
  activate(stem, [](double v) { return std::max(v, 0.0); });
  for (Image& image : stem) image = largest(image, {.size = 3, .stride = 2, .padding = 1});
  Images a = convolved(stem, 4, w.array("a"), {.size = 3, .padding = 2, .dilation = 2, .groups = 2});
  for (Image& image : a) image.each([&](int c, int y, int x) { image.at(c, y, x) += w.array("a", 1)[c]; });
  for (int c = 0; c < 4; ++c) normalize(a, c, kMean[c], kVariance[c], 0.125, w.array("a.n"), w.array("a.n", 1));
  activate(a, [](double v) { return std::min(std::max(v, 0.0), 1.0); });
  Images b = convolved(a, 8, w.array("b"), {.size = 3, .stride = 2, .padding = 1});
  batch_norm(b, w.array("b.n"), w.array("b.n", 1));
  Images c = convolved(stem, 8, w.array("c"), {.stride = 2});
  batch_norm(c, w.array("c.n"), w.array("c.n", 1));
  for (std::size_t i = 0; i < b.size(); ++i)
    for (std::size_t n = 0; n < b[i].numbers.size(); ++n) b[i].numbers[n] += c[i].numbers[n];
  activate(b, [](double v) { return v * std::min(std::max(v / 6 + 0.5, 0.0), 1.0); });
  return b;
}

}  // namespace

TEST_CASE("onnx: the forward of a residual network equals plain loops") {
  const ModelGraph model = test::onnx_model(SmallNetwork().bytes(), "loss: cross_entropy\n");
  constexpr int kSamples = 3;
  test::check_loss(model, kSamples, [](const NamedWeights& weights, const Dataset& data) {
    Images images(kSamples, Image{3, 8, 6});
    for (int sample = 0; sample < kSamples; ++sample) data.input(0, 0, sample, images[sample].numbers);
    const Images features = features_of(weights, images);
    double loss = 0;
    for (int sample = 0; sample < kSamples; ++sample) {
      std::vector<double> target(1);
      data.target(0, sample, target);
      loss += cross_entropy(weights, features[sample], static_cast<int>(target[0])) / kSamples;
    }
    return loss;
  });
}

TEST_CASE("onnx: training a residual network in stages equals training without, to the last bit") {
  const ModelGraph model = test::onnx_model(SmallNetwork().bytes(), "loss: cross_entropy\n");
  test::check_stages(model, "graph", {"pool", "a.r", "c", "means"});
  test::check_stages(model, "gpipe", {"stem.n", "a", "sum"});
  test::check_stages(model, "zb-h1", {"b"});
}

}  // namespace stagecraft::onnx_images_test
