// What dividing a transformer layer costs in collectives: the counts of Korthikanti et al. (MLSys 2023) and the bytes
// of each kind of exchange, from the operations alone.

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "sim/cost/group_shapes.hpp"
#include "sim/cost/layer_collectives.hpp"
#include "tests/support/presets.hpp"

namespace stagecraft::layer_collectives_test {
namespace {

using Count = std::map<std::tuple<Pass, CollectiveKind>, int>;

const std::vector<Operation>& layer_of(const ModelGraph& model, const char* name) {
  return model.layers[*model.find(name)].operations;
}

const ModelGraph& llama() {
  static const ModelGraph model = test::model_of(test::file_tree("models/llama-3-8b.yaml"));
  return model;
}

EachPass<Collectives> lists_of(const std::vector<Operation>& layer, const StageShape& shape, double samples) {
  return collectives_of(layer, shape, NodeShape{}, whole_samples(samples), 2);
}

Count counts(const EachPass<Collectives>& lists, Axis axis) {
  Count count;
  const auto add = [&](Pass pass, const Collectives& list) {
    for (const Collective& c : list)
      if (c.axis == axis) ++count[{pass, c.kind}];
  };
  add(Pass::Forward, lists.forward);
  add(Pass::InputGradient, lists.input_gradient);
  add(Pass::WeightGradient, lists.weight_gradient);
  return count;
}

Collectives joined(const EachPass<Collectives>& lists) {
  Collectives total = lists.forward;
  for (const Collectives* list : {&lists.input_gradient, &lists.weight_gradient})
    total.insert(total.end(), list->begin(), list->end());
  return total;
}

StageShape shape(Degrees degrees) { return {.degrees = degrees}; }

}  // namespace

TEST_CASE("a tensor group sums twice in each pass of a layer") {
  const auto list = lists_of(layer_of(llama(), "l0"), shape({.tensor = 8}), 2);
  CHECK(counts(list, Axis::Tensor) ==
        Count{{{Pass::Forward, CollectiveKind::AllReduce}, 2}, {{Pass::InputGradient, CollectiveKind::AllReduce}, 2}});
  for (const Collective& c : joined(list)) CHECK(c.bytes.value == 2.0 * 8192 * 4096 * 2);
}

TEST_CASE(
    "sequence parallelism gathers and scatters in place of sums, and gathers inputs once more for weight gradients") {
  const auto list = lists_of(layer_of(llama(), "l0"), shape({.tensor = 8, .sequence = true}), 1);
  CHECK(counts(list, Axis::Tensor) == Count{{{Pass::Forward, CollectiveKind::AllGather}, 2},
                                            {{Pass::Forward, CollectiveKind::ReduceScatter}, 2},
                                            {{Pass::InputGradient, CollectiveKind::AllGather}, 2},
                                            {{Pass::InputGradient, CollectiveKind::ReduceScatter}, 2},
                                            {{Pass::WeightGradient, CollectiveKind::AllGather}, 2}});
  for (const Collective& c : joined(list)) CHECK(c.bytes.value == 1.0 * 8192 * 4096 * 2);
}

TEST_CASE("a group of one has no collectives") {
  for (const Layer& layer : llama().layers) CHECK(joined(lists_of(layer.operations, shape({}), 1)).empty());
}

TEST_CASE("scores over divided words need three sums of one number for each row") {
  int small = 0;
  for (const Layer& layer : llama().layers)
    for (const Collective& c : joined(lists_of(layer.operations, shape({.tensor = 4}), 1)))
      small += c.bytes.value == 8192.0 * 4;
  CHECK(small == 3);
}

TEST_CASE("a context group passes keys and values around, gathers them, or exchanges rows for heads") {
  StageShape divided = shape({.context = 4, .tensor = 2});
  const double keys = 2.0 * 8192 / 4 * 8 * 128 / 2 * 2;  // K and V of 8 heads of 128 numbers, half of them.
  const auto& layer = layer_of(llama(), "l0");
  auto list = joined(lists_of(layer, divided, 1));
  std::erase_if(list, [](const Collective& c) { return c.axis != Axis::Context; });
  REQUIRE(list.size() == 2);
  CHECK(list[0].ring);
  CHECK(list[0].bytes.value == 4 * keys);
  CHECK(list[1].bytes.value == 8 * keys);
  divided.exchange = ContextExchange::AllGather;
  CHECK(counts(lists_of(layer, divided, 1), Axis::Context) ==
        Count{{{Pass::Forward, CollectiveKind::AllGather}, 1},
              {{Pass::InputGradient, CollectiveKind::AllGather}, 1},
              {{Pass::InputGradient, CollectiveKind::ReduceScatter}, 1}});
  divided.exchange = ContextExchange::AllToAll;
  CHECK(counts(lists_of(layer, divided, 1), Axis::Context) ==
        Count{{{Pass::Forward, CollectiveKind::AllToAll}, 2}, {{Pass::InputGradient, CollectiveKind::AllToAll}, 2}});
}

TEST_CASE("experts get and give back each copy of a row once in each direction") {
  static const ModelGraph model = test::model_of(test::file_tree("models/mixtral-8x7b.yaml"));
  for (const Layer& layer : model.layers) {
    if (layer.type != "experts_layer") continue;
    const auto list = lists_of(layer.operations, shape({.replicas = 8, .expert = 8}), 1);
    CHECK(counts(list, Axis::Expert) ==
          Count{{{Pass::Forward, CollectiveKind::AllToAll}, 2}, {{Pass::InputGradient, CollectiveKind::AllToAll}, 2}});
    const double rows = layer.operations.back().rows;
    for (const Collective& c : joined(list)) CHECK(c.bytes.value == rows * 2 * 4096 * 2);  // Two experts a row.
    return;
  }
  FAIL("there is no layer with experts");
}

TEST_CASE("the dispatcher allgather moves the rows of all devices that hold experts, whichever experts they chose") {
  static const ModelGraph model = test::model_of(test::file_tree("models/mixtral-8x7b.yaml"));
  const auto layer = std::find_if(model.layers.begin(), model.layers.end(),
                                  [](const Layer& one) { return one.type == "experts_layer"; });
  REQUIRE(layer != model.layers.end());
  for (const int expert_tensor : {1, 2}) {
    CAPTURE(expert_tensor);
    StageShape divided = shape({.replicas = 16, .tensor = 2, .expert = 8, .sequence = true});
    divided.degrees.expert_tensor = expert_tensor;
    divided.dispatcher = ExpertDispatch::AllGather;
    const auto list = lists_of(layer->operations, divided, 1);
    CHECK(counts(list, Axis::Expert) == Count{{{Pass::Forward, CollectiveKind::AllGather}, 1},
                                              {{Pass::Forward, CollectiveKind::ReduceScatter}, 1},
                                              {{Pass::InputGradient, CollectiveKind::AllGather}, 1},
                                              {{Pass::InputGradient, CollectiveKind::ReduceScatter}, 1}});
    // Half of a sequence of each of 8 x expert_tensor devices, of 4096 numbers in bf16.
    const double rows = layer->operations.back().rows / 2.0 * 8 * expert_tensor;
    for (const Collective& c : joined(list))
      if (c.axis == Axis::Expert) CHECK(c.bytes.value == rows * 4096 * 2);
    const NodeShape node{.devices = 8};
    CHECK(group_of({.axis = Axis::Expert, .kind = CollectiveKind::AllGather}, divided, node).ranks ==
          8 * expert_tensor);
  }
}

}  // namespace stagecraft::layer_collectives_test
