// Real runs with groups of devices and divided states, against training without any division.

#include <doctest/doctest.h>

#include "backends/real/program_executor.hpp"
#include "backends/real/thread_communicator.hpp"
#include "sim/training/random.hpp"
#include "tests/backends/real/group_case.hpp"
#include "tests/support/patience.hpp"
#include "tests/support/trials.hpp"

namespace stagecraft::groups_test {

namespace {

using test::GroupCase;

test::Expected undivided(const ModelGraph& model, const GroupCase& c, const Training& training, int iterations) {
  return test::sequential(model, training, c.micro_batches, c.micro_batch_size, iterations);
}

/// To the last bit: sums of whole numbers do not depend on their order.
void compare_whole_numbers(const GroupCase& c) {
  const std::string text = to_text(c);
  CAPTURE(text);
  const ModelGraph model = test::divided_net(4, 8, 4, 8);
  const Training training = test::training_of(OptimizerKind::Integer, 1, "integers");
  const test::Expected expected = undivided(model, c, training, 3);
  REQUIRE(test::all_weights(undivided(model, c, training, 0).weights) != test::all_weights(expected.weights));
  const test::GroupRun run = test::run_group(model, c, training, 3);
  CHECK(run.learnt().losses == expected.losses);
  CHECK(test::all_weights(run.learnt().weights) == test::all_weights(expected.weights));
}

/// The gradient of a bias of keys is zero but for rounding, which Adam would enlarge; GPT has such biases.
void compare_model(const GroupCase& c, const ModelGraph& model, OptimizerKind optimizer) {
  const std::string text = to_text(c);
  CAPTURE(text);
  CAPTURE(model.name);
  const Training training = test::training_of(optimizer, 1e-2);
  const test::Expected expected = undivided(model, c, training, 3);
  const test::GroupRun run = test::run_group(model, c, training, 3);
  CHECK(test::relative_difference(run.learnt().losses, expected.losses) <= 1e-12);
  CHECK(test::relative_difference(test::all_weights(run.learnt().weights), test::all_weights(expected.weights)) <=
        1e-12);
}

void compare_decoder(const GroupCase& c, bool llama) {
  compare_model(c, test::decoder_net(2, llama, c.stages == 1), llama ? OptimizerKind::AdamW : OptimizerKind::Momentum);
}

}  // namespace

constexpr StateSharding kShardings[] = {StateSharding::Optimizer, StateSharding::Gradients, StateSharding::Weights};

TEST_CASE("tensor groups compute whole numbers as one device does, to the last bit") {
  for (const int tensor : {2, 4, 8})
    for (const bool sequence : {false, true})
      for (const int stages : {1, 2})
        compare_whole_numbers({.stages = stages, .degrees = {.tensor = tensor, .sequence = sequence}});
}

TEST_CASE("tensor groups, replicas and stages under several schedules, to the last bit") {
  for (const char* schedule : {"gpipe", "1f1b", "zb-h1", "graph"})
    for (const bool sequence : {false, true})
      compare_whole_numbers(
          {.schedule = schedule, .stages = 3, .degrees = {.replicas = 2, .tensor = 2, .sequence = sequence}});
}

TEST_CASE("a divided decoder trains as an undivided one, to rounding") {
  for (const bool llama : {false, true})
    for (const int tensor : {2, 4})
      for (const bool sequence : {false, true})
        for (const int stages : {1, 3})
          compare_decoder({.stages = stages, .degrees = {.tensor = tensor, .sequence = sequence}}, llama);
}

TEST_CASE("divided states change nothing in whole numbers, with and without tensor groups and stages") {
  for (const StateSharding sharding : kShardings)
    for (const bool reshard : {false, true})
      for (const char* schedule : {"gpipe", "zb-h1"}) {
        if (reshard && sharding != StateSharding::Weights) continue;
        compare_whole_numbers(
            {.schedule = schedule, .stages = 2, .degrees = {.replicas = 4}, .sharding = sharding, .reshard = reshard});
        compare_whole_numbers({.schedule = schedule,
                               .stages = 2,
                               .degrees = {.replicas = 2, .tensor = 2, .sequence = true},
                               .sharding = sharding,
                               .reshard = reshard});
      }
}

TEST_CASE("divided states of decoders train as undivided ones, to rounding") {
  for (const bool llama : {false, true})
    for (const StateSharding sharding : kShardings)
      for (const int tensor : {1, 2})
        compare_decoder({.stages = 2,
                         .degrees = {.replicas = 2, .tensor = tensor, .sequence = tensor > 1},
                         .sharding = sharding,
                         .reshard = sharding == StateSharding::Weights && tensor == 2},
                        llama);
}

TEST_CASE("recomputation repeats the collectives of the forward; loops share devices") {
  for (const Recomputation recomputation : {Recomputation::Full, Recomputation::Selective})
    compare_decoder({.stages = 2, .degrees = {.tensor = 2, .sequence = true}, .recomputation = recomputation}, true);
  compare_whole_numbers({.schedule = "looped-bfs",
                         .stages = 4,
                         .degrees = {.replicas = 2, .tensor = 2},
                         .sharding = StateSharding::Optimizer,
                         .loops = 2});
}

TEST_CASE("context groups divide the rows of a sample") {
  for (const int context : {2, 4})
    for (const int replicas : {1, 2})
      for (const StateSharding sharding : {StateSharding::None, StateSharding::Optimizer, StateSharding::Weights}) {
        compare_whole_numbers(
            {.stages = 2, .degrees = {.replicas = replicas, .context = context}, .sharding = sharding});
        compare_whole_numbers({.degrees = {.replicas = replicas, .context = context, .tensor = 2, .sequence = true},
                               .sharding = sharding});
        for (const bool llama : {false, true}) {
          compare_decoder({.stages = 2, .degrees = {.replicas = replicas, .context = context}, .sharding = sharding},
                          llama);
          compare_decoder({.degrees = {.replicas = replicas, .context = context, .tensor = 2, .sequence = true},
                           .sharding = sharding,
                           .recomputation = Recomputation::Selective},
                          llama);
        }
      }
}

TEST_CASE("keys and values around a ring, or heads for rows, make the same attention, to rounding") {
  for (const ContextExchange exchange : {ContextExchange::Ring, ContextExchange::AllToAll})
    for (const bool llama : {false, true})
      for (const int context : {2, 4})
        for (const int tensor : {1, 2})
          for (const Recomputation recomputation : {Recomputation::None, Recomputation::Selective, Recomputation::Full})
            if (!llama || exchange == ContextExchange::Ring || tensor * context <= 4)
              compare_decoder({.stages = 2,
                               .degrees = {.replicas = 2, .context = context, .tensor = tensor, .sequence = tensor > 1},
                               .exchange = exchange,
                               .recomputation = recomputation},
                              llama);
}

TEST_CASE("context groups keep windows and attention without a mask") {
  for (const ContextExchange exchange : {ContextExchange::Ring, ContextExchange::AllGather, ContextExchange::AllToAll})
    for (const int window : {0, 3}) {
      ModelGraph model = test::decoder_net(1, true);
      for (Layer& layer : model.layers)
        for (Operation& op : layer.operations)
          if (op.kind == OperationKind::Attention) op.causal = window > 0, op.window = window;
      compare_model({.degrees = {.context = 4}, .exchange = exchange}, model, OptimizerKind::AdamW);
    }
}

TEST_CASE("the weights of divided stages are evaluated as a whole") {
  const ModelGraph model = test::divided_net(4, 8, 4, 8, OperationKind::Tanh, OperationKind::MeanSquare);
  Training training = test::training_of(OptimizerKind::Momentum, 0.05, "teacher");
  training.evaluate_every = 2;
  const test::GroupRun whole = test::run_group(model, {}, training, 4);
  REQUIRE(whole.learnt().evaluations.size() == 3);
  CHECK(whole.learnt().evaluations.front().loss != whole.learnt().evaluations.back().loss);
  for (const StateSharding sharding : {StateSharding::None, StateSharding::Optimizer, StateSharding::Weights}) {
    const test::GroupRun run = test::run_group(
        model,
        {.stages = 2, .degrees = {.replicas = 2, .context = 2, .tensor = 2, .sequence = true}, .sharding = sharding},
        training, 4);
    REQUIRE(run.learnt().evaluations.size() == 3);
    for (int i = 0; i < 3; ++i) {
      CHECK(run.learnt().evaluations[i].updates == 2 * i);
      CHECK(run.learnt().evaluations[i].loss == doctest::Approx(whole.learnt().evaluations[i].loss).epsilon(1e-12));
    }
  }
}

TEST_CASE("random groups, replicas, stages, states and schedules") {
  Rng rng(17, "groups");
  const auto pick = [&](auto... options) {
    const std::common_type_t<decltype(options)...> list[] = {options...};
    return list[rng.integer(0, static_cast<int>(sizeof...(options)) - 1)];
  };
  for (int trial = 0; trial < test::trials(200, 10); ++trial) {
    GroupCase c;
    c.schedule = pick("gpipe", "1f1b", "zb-h1", "zb-2p", "eager-1f1b", "graph");
    c.stages = pick(1, 2, 4);
    c.degrees.tensor = pick(1, 2, 4);
    c.degrees.sequence = c.degrees.tensor > 1 && pick(0, 1) == 1;
    c.degrees.context = pick(1, 1, 2);
    c.exchange = pick(ContextExchange::Ring, ContextExchange::AllGather, ContextExchange::AllToAll);
    c.degrees.replicas = pick(1, 2, 4);
    c.sharding = static_cast<StateSharding>(pick(0, 1, 2, 3));
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
    if (c.stages < 4) compare_decoder(c, llama);
  }
}

TEST_CASE("devices that divide states hold their part of them alone") {
  constexpr int kReplicas = 4;
  const ModelGraph model = test::divided_net(4, 8, 32, 64);
  const Training training = test::training_of(OptimizerKind::Momentum, 1e-3);
  const auto memory = [&](StateSharding sharding, bool reshard = false, int tensor = 1) {
    const test::GroupRun run = test::run_group(
        model, {.degrees = {.replicas = kReplicas, .tensor = tensor}, .sharding = sharding, .reshard = reshard},
        training, 2);
    MeasuredMemory most_of_all = run.learnt().memory[DeviceId{0}];
    for (const MeasuredMemory& m : run.learnt().memory) {
      most_of_all.weights = std::max(most_of_all.weights, m.weights);
      most_of_all.gradients = std::max(most_of_all.gradients, m.gradients);
      most_of_all.optimizer = std::max(most_of_all.optimizer, m.optimizer);
    }
    return most_of_all;
  };
  const MeasuredMemory whole = memory(StateSharding::None);
  const double largest = 8.0 * (64 * 32 + 64);  // The operation with most weights.
  const double part = whole.weights.value / kReplicas;
  CHECK(memory(StateSharding::Optimizer).optimizer.value == part);
  CHECK(memory(StateSharding::Optimizer).gradients == whole.gradients);
  CHECK(memory(StateSharding::Gradients).optimizer.value == part);
  CHECK(memory(StateSharding::Gradients).gradients.value <= part + 2 * largest);
  CHECK(memory(StateSharding::Gradients).weights == whole.weights);
  CHECK(memory(StateSharding::Weights).weights.value == whole.weights.value + part);
  CHECK(memory(StateSharding::Weights, true).weights.value <= part + largest);
  CHECK(memory(StateSharding::Weights, true).gradients.value <= part + 2 * largest);
  // Two thirds of the weights are divided by the tensor group too.
  CHECK(memory(StateSharding::None, false, 4).weights.value < 0.5 * whole.weights.value);
}

TEST_CASE("a run of groups that diverges ends at once, with what it has learnt where that is asked for") {
  const ModelGraph model = test::divided_net(2, 8, 4, 8);
  const Training training = test::training_of(OptimizerKind::Sgd, 1e30);
  const GroupCase c{.stages = 2, .degrees = {.replicas = 2, .tensor = 2}, .sharding = StateSharding::Weights};
  CHECK_THROWS_WITH_AS(test::run_group(model, c, training, 20), doctest::Contains("not a finite number"), Infeasible);
  const test::GroupRun run = test::run_group(model, c, training, 20, {.one_thread = true});
  CHECK(run.learnt().diverged);
  CHECK(std::isfinite(run.learnt().losses.front()));
}

TEST_CASE("a member that fails or leaves does not hang its group") {
  class PairExchange : public real::Actions {
   public:
    explicit PairExchange(bool fails) : fails_(fails), group_(2, waits_) {}
    void compute(InstructionId id) override {
      if (id == InstructionId{0}) return group_.exchange(0, {}, sizeof(double), [](auto) {});
      if (fails_) throw BackendError("the other one has failed");
    }
    void carry(int) override {}
    void collective(int) override {}
    int waiting() const override { return waits_.waiting; }
    void interrupt() override {
      waits_.interrupted = true;
      group_.interrupt();
    }

   private:
    bool fails_;
    real::GroupWaits waits_;
    real::ThreadCommunicator group_;
  };
  Program program = test::real_program(
      "gpipe", test::plan_of(test::divided_net(1, 1, 4, 8), {.degrees = {.replicas = 2}}), test::policy("flush"), 1);
  REQUIRE(program.at(InstructionId{0}).device != program.at(InstructionId{1}).device);
  for (const bool fails : {true, false}) {
    PairExchange pair(fails);
    real::ExecutorOptions options;
    options.timeout = fails ? test::kHung : 0.3;
    CHECK_THROWS_WITH_AS(real::run_program(program, pair, nullptr, options),
                         doctest::Contains(fails ? "the other one has failed" : "nothing has moved for 0.3 s"),
                         BackendError);
  }
}

}  // namespace stagecraft::groups_test
