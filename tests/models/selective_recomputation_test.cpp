// Selective recomputation against the closed forms of Korthikanti et al., MLSys 2023: bytes of a layer and a
// micro-batch of b samples are 34 s b h + 5 a s^2 b when all is kept, 34 s b h without the inside of attention, 2 s b h
// with the input alone (table 2), and with t GPUs in a group (10 t + 24) s b h in place of 34 s b h. The recomputed
// operations are the 4 s^2 h of scores and context.

#include <doctest/doctest.h>

#include "sim/model/builder.hpp"
#include "sim/plan/stage_costs.hpp"
#include "tests/support/clusters.hpp"
#include "tests/support/planning.hpp"

namespace stagecraft::selective_recomputation_test {
namespace {

constexpr double s = 2048, h = 6144, a = 64, b = 4;  // The 22B network of the paper.
constexpr double kHidden = s * b * h, kInside = 5 * a * s * s * b;

ModelGraph gpt(const std::string& more = "") {
  const ModelBuilder& def = get_from(model_builders::catalog(), "builder", "transformer");
  return def.build(
      test::checked("{kind: gpt, layers: 4, hidden: 6144, heads: 64, sequence: 2048, vocabulary: 8, "
                    "precision: mixed, attention_dropout: true" +
                        more + "}",
                    *def.fields));
}

/// Devices of 1 TFLOP/s whose memory bandwidth never limits an op.
Cluster devices(int count, Bytes memory = {}) {
  Cluster cluster = test::star(count, 1e9, 0);
  cluster.types[DeviceTypeId{0}].peak = FlopRate{1e12};
  cluster.types[DeviceTypeId{0}].memory = memory;
  return cluster;
}

Planned in_stages(const ModelGraph& model, const std::string& recompute, const char* last = "lnf..loss") {
  std::string yaml = "stages:\n  - {layers: [tok..embed], device: d0, micro_batch_size: 4}\n";
  for (int l = 0; l < 4; ++l)
    yaml += "  - {layers: [l" + std::to_string(l) + "], device: d" + std::to_string(l + 1) +
            ", micro_batch_size: 4, recompute: " + recompute + "}\n";
  yaml += std::string("  - {layers: [") + last + "], device: d5, micro_batch_size: 4, recompute: " + recompute + "}\n";
  return test::planned("explicit", model, devices(6), yaml);
}

StageCost of_one_layer(const ModelGraph& model, const std::string& recompute) {
  const Cluster cluster = devices(6);
  return stage_costs(in_stages(model, recompute).plan, CostTable(model, cluster)).at(StageId{2}, 0);
}

}  // namespace

TEST_CASE("a layer keeps all, all but the inside of attention, or its input") {
  for (const double t : {1.0, 8.0}) {
    CAPTURE(t);
    const ModelGraph model = gpt(t > 1 ? ", tensor_parallel: 8" : "");
    const double stash = (10 * t + 24) * kHidden;
    const StageCost none = of_one_layer(model, "none"), selective = of_one_layer(model, "selective"),
                    full = of_one_layer(model, "full");
    CHECK(none.memory.stash.value == stash + kInside);
    CHECK(none.memory.recompute_peak.value == 0);
    CHECK(selective.memory.stash.value == stash);
    CHECK(selective.memory.recompute_peak.value == kInside);
    CHECK(full.memory.whole_stash().value == stash + kInside);
    CHECK(full.memory.stash.value == 2 * kHidden);
  }
  CHECK(of_one_layer(gpt(", tensor_parallel: 8, sequence_parallel: true"), "selective").memory.stash.value ==
        34 * kHidden);
}

TEST_CASE("a device of a tensor group keeps (10 t + 24) / t s b h bytes and its heads' inside of attention") {
  const ModelGraph model = gpt();
  const LayerId layer{2};
  for (const int t : {2, 4, 8}) {
    CAPTURE(t);
    const auto stash = [&](Recomputation recomputation, bool sequence) {
      return layer_memory(model, layer, recomputation, whole_samples(b), {.tensor = t, .sequence = sequence})
          .stash.value;
    };
    CHECK(stash(Recomputation::None, false) == doctest::Approx((10 + 24.0 / t) * kHidden + kInside / t));
    CHECK(stash(Recomputation::Selective, false) == doctest::Approx((10 + 24.0 / t) * kHidden));
    CHECK(stash(Recomputation::None, true) == doctest::Approx((34 * kHidden + kInside) / t));
    // Outputs of both norms and of the activation are computed again; masks of dropout stay.
    CHECK(stash(Recomputation::Outputs, false) == doctest::Approx((6 + 16.0 / t) * kHidden + kInside / t));
  }
}

TEST_CASE("a layer computes the inside of attention again in the input gradient") {
  const double forward = b * (24 * s * h * h + 4 * s * s * h) / 1e12, inside = b * 4 * s * s * h / 1e12;
  const StageCost none = of_one_layer(gpt(), "none"), selective = of_one_layer(gpt(), "selective");
  CHECK(none.forward.value == doctest::Approx(forward));
  CHECK(none.backward.value == doctest::Approx(2 * forward));
  CHECK(selective.forward == none.forward);
  CHECK(selective.weight_gradient == none.weight_gradient);
  CHECK(selective.input_gradient.value == doctest::Approx(forward + inside));
  CHECK(selective.backward.value == doctest::Approx(2 * forward + inside));
}

TEST_CASE("recomputed activations take memory for one layer at a time") {
  const ModelGraph model = gpt();
  const Cluster cluster = devices(1);
  const Planned one =
      test::planned("balanced", model, cluster, "{stages: 1, micro_batch_size: 4, recompute: selective}");
  const Planned plain = test::planned("balanced", model, cluster, "{stages: 1, micro_batch_size: 4}");
  const CostTable costs(model, cluster);
  const StageCost selective = stage_costs(one.plan, costs).at(StageId{0}, 0),
                  none = stage_costs(plain.plan, costs).at(StageId{0}, 0);
  CHECK((none.memory.stash - selective.memory.stash).value == 4 * kInside);
  CHECK(selective.memory.recompute_peak.value == kInside);
  CHECK(one.predicted.value - plain.predicted.value == doctest::Approx(4 * b * 4 * s * s * h / 1e12));
}

TEST_CASE("a stage without attention keeps all; a model without attention is refused") {
  const Plan plan = in_stages(gpt(), "selective").plan;
  CHECK(plan.stages[StageId{1}].shape.recomputes_attention());
  CHECK_FALSE(plan.stages[StageId{5}].shape.recomputes_attention());
  CHECK_FALSE(plan.stages[StageId{1}].shape.recomputes_all());
  CHECK(to_text(plan).find("micro-batch 4, selective recompute; to 2") != std::string::npos);
  const std::string refused = "recompute: no layer of the model keeps the inside of an attention";
  CHECK(test::input_error_of([] { in_stages(gpt(", flash_attention: true"), "selective"); }).find(refused) !=
        std::string::npos);
  for (const char* planner : {"balanced", "piper", "2bw"}) {
    CAPTURE(planner);
    const std::string stages = std::string(planner) == "balanced" ? "stages: 1, " : "";
    CHECK(test::input_error_of([&] {
            test::planned(planner, gpt(", flash_attention: true"), devices(1), "{" + stages + "recompute: selective}");
          }).find(refused) != std::string::npos);
  }
}

// A layer has 12 h^2 + 13 h parameters. With one sample a micro-batch all of it is 1.770 GB, without the inside of
// attention 0.428, the inside 1.342. The stages have a layer each; the first has an embedding too, of 0.2 GB.
TEST_CASE("piper recomputes selectively where all does not fit, and fully where this does not") {
  const ModelGraph model = gpt();
  const auto chosen = [&](double gibibytes) {
    std::string text;
    for (const Stage& stage : test::planned("piper", model, devices(4, Bytes{gibibytes * (1 << 30)}), "{}").plan.stages)
      text += stage.shape.recomputes_all() ? 'f' : stage.shape.recomputes_attention() ? 's' : 'n';
    return text;
  };
  // 16 bytes a parameter, 7.249 GB, and of the four stages 4, 3, 2 and 1 in flight; in GiB:
  //   all        13.3 and 0.2   11.7   10.0    8.4
  //   selective   9.6 and 0.2    9.2    8.8    8.4
  //   full        8.5 and 0.2    8.4    8.4    8.4
  CHECK(chosen(14) == "nnnn");
  CHECK(chosen(12.5) == "snnn");
  CHECK(chosen(11) == "ssnn");
  CHECK(chosen(9.9) == "sssn");
  CHECK(chosen(9) == "ffsn");
}

// Two layers a stage: of the insides, one alone is there at a time.
TEST_CASE("piper counts the inside of one attention per stage") {
  const ModelGraph model = gpt();
  const double weights = 16 * (12 * h * h + 13 * h), stash = 34 * s * h, inside = 5 * a * s * s;
  const double first = 2 * weights + 2 * 2 * stash + inside;
  const double embedding = 16 * (2048 + 8) * h + 2 * 2 * s;  // Its tokens wait for two micro-batches.
  const auto planned = [&](const char* recompute, double bytes) {
    return test::planned("piper", model, devices(2, Bytes{bytes}), std::string("{recompute: ") + recompute + "}");
  };
  for (const char* recompute : {"selective", "auto"}) {
    CAPTURE(recompute);
    const Planned tight = planned(recompute, 1.001 * (first + embedding));
    REQUIRE(tight.plan.stage_count() == 2);
    for (const Stage& stage : tight.plan.stages) CHECK(stage.shape.recomputes_attention());
    CHECK(tight.memory.value == first + embedding);
    CHECK_THROWS_AS(planned(recompute, 0.999 * (first + embedding)), Infeasible);
  }
}

TEST_CASE("2bw recomputes selectively if all does not fit, and fully if this does not") {
  const ModelGraph model = gpt();
  const auto chosen = [&](double bytes) {
    const Planned planned = test::planned("2bw", model, devices(4, Bytes{bytes}), "{largest_micro_batch: 1, batch: 8}");
    const Stage& first = planned.plan.stages[StageId{0}];
    return first.shape.recomputes_all() ? 'f' : first.shape.recomputes_attention() ? 's' : 'n';
  };
  // Appendix A.1.2 of the paper: 2 W, what else is kept of the weights, d A, or A, and d inputs; d = 4.
  const double weights = 18 * (12 * h * h + 13 * h), input = 2 * s * h, stash = 34 * s * h, inside = 5 * a * s * s;
  const double without = weights + 4 * (stash + inside) + 4 * input,
               selective = weights + 4 * stash + inside + 4 * input, full = weights + stash + inside + 4 * input,
               embedding = 18 * (2048 + 8) * h;
  CHECK(chosen(without + embedding) == 'n');
  CHECK(chosen(0.99 * without) == 's');
  CHECK(chosen(selective + embedding) == 's');
  CHECK(chosen(0.99 * selective) == 'f');
  CHECK(chosen(full + embedding) == 'f');
}

}  // namespace stagecraft::selective_recomputation_test
