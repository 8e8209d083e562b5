// Packed sequences: what grows with samples, with their tokens, and with their pairs of a query and a key.

#include "sim/cost/load.hpp"

#include <doctest/doctest.h>

#include "sim/cost/stage_cost.hpp"
#include "tests/support/clusters.hpp"
#include "tests/support/presets.hpp"

namespace stagecraft::load_test {
namespace {

const DeviceTypeId kType{0};
const Load kWhole = whole_samples(2);
const Load kTwoHalves{.samples = 2, .rows = 1, .pairs = 0.5};  ///< Two sequences of half the length in each sample.
const Load kHalf{.samples = 2, .rows = 0.5, .pairs = 0.25};    ///< One such sequence.

constexpr const char* kDecoder =
    "{builder: transformer, kind: gpt, layers: 2, hidden: 64, heads: 4, sequence: 32, vocabulary: 100, norm: rms, "
    "positions: rotary, gated: true, bias: false, tied: false, flash_attention: ";
const std::string kFused = std::string(kDecoder) + "true, precision: mixed", kUnfused = std::string(kDecoder) + "false";

std::shared_ptr<const ModelGraph> model_of(const std::string& fields) {
  config::Problems problems;
  const config::Value tree = config::parse_yaml(fields + "}", "test.yaml", problems);
  problems.throw_if_any();
  return std::make_shared<ModelGraph>(test::model_of(tree));
}

/// Devices on which arithmetic alone takes time, or moving bytes alone.
std::shared_ptr<const Cluster> devices(double peak, double memory) {
  auto cluster = std::make_shared<Cluster>(test::bare_cluster(1));
  cluster->types[kType].peak = FlopRate{peak}, cluster->types[kType].memory_bandwidth = Bandwidth{memory};
  return cluster;
}

CostTable by_shapes(std::shared_ptr<const ModelGraph> model) {
  auto rules = std::make_shared<CostRules>();
  Accelerator device;
  device.formats[NumberFormat::Bf16] = {.peak = FlopRate{1e12}, .share = 1};
  device.attention_forward = device.attention_backward = {.share = 1};
  device.type.memory_bandwidth = Bandwidth{1e13}, device.memory_share = device.permute_share = 1;
  device.tiles = {{1, 1}};
  device.grouped = {.share = 1};
  device.collectives = {.alpha = {}, .hop = {}, .bus = Bandwidth{1e9}};
  rules->accelerators.push_back(device);
  rules->node.devices = 8;
  rules->software.overlap[Overlap::Messages] = false;
  return {std::move(model), devices(0, 0), {}, std::move(rules)};
}

CostTable by_amounts(std::shared_ptr<const ModelGraph> model, double peak, double memory) {
  return {std::move(model), devices(peak, memory)};
}

StageShape stage(const ModelGraph& model, Degrees degrees = {}) {
  StageShape shape;
  for (const LayerId id : model.layers.ids()) shape.layers.push_back(id);
  shape.degrees = degrees;
  return shape;
}

Bytes bytes_of(const Collectives& list) {
  Bytes sum;
  for (const Collective& c : list) sum += c.rounds * c.bytes;
  return sum;
}

void check_equal(const MemoryUnits& a, const MemoryUnits& b) {
  CHECK(a.weights == b.weights);
  CHECK(a.gradients == b.gradients);
  CHECK(a.optimizer == b.optimizer);
}

}  // namespace

TEST_CASE("two sequences of half the length halve the scores of attention, and nothing else") {
  const auto model = model_of(kFused);
  const CostTable costs = by_shapes(model);
  const StageShape shape = stage(*model, {.context = 2, .tensor = 2});
  const StageCost whole = stage_cost(costs, shape, kType, kWhole), packed = stage_cost(costs, shape, kType, kTwoHalves);
  const auto check_pass = [](const TimeByClass& a, TimeByClass b) {
    CHECK(b.attention.value == doctest::Approx(a.attention.value / 2));
    b.attention = a.attention, b.context = a.context;  // Less attention hides less of a ring.
    CHECK(b.total().value == doctest::Approx(a.total().value));
  };
  check_pass(whole.passes.forward, packed.passes.forward);
  check_pass(whole.passes.backward, packed.passes.backward);
  CHECK(whole.passes.forward.attention.value > 0);
  CHECK(bytes_of(packed.collectives->passes.forward) == bytes_of(whole.collectives->passes.forward));
  CHECK(packed.memory.stash == whole.memory.stash);
  CHECK(packed.entering == whole.entering);
}

TEST_CASE("half of the tokens halve products, memory traffic, collectives, messages, stash and workspace") {
  const auto model = model_of(kFused);
  const CostTable costs = by_shapes(model);
  for (const Recomputation recomputation : {Recomputation::None, Recomputation::Layers, Recomputation::Outputs}) {
    StageShape shape = stage(*model, {.replicas = 2, .context = 2, .tensor = 2});
    shape.layers = {LayerId{2}, LayerId{3}, LayerId{4}, LayerId{5},
                    LayerId{6}};  // It receives what an embedding sends.
    shape.recomputation = recomputation;
    const StageCost whole = stage_cost(costs, shape, kType, kWhole), half = stage_cost(costs, shape, kType, kHalf);
    CHECK(half.passes.forward.products.value == doctest::Approx(whole.passes.forward.products.value / 2));
    CHECK(half.passes.forward.memory_bound.value == doctest::Approx(whole.passes.forward.memory_bound.value / 2));
    CHECK(half.passes.forward.tensor.value == doctest::Approx(whole.passes.forward.tensor.value / 2));
    CHECK(half.passes.forward.attention.value == doctest::Approx(whole.passes.forward.attention.value / 4));
    for (const auto pass : {&EachPass<Collectives>::forward, &EachPass<Collectives>::input_gradient,
                            &EachPass<Collectives>::backward, &EachPass<Collectives>::recompute})
      CHECK(bytes_of(half.collectives->passes.*pass).value ==
            doctest::Approx(bytes_of(whole.collectives->passes.*pass).value / 2));
    CHECK(half.entering.value == doctest::Approx(whole.entering.value / 2));
    CHECK(half.memory.stash.value == doctest::Approx(whole.memory.stash.value / 2));
    CHECK(half.memory.recompute_peak.value == doctest::Approx(whole.memory.recompute_peak.value / 2));
    CHECK((recomputation == Recomputation::None || whole.memory.recompute_peak.value > 0));
    check_equal(half.memory, whole.memory);  // Parameters are as many.
    CHECK(half.update == whole.update);
    CHECK(bytes_of(half.collectives->gradient_sum) == bytes_of(whole.collectives->gradient_sum));
  }
}

TEST_CASE("the copy of the scores of words has as many rows as there are tokens") {
  const auto model = model_of(kFused);
  StageShape loss;
  loss.layers = {LayerId{model->layers.size() - 1}};
  const auto workspace = [&](const Load& load) {
    return stage_cost(by_shapes(model), loss, kType, load).memory.workspace.value;
  };
  CHECK(workspace(kWhole) == 2 * 32 * 100 * 4);
  CHECK(workspace(kHalf) == 32 * 100 * 4);
  CHECK(output_of_sample(model->layers[loss.layers.front()], kHalf).value == 2);  // One number.
}

TEST_CASE("experts get the rows of the tokens that there are") {
  const auto model = model_of(kFused + ", experts: {count: 8, active: 2, width: 32}");
  const CostTable costs = by_shapes(model);
  const StageShape shape = stage(*model, {.replicas = 4, .expert = 4});
  const StageCost whole = stage_cost(costs, shape, kType, kWhole), half = stage_cost(costs, shape, kType, kHalf);
  CHECK(half.passes.forward.expert.value == doctest::Approx(whole.passes.forward.expert.value / 2));
  CHECK(half.passes.forward.products.value == doctest::Approx(whole.passes.forward.products.value / 2));
  CHECK(whole.passes.forward.expert.value > 0);
  CHECK(half.memory.stash.value == doctest::Approx(whole.memory.stash.value / 2));
}

TEST_CASE("an operation that works on samples has as much to do for any tokens") {
  Operation pooled{.kind = OperationKind::Linear, .inputs = {-1}, .columns = 8, .inner = 16, .per_token = false};
  pooled.division = Division::Row;
  const SoftwareStack software;
  const PassKernels whole = kernels_of(pooled, {}, kWhole, {}, software),
                    half = kernels_of(pooled, {}, kHalf, {}, software);
  CHECK(half.forward == whole.forward);
  CHECK(half.weight_gradient == whole.weight_gradient);
  const StageShape shape{.degrees = {.tensor = 2}};
  CHECK(bytes_of(collectives_of({pooled}, shape, {}, kHalf, 2).forward) ==
        bytes_of(collectives_of({pooled}, shape, {}, kWhole, 2).forward));
  pooled.per_token = true;
  CHECK(flops_of(kernels_of(pooled, {}, kHalf, {}, software).forward.front()).value == 2 * 8 * 16);

  // An image has as many patches as another one.
  const auto vit = std::make_shared<ModelGraph>(test::model_of(test::file_tree("models/vit-b16.yaml")));
  StageShape encoder;
  encoder.layers = {*vit->find("l0"), *vit->find("l1")};
  const CostTable costs = by_amounts(vit, 1e12, 1e12);
  const StageCost images = stage_cost(costs, encoder, kType, {.samples = 2, .rows = 1, .pairs = 1});
  CHECK(layer_memory(*vit, *vit->find("l1"), Recomputation::Selective, kHalf).stash ==
        layer_memory(*vit, *vit->find("l1"), Recomputation::Selective, kWhole).stash);
  CHECK(costs.at(*vit->find("l1"), kType, kHalf).forward == costs.at(*vit->find("l1"), kType, kWhole).forward);
  CHECK(images.forward.value > 0);
}

TEST_CASE("a window sees that a sequence is shorter only where it reaches across the end") {
  Operation op{.kind = OperationKind::Attention, .rows = 64, .columns = 16, .heads = 2, .causal = true, .fused = true};
  CHECK(pairs_factor(op, kTwoHalves) == 0.5);
  op.window = 48;  // Each half is within the window.
  CHECK(pairs_factor(op, kTwoHalves) == doctest::Approx(2 * (32 * 32 / 2.0) / (48 * 64 - 48 * 48 / 2.0)));
  op.window = 4;  // Only the first four rows of each half see fewer.
  CHECK(pairs_factor(op, kTwoHalves) == doctest::Approx(2 * (4 * 32 - 8.0) / (4 * 64 - 8.0)));
  CHECK(pairs_factor(op, kHalf) == doctest::Approx((4 * 32 - 8.0) / (4 * 64 - 8.0)));
  CHECK(pairs_factor(op, kWhole) == 1);
}

TEST_CASE("without software, amounts follow from the shares of operations") {
  const auto model = model_of(kUnfused);
  const LayerId id = *model->find("l0");
  const Layer& layer = model->layers[id];
  const CostTable arithmetic = by_amounts(model, 1e12, 0);
  const auto forward = [&](const Load& load) { return arithmetic.at(id, kType, load).forward.value; };
  const double core = layer.core.forward.value, rest = layer.forward.value - core;
  REQUIRE(core > 0);
  CHECK(forward(kWhole) == doctest::Approx(2 * (rest + core) / 1e12));
  CHECK(forward(kTwoHalves) == doctest::Approx(2 * (rest + core / 2) / 1e12));
  CHECK(forward(kHalf) == doctest::Approx(2 * (rest / 2 + core / 4) / 1e12));
  // The share that selective recomputation repeats.
  CHECK(arithmetic.at(id, kType, kTwoHalves).core == doctest::Approx(core / 2 / (rest + core / 2)));

  // Bytes: the weights once, and the arrays of each sample.
  const CostTable traffic = by_amounts(model, 0, 1e12);
  const double weights = layer.parameters * model->precision.weight, arrays = 2 * layer.output.value;
  CHECK(traffic.at(id, kType, kTwoHalves).forward.value == doctest::Approx((weights + 2 * arrays) / 1e12));
  CHECK(traffic.at(id, kType, kHalf).forward.value == doctest::Approx((weights + arrays) / 1e12));

  // The scores of attention are pairs, all other arrays rows.
  const auto stash = [&](Recomputation recomputation, const Load& load) {
    return layer_memory(*model, id, recomputation, load).stash.value;
  };
  const double scores = layer.core.stash.value, others = (layer.stash - layer.core.stash).value;
  CHECK(stash(Recomputation::None, kWhole) == doctest::Approx(2 * (others + scores)));
  CHECK(stash(Recomputation::None, kTwoHalves) == doctest::Approx(2 * (others + scores / 2)));
  CHECK(stash(Recomputation::None, kHalf) == doctest::Approx(2 * (others / 2 + scores / 4)));
  CHECK(stash(Recomputation::Selective, kHalf) == doctest::Approx(others));
}

TEST_CASE("what is known of whole samples alone is not known of packed sequences") {
  const auto model = model_of(kUnfused);
  const LayerId layer = *model->find("l0");
  CHECK(test::input_error_of([&] { by_shapes(model).passes(layer, {}, kType, kTwoHalves); }) ==
        "0: : attention that is not fused multiplies whole samples, so its time for packed sequences is not known [a "
        "model with flash_attention: true]\n");
  CHECK(by_shapes(model).passes(layer, {}, kType, kWhole).forward.time.attention.value > 0);

  ModelGraph timed = *model;
  timed.layers[layer].times = LayerTimes{{1}, {1}, {1}};
  const std::string refusal =
      "0: : layer 'l0' has amounts or times of whole samples, so what it takes for packed sequences is not known [a "
      "model that lists its operations and has no given times]\n";
  const Cluster cluster = test::bare_cluster(1);
  CHECK(test::input_error_of([&] { CostTable(timed, cluster).at(layer, kType, kTwoHalves); }) == refusal);
  CHECK(CostTable(timed, cluster).at(layer, kType, kWhole).forward.value == 2);

  ModelGraph bare = *model;
  bare.layers[layer].operations.clear();
  CHECK(test::input_error_of([&] { CostTable(bare, cluster).at(layer, kType, kHalf); }) == refusal);
  CHECK(test::input_error_of([&] { layer_memory(bare, layer, Recomputation::None, kHalf); }) == refusal);
}

TEST_CASE("a profile has times of whole samples, so packed sequences take what their shapes say") {
  const auto model = model_of(kFused);
  const LayerId layer = *model->find("l0");
  auto cluster = std::make_shared<Cluster>(*devices(1e12, 0));
  cluster->types[kType].name = "measured";
  auto profile = std::make_shared<Profile>();
  profile->device = "measured";
  profile->layers.push_back(
      {.layer = signature(model->layers[layer].operations, model->precision), .samples = 2, .forward = Seconds{9}});
  const CostTable costs(model, cluster, Profiles{profile}), computed(model, cluster);
  CHECK(costs.at(layer, kType, kWhole).forward.value == 9);
  CHECK(costs.at(layer, kType, kHalf).forward == computed.at(layer, kType, kHalf).forward);
}

}  // namespace stagecraft::load_test
