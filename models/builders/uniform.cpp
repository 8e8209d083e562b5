// Equal layers with given times: the model of the closed forms for bubbles and memory.

#include <fmt/core.h>

#include "models/graph_writer.hpp"

namespace stagecraft::model_builders {
namespace {

using config::Dimension;
using config::Value;

const config::MapSpec kUniformFields{
    "Equal layers with given times for one sample, in one chain or in equal branches.",
    {config::integer("layers", 1, 1e6).doc("Layers of each branch."),
     config::integer("branches", 1, 1e5).fallback("1").doc("Number of parallel chains."),
     config::choice("join", std::vector<std::string>{"own", "none"})
         .fallback("own")
         .doc("How several branches end. own: one more layer of the same kind joins them; none: each ends alone."),
     config::quantity("forward", Dimension::Time).doc("Of one layer."),
     config::quantity("backward", Dimension::Time)
         .optional()
         .doc("Backward time of one layer, divided equally between its two gradients. `input_gradient` and "
              "`weight_gradient` may be given instead."),
     config::quantity("input_gradient", Dimension::Time).optional().doc("Of one layer."),
     config::quantity("weight_gradient", Dimension::Time).optional().doc("Of one layer."),
     config::quantity("output", Dimension::Size)
         .fallback("0")
         .doc("Size of the output of each layer, which is sent to the next."),
     config::quantity("stash", Dimension::Size)
         .fallback("0")
         .doc("Activations that each layer keeps from forward to backward."),
     config::real("parameters", 0, 1e15).fallback("0").doc("Of one layer."), precision_field()}};

LayerTimes read_times(const Value& map) {
  config::Problems problems;
  const bool whole = map.has("backward"), input = map.has("input_gradient"), weight = map.has("weight_gradient");
  if (whole ? (input || weight) : !(input && weight))
    problems.add(map.where, {}, "the backward time is not clear",
                 "give `backward`, or both `input_gradient` and `weight_gradient`", "backward");
  problems.throw_if_any();

  const Seconds forward = config::as_seconds(map.at("forward"));
  if (whole) {
    const Seconds half = config::as_seconds(map.at("backward")) / 2;
    return {forward, half, half};
  }
  return {forward, config::as_seconds(map.at("input_gradient")), config::as_seconds(map.at("weight_gradient"))};
}

class UniformChainWriter {
 public:
  explicit UniformChainWriter(const Value& map)
      : writer_("uniform", map),
        times_(read_times(map)),
        output_(config::as_bytes(map.at("output"))),
        stash_(config::as_bytes(map.at("stash"))),
        parameters_(config::as_real(map.at("parameters"))) {}

  LayerId add(std::string name, std::vector<LayerId> inputs) {
    const LayerId id = writer_.add(std::move(name), "given", std::move(inputs), {});
    Layer& layer = writer_.layer(id);
    layer.times = times_;
    layer.output = output_;
    layer.stash = stash_;
    layer.parameters = parameters_;
    return id;
  }
  ModelGraph finish() { return writer_.finish(); }

 private:
  GraphWriter writer_;
  LayerTimes times_;
  Bytes output_, stash_;
  double parameters_;
};

ModelGraph build_uniform(const Value& map) {
  const int layers = config::as_int(map.at("layers")), branches = config::as_int(map.at("branches"));
  UniformChainWriter chain(map);
  std::vector<LayerId> ends;
  for (int b = 0; b < branches; ++b) {
    std::vector<LayerId> inputs;
    for (int l = 0; l < layers; ++l) {
      std::string name = branches == 1 ? fmt::format("l{}", l) : fmt::format("b{}.l{}", b, l);
      inputs = {chain.add(std::move(name), inputs)};
    }
    ends.push_back(inputs.front());
  }
  if (branches > 1 && map.at("join").text == "own") chain.add("join", ends);
  return chain.finish();
}

}  // namespace

extern const ModelBuilder uniform{
    .name = "uniform",
    .summary = "Equal layers with given times, in one chain or in equal branches.",
    .source = "no particular model",
    .fields = &kUniformFields,
    .build = build_uniform,
};

}  // namespace stagecraft::model_builders
