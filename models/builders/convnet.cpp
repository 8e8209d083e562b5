// Convolutional networks, described from the image to the classes. Amounts of a convolution with a kernel of k x k from
// c to d channels on an output of n x n: parameters k^2 cd + d, flops 2 k^2 cd n^2. With batch normalization it has no
// bias but two parameters for each channel, and four operations more for each number of the output. The output of the
// convolution is stashed, and the output of the norm if a ReLU follows.

#include <fmt/core.h>

#include "models/graph_writer.hpp"

namespace stagecraft::model_builders {
namespace {

using config::Value;

config::Field kernel_field() { return config::integer("kernel", 1, 1024).doc("Side of the window in pixels."); }

config::Field stride_field() {
  return config::integer("stride", 1, 1024)
      .fallback("1")
      .doc(
          "Pixels from one window to the next. The side of the output is the side of the input divided by it, rounded "
          "up.");
}

config::Field repeat_field(const char* what) { return config::integer("repeat", 1, 1e5).fallback("1").doc(what); }

const config::MapSpec kConvFields{
    "Convolutions, each with a ReLU.",
    {config::integer("conv", 1, 1e6).doc("Output channels."), kernel_field().fallback("3"), stride_field(),
     repeat_field("Number of convolutions in a row; only the first has the stride.")}};

const config::MapSpec kPoolFields{
    "The largest or the mean number of each window.",
    {config::choice("pool", std::vector<std::string>{"max", "mean"}).doc("Kind of pooling."),
     kernel_field().optional().doc("Side of the window in pixels. Default: the whole image."), stride_field()}};

const config::MapSpec kBottleneckFields{
    "Residual blocks of a narrow 3 x 3 convolution between two of 1 x 1, the last four times as wide.",
    {config::integer("bottleneck", 1, 1e6).doc("Channels of the narrow convolutions."), stride_field(),
     repeat_field("Number of blocks in a row; only the first has the stride.")}};

const config::MapSpec kConvnetDenseFields{"A dense layer.",
                                          {config::integer("dense", 1, 1e8).doc("Width of the output.")}};

std::vector<config::Variant> kinds() {
  return {{"conv", "Convolutions with a ReLU.", &kConvFields},
          {"pool", "Maximum or mean of each window.", &kPoolFields},
          {"bottleneck", "Residual blocks.", &kBottleneckFields},
          {"dense", "A dense layer.", &kConvnetDenseFields}};
}

const config::MapSpec kConvnetFields{
    "Convolutions, pooling, residual blocks and dense layers, with a softmax at the end.",
    {config::integer("image", 1, 1e5).fallback("224").doc("Side of the image in pixels."),
     config::integer("channels", 1, 1e4).fallback("3").doc("Color channels of an image."),
     config::list("layers", config::variant("layer", "kind", kinds))
         .doc("Layers in order, from the image to the classes."),
     config::boolean("batch_norm")
         .fallback("false")
         .doc("Whether each convolution is followed by batch normalization."),
     precision_field()}};

/// The last layer so far and the shape of its output.
struct LayerOutput {
  LayerId layer;
  int side = 0, channels = 0;

  double numbers() const { return 1.0 * side * side * channels; }
};

class ConvNetWriter {
 public:
  explicit ConvNetWriter(const Value& map)
      : map_(map), norm_(config::as_bool(map.at("batch_norm"))), writer_("convnet", map) {}

  ModelGraph build() {
    const Value& layers = map_.at("layers");
    if (layers.items.empty()) throw InputError({{layers.where, "layers", "there is no layer", {}, "layers"}});
    LayerOutput head{{}, config::as_int(map_.at("image")), config::as_int(map_.at("channels"))};
    head.layer = writer_.add("img", "input", {}, source(head.numbers()));
    for (const Value& layer : layers.items) {
      const std::string& kind = layer.at("kind").text;
      if (kind == "conv") head = convolutions(head, layer);
      if (kind == "pool") head = pool(head, layer);
      if (kind == "bottleneck") head = bottlenecks(head, layer);
      if (kind == "dense") head = dense_layer(head, config::as_int(layer.at("dense")));
    }
    writer_.add("loss", "softmax_xent", {head.layer}, cross_entropy(1, head.numbers()));
    return writer_.finish();
  }

 private:
  static int narrowed(int side, int stride) { return (side + stride - 1) / stride; }

