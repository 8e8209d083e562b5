// Real runs of experts, divided over groups of devices, against training on one device.

#include <doctest/doctest.h>

#include "sim/training/random.hpp"
#include "tests/backends/real/group_case.hpp"
#include "tests/support/trials.hpp"

namespace stagecraft::expert_groups_test {

namespace {

using test::GroupCase;

constexpr StateSharding kShardings[] = {StateSharding::None, StateSharding::Optimizer, StateSharding::Gradients,
                                        StateSharding::Weights};

/// To the last bit: sums of whole numbers do not depend on their order.
void compare_whole_numbers(const GroupCase& c) {
  const std::string text = to_text(c);
  CAPTURE(text);
  const ModelGraph model = test::experts_net(4, 8, 6, 4);
  const Training training = test::training_of(OptimizerKind::Integer, 1, "integers");
  const test::Expected expected = test::sequential(model, training, c.micro_batches, c.micro_batch_size, 3);
  const test::GroupRun run = test::run_group(model, c, training, 3);
  CHECK(run.learnt().losses == expected.losses);
  CHECK(test::all_weights(run.learnt().weights) == test::all_weights(expected.weights));
}

void compare_model(const GroupCase& c, const ModelGraph& model, OptimizerKind optimizer) {
  const std::string text = to_text(c);
  CAPTURE(text);
  CAPTURE(model.name);
  const Training training = test::training_of(optimizer, 1e-2);
  const test::Expected expected = test::sequential(model, training, c.micro_batches, c.micro_batch_size, 3);
  const test::GroupRun run = test::run_group(model, c, training, 3);
  CHECK(test::relative_difference(run.learnt().losses, expected.losses) <= 1e-12);
  CHECK(test::relative_difference(test::all_weights(run.learnt().weights), test::all_weights(expected.weights)) <=
        1e-12);
}

/// GPT has biases of keys, whose gradient is zero but for rounding, which Adam would enlarge.
void compare_mixture(const GroupCase& c, bool llama) {
  compare_model(c, test::mixture_net(2, llama), llama ? OptimizerKind::AdamW : OptimizerKind::Momentum);
}

}  // namespace

TEST_CASE("whole numbers of experts change with training, and rows go to several of them") {
  const ModelGraph model = test::experts_net(4, 8, 6, 4);
  const Training training = test::training_of(OptimizerKind::Integer, 1, "integers");
  const auto before = test::all_weights(test::sequential(model, training, 4, 4, 0).weights);
  const auto after = test::all_weights(test::sequential(model, training, 4, 4, 3).weights);
  // An expert of a layer has 2 x 6 x 4 numbers, and biases.
  int changed = 0;
  for (std::size_t i = 0; i < before.size(); ++i) changed += before[i] != after[i];
  CHECK(changed > 3 * 48);
  double largest = 0;
  for (const double x : after) largest = std::max(largest, std::abs(x));
  CHECK(largest < 0x1p20);  // So sums of products of such numbers are exact in doubles.
}

TEST_CASE("experts over replicas, tensor and context ranks compute whole numbers as one device does") {
  for (const int stages : {1, 2}) {
    for (const int expert : {1, 2, 4}) {
      compare_whole_numbers({.stages = stages, .degrees = {.replicas = 4, .expert = expert}});
      compare_whole_numbers({.stages = stages, .degrees = {.tensor = 4, .expert = expert, .sequence = true}});
      compare_whole_numbers({.stages = stages, .degrees = {.context = 4, .expert = expert}});
      compare_whole_numbers(
          {.stages = stages,
           .degrees = {.replicas = 2, .context = 2, .tensor = 2, .expert = expert, .sequence = true}});
    }
    for (const int expert_tensor : {2, 4})
      for (const int expert : {1, 2})
        compare_whole_numbers(
            {.stages = stages,
             .degrees = {
                 .replicas = 4, .tensor = 2, .expert = expert, .expert_tensor = expert_tensor, .sequence = true}});
  }
}

TEST_CASE("experts under several schedules and with divided states, to the last bit") {
  for (const StateSharding sharding : kShardings)
    for (const char* schedule : {"1f1b", "zb-h1"})
      for (const int tensor : {1, 2}) {
        compare_whole_numbers({.schedule = schedule,
                               .stages = 2,
                               .degrees = {.replicas = 4, .tensor = tensor, .expert = 2, .sequence = tensor > 1},
                               .sharding = sharding,
                               .reshard = sharding == StateSharding::Weights && tensor == 2});
        compare_whole_numbers({.schedule = "interleaved",
                               .stages = 4,
                               .degrees = {.replicas = 2, .tensor = tensor, .expert = 2, .sequence = tensor > 1},
                               .sharding = sharding,
                               .loops = 2});
      }
}

TEST_CASE("a divided mixture of experts trains as an undivided one, to rounding") {
  for (const bool llama : {false, true})
    for (const int expert : {1, 2, 4}) {
      compare_mixture({.stages = 2, .degrees = {.replicas = 4, .expert = expert}}, llama);
      compare_mixture({.degrees = {.replicas = 2, .tensor = 2, .expert = expert, .sequence = true}}, llama);
      compare_mixture({.degrees = {.context = 4, .expert = expert}, .exchange = ContextExchange::Ring}, llama);
      compare_mixture({.degrees = {.replicas = 2, .tensor = 4, .expert = expert, .expert_tensor = 2, .sequence = true},
                       .sharding = StateSharding::Optimizer},
                      llama);
    }
}

TEST_CASE("recomputation sends rows to experts again") {
  for (const Recomputation recomputation : {Recomputation::Full, Recomputation::Selective})
    compare_mixture({.stages = 2,
                     .degrees = {.replicas = 2, .tensor = 2, .expert = 4, .sequence = true},
                     .recomputation = recomputation},
                    true);
}

TEST_CASE("replicas with unequal samples, and experts without rows") {
  compare_mixture({.degrees = {.replicas = 4, .expert = 4}, .micro_batch_size = 6}, true);
  // One sample has two rows, so most of the eight experts of a layer have none.
  DecoderShape n = test::decoder_shape(1, true);
  n.sequence = 2, n.has_experts = true;
  n.experts = {.count = 8, .active = 1, .width = 4};
  compare_model({.degrees = {.replicas = 2, .expert = 2}, .micro_batches = 2, .micro_batch_size = 2},
                test::decoder_of(n, "few rows"), OptimizerKind::AdamW);
}

TEST_CASE("norms of heads and attention with keys from short vectors are divided over tensor groups") {
  DecoderShape normed = test::decoder_shape(2, true), latent = normed;
  normed.query_key_norm = true;
  latent.latent_attention = true;
  latent.latent = {.query = 6, .key_value = 5, .rope = 2, .nope = 3, .value = 4};
  DecoderShape direct = latent;
  direct.latent.query = 0;
  for (const int tensor : {1, 2, 4})
    for (const bool sequence : {false, true})
      for (const DecoderShape* shape : {&normed, &latent, &direct}) {
        if (sequence && tensor == 1) continue;
        const ModelGraph model = test::decoder_of(*shape, shape == &normed ? "norms of heads" : "latent attention");
        for (const Recomputation recomputation : {Recomputation::None, Recomputation::Selective})
          compare_model({.stages = 2,
                         .degrees = {.replicas = 2, .tensor = tensor, .sequence = sequence},
                         .sharding = StateSharding::Optimizer,
                         .recomputation = recomputation},
                        model, OptimizerKind::AdamW);
      }
}

TEST_CASE("each device holds its experts alone") {
  const ModelGraph model = test::experts_net(2, 8, 32, 64);
  const Training training = test::training_of(OptimizerKind::Momentum, 1e-3);
  const auto weights = [&](const Degrees& degrees) {
    const test::GroupRun run = test::run_group(model, {.degrees = degrees}, training, 1);
    double peak = 0;
    for (const MeasuredMemory& m : run.learnt().memory) peak = std::max(peak, m.weights.value);
    return peak;
  };
  const double experts = 2.0 * 8 * 8 * (2 * 32 * 64 + 32 + 64);  // Bytes of both layers.
  const double others = weights({.replicas = 4}) - experts;
  CHECK(weights({.replicas = 4, .expert = 2}) == doctest::Approx(experts / 2 + others));
  CHECK(weights({.replicas = 4, .expert = 4}) == doctest::Approx(experts / 4 + others));
  // Only the first of the expert-tensor ranks has the biases of the second products.
  CHECK(weights({.replicas = 4, .expert = 2, .expert_tensor = 2}) ==
        doctest::Approx((experts + 2.0 * 8 * 8 * 32) / 4 + others));
}

TEST_CASE("what experts cannot do is refused") {
  const Training training = test::training_of(OptimizerKind::Sgd, 1e-2);
  DecoderShape padded = test::decoder_shape(1, true);
  padded.has_experts = true;
  padded.experts = {.count = 8, .active = 2, .width = 4, .capacity = 1.25};
  CHECK_THROWS_WITH_AS(test::run_group(test::decoder_of(padded, "padded"), {}, training, 1),
                       doctest::Contains("layer 'l0' of the model 'padded' sends 20 rows in place of 2 x 8 to its "
                                         "experts: real backends neither drop nor pad rows"),
                       InputError);
  CHECK_THROWS_WITH_AS(test::run_group(test::mixture_net(1, true), {.degrees = {.tensor = 2}}, training, 1),
                       doctest::Contains("takes sequence parallelism in the tensor group"), InputError);
  DecoderShape latent = test::decoder_shape(1, true);
  latent.latent_attention = true, latent.latent = {.query = 6, .key_value = 5, .rope = 2, .nope = 3, .value = 4};
  CHECK_THROWS_WITH_AS(test::run_group(test::decoder_of(latent, "latent"), {.degrees = {.context = 2}}, training, 1),
                       doctest::Contains("do not divide over a context group"), InputError);
}

TEST_CASE("random groups with experts") {
  Rng rng(23, "experts");
  const auto pick = [&](auto... options) {
    const std::common_type_t<decltype(options)...> list[] = {options...};
    return list[rng.integer(0, static_cast<int>(sizeof...(options)) - 1)];
  };
  for (int trial = 0; trial < test::trials(300, 15); ++trial) {
    GroupCase c;
    c.schedule = pick("gpipe", "1f1b", "zb-h1", "zb-2p", "graph");
    c.stages = pick(1, 2);
    c.degrees.tensor = pick(1, 2, 4);
    c.degrees.sequence = c.degrees.tensor > 1;
    c.degrees.context = pick(1, 1, 2);
    c.exchange = pick(ContextExchange::Ring, ContextExchange::AllGather, ContextExchange::AllToAll);
    c.degrees.replicas = pick(1, 2, 4);
    c.degrees.expert = pick(1, 2, 4);
    c.degrees.expert_tensor = pick(1, 1, 2);
    while (c.degrees.devices() % (c.degrees.expert * c.degrees.expert_tensor) != 0)
      (c.degrees.expert > 1 ? c.degrees.expert : c.degrees.expert_tensor) /= 2;
    c.sharding = kShardings[rng.integer(0, 3)];
    c.reshard = c.sharding == StateSharding::Weights && pick(0, 1) == 1;
    if (pick(0, 0, 1) == 1) {
      c.schedule = pick("interleaved", "looped-bfs", "interleaved-zb");
      c.stages = 4, c.loops = 2;
    }
    const bool splits = c.schedule.find("zb") != std::string::npos;
    c.recomputation = splits ? Recomputation::None : pick(Recomputation::None, Recomputation::Full);
    compare_whole_numbers(c);
    const bool exchanges_heads = c.degrees.context > 1 && c.exchange == ContextExchange::AllToAll;
    const bool llama = pick(0, 1) == 1 && !(exchanges_heads && c.degrees.group() > 4);  // It has 4 key-value heads.
    if (c.stages < 4) compare_mixture(c, llama);
  }
}

}  // namespace stagecraft::expert_groups_test
