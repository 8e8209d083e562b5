#include <doctest/doctest.h>

#include <cmath>

#include "backends/real/stage_weights.hpp"
#include "sim/training/random.hpp"

namespace stagecraft::initial_weights_test {
namespace {

/// Two dense layers with more weights together than one thread draws.
Workload wide_workload() {
  constexpr int kWide = 1536;  // 2 * 1536^2 is more than 2^22.
  const Operation input{.kind = OperationKind::Input, .columns = kWide};
  const Operation dense{.kind = OperationKind::Linear, .inputs = {-1}, .columns = kWide, .inner = kWide};
  const Operation loss{.kind = OperationKind::MeanSquare, .inputs = {-1}, .columns = kWide};
  Workload w;
  w.layers = {{"input", {}, {input}, {}},
              {"first", {LayerId{0}}, {dense}, {}},
              {"second", {LayerId{1}}, {dense}, {}},
              {"loss", {LayerId{2}}, {loss}, {}}};
  StageWorkload& stage = w.stages.emplace_back();
  stage.layers = {LayerId{0}, LayerId{1}, LayerId{2}, LayerId{3}};
  stage.replicas = {{DeviceId{0}, {0, 1}}};
  w.parameters = 2 * dense.parameters();
  w.task = {{input}, {loss}, 1, 0};
  w.training.task = "random";
  return w;
}

}  // namespace

TEST_CASE("weights are each operation's own draws, however many threads draw them") {
  const Workload w = wide_workload();
  const real::StageNet net = real::compile_stage(w, StageId{0}, sizeof(float));
  const std::vector<double> weights = real::initial_weights(net, w, false);
  REQUIRE(weights.size() > (std::size_t{1} << 22));
  int operations = 0;
  for (const real::Node& node : net.nodes) {
    if (!node.owns_weights) continue;
    ++operations;
    Rng rng(w.training.seed, "weights of " + w.layers[LayerId{node.layer}].name + "." + std::to_string(node.place));
    const double deviation = std::sqrt(1.0 / node.operation->inner);
    for (std::size_t i = 0; i < 1000; ++i) REQUIRE(weights[node.weights + i] == deviation * normal(rng));
  }
  CHECK(operations == 2);
}

TEST_CASE("with few distinct weights an operation repeats its first ones") {
  const Workload w = wide_workload();
  const real::StageNet net = real::compile_stage(w, StageId{0}, sizeof(float));
  constexpr std::int64_t kDistinct = 1009;
  const std::vector<double> few = real::initial_weights(net, w, false, kDistinct),
                            weights = real::initial_weights(net, w, false);
  for (const real::Node& node : net.nodes) {
    if (!node.owns_weights) continue;
    const double* const numbers = few.data() + node.weights;
    for (std::int64_t i = 0; i < kDistinct; ++i)
      REQUIRE(numbers[i] == weights[node.weights + static_cast<std::size_t>(i)]);
    for (std::int64_t i = kDistinct; i < 4 * kDistinct; ++i) REQUIRE(numbers[i] == numbers[i - kDistinct]);
  }
}

}  // namespace stagecraft::initial_weights_test