  LayerOutput convolution(const std::string& name, LayerOutput from, int channels, int kernel, int stride, bool relu) {
    LayerOutput to{{}, narrowed(from.side, stride), channels};
    const double weights = 1.0 * kernel * kernel * from.channels * channels, outcome = to.numbers();
    const double flops = 2 * weights * to.side * to.side;
    const LayerAmounts amounts = norm_ ? weighted(weights + 2 * channels, flops + 4 * outcome, outcome,
                                                  from.numbers() + (relu ? 2 : 1) * outcome)
                                       : weighted(weights + channels, flops, outcome, from.numbers());
    to.layer =
        writer_.add(name, fmt::format("conv{}{}", norm_ ? "_bn" : "", relu ? "_relu" : ""), {from.layer}, amounts);
    return to;
  }

  LayerOutput convolutions(LayerOutput head, const Value& layer) {
    for (int i = 0; i < config::as_int(layer.at("repeat")); ++i)
      head = convolution(fmt::format("conv{}", ++convolutions_), head, config::as_int(layer.at("conv")),
                         config::as_int(layer.at("kernel")), i == 0 ? config::as_int(layer.at("stride")) : 1, true);
    return head;
  }

  // Reads every number of every window; the places of the largest ones are kept.
  LayerOutput pool(const LayerOutput& from, const Value& layer) {
    const bool max = layer.at("pool").text == "max", whole = !layer.has("kernel");
    const int kernel = whole ? from.side : config::as_int(layer.at("kernel"));
    const int stride = config::as_int(layer.at("stride"));
    if (whole && stride > 1)
      throw InputError({{layer.at("stride").where, "layers.stride", "a window over the whole image takes no step",
                         "give a kernel, or leave the stride out", "stride"}});
    LayerOutput to{{}, whole ? 1 : narrowed(from.side, stride), from.channels};
    LayerAmounts amounts{.forward = 1.0 * kernel * kernel * to.numbers(),
                         .input_gradient = from.numbers(),
                         .output = to.numbers(),
                         .stash = max ? to.numbers() : 0};
    to.layer = writer_.add(fmt::format("pool{}", ++pools_), max ? "maxpool" : "avgpool", {from.layer}, amounts);
    return to;
  }

  // He et al., Deep Residual Learning for Image Recognition, CVPR 2016, with the stride in the 3 x 3 convolution as the
  // reference implementations have it.
  LayerOutput bottlenecks(LayerOutput head, const Value& layer) {
    const int narrow = config::as_int(layer.at("bottleneck")), wide = 4 * narrow;
    ++stages_;
    for (int b = 0; b < config::as_int(layer.at("repeat")); ++b) {
      const std::string name = fmt::format("s{}.b{}.", stages_, b);
      const int stride = b == 0 ? config::as_int(layer.at("stride")) : 1;
      LayerOutput inner = convolution(name + "c1", head, narrow, 1, 1, true);
      inner = convolution(name + "c2", inner, narrow, 3, stride, true);
      inner = convolution(name + "c3", inner, wide, 1, 1, false);
      if (stride > 1 || head.channels != wide) head = convolution(name + "down", head, wide, 1, stride, false);
      const double sum = inner.numbers();
      inner.layer = writer_.add(name + "addrelu", "add_relu", {inner.layer, head.layer},
                                {.forward = 2 * sum, .input_gradient = sum, .output = sum, .stash = sum});
      head = inner;
    }
    return head;
  }

  LayerOutput dense_layer(const LayerOutput& from, int width) {
    return {writer_.add(fmt::format("fc{}", ++dense_), "dense", {from.layer}, dense(1, from.numbers(), width)), 1,
            width};
  }

  const Value& map_;
  bool norm_;
  GraphWriter writer_;
  int convolutions_ = 0, pools_ = 0, stages_ = 0, dense_ = 0;
};

ModelGraph build_convnet(const Value& map) { return ConvNetWriter(map).build(); }

}  // namespace

extern const ModelBuilder convnet{
    .name = "convnet",
    .summary = "Convolutions, pooling, residual blocks and dense layers: VGG, ResNet.",
    .source = "Simonyan and Zisserman, ICLR 2015; He et al., CVPR 2016",
    .fields = &kConvnetFields,
    .build = build_convnet,
};

}  // namespace stagecraft::model_builders
