// Groups of devices and divided states on the emulated GPU, against training without any division and against the CPU:
// the same kernels, so the same bits, in whatever order streams go on.
#include <doctest/doctest.h>

#include <algorithm>

#include "backends/cuda/enqueue_order.hpp"
#include "sim/core/diagnostic.hpp"
#include "sim/training/random.hpp"
#include "tests/backends/cuda/run/gpu_case.hpp"
#include "tests/backends/real/group_case.hpp"
#include "tests/support/trials.hpp"

namespace stagecraft::groups_on_gpu_test {

namespace {

using test::GroupCase;

struct GpuTrial {
  emulated_gpu::Machine machine;
  GpuTiming timing = GpuTiming::Events;
  bool graph = false;
  bool by_nccl = false;  ///< Messages, and sums of gradients.
};

Timeline on_gpu(const Program& program, const GpuTrial& trial) {
  emulated_gpu::reset(trial.machine);
  cuda::Options options;
  options.gpu.timing = trial.timing;
  options.gpu.graph = trial.graph;
  if (trial.by_nccl) options.gpu.messages = GpuMessages::Nccl, options.gpu.sums = GpuSums::Collective;
  options.fills_new_memory = true;
  return cuda::run(program, test::queued_cpu, options);
}

test::GroupRun compare(const ModelGraph& model, const GroupCase& c, const Training& training,
                       int orders = test::trials(6, 1), int gpus = 1) {
  const std::string text = to_text(c);
  CAPTURE(text);
  CAPTURE(model.name);
  CAPTURE(gpus);
  test::GroupRun cpu = test::run_group(model, c, training, 3);
  for (emulated_gpu::Machine machine : test::machines(orders)) {
    machine.devices = gpus;
    CAPTURE(machine.seed);
    const Timeline gpu = on_gpu(cpu.program, {machine});
    REQUIRE(gpu.learnt->losses == cpu.learnt().losses);
    REQUIRE(gpu.learnt->weights == cpu.learnt().weights);
    REQUIRE(gpu.learnt->versions == cpu.learnt().versions);
  }
  return cpu;
}

/// The CPU's groups compute what one device does, so whole numbers have its bits, too.
test::GroupRun compare_whole_numbers(const GroupCase& c, int orders = test::trials(6, 1), int gpus = 1) {
  const ModelGraph model = test::divided_net(4, 8, 4, 8);
  const Training training = test::training_of(OptimizerKind::Integer, 1, "integers");
  test::GroupRun cpu = compare(model, c, training, orders, gpus);
  const test::Expected expected = test::sequential(model, training, c.micro_batches, c.micro_batch_size, 3);
  CHECK(cpu.learnt().losses == expected.losses);
  CHECK(test::all_weights(cpu.learnt().weights) == test::all_weights(expected.weights));
  return cpu;
}

void compare_decoder(const GroupCase& c, bool llama = false, int orders = test::trials(6, 1), int gpus = 1) {
  compare(test::decoder_net(2, llama, c.stages == 1), c, test::training_of(OptimizerKind::Momentum, 1e-2), orders,
          gpus);
}

}  // namespace

TEST_CASE("tensor groups, replicas and stages compute whole numbers as one device does, to the last bit") {
  for (const bool sequence : {false, true}) {
    compare_whole_numbers({.degrees = {.tensor = 4, .sequence = sequence}});
    for (const char* schedule : {"1f1b", "zb-h1"})
      compare_whole_numbers(
          {.schedule = schedule, .stages = 2, .degrees = {.replicas = 2, .tensor = 2, .sequence = sequence}});
  }
}

TEST_CASE("decoders that tensor groups divide, with the words of embedding and loss, have the bits of the CPU") {
  for (const bool sequence : {false, true})
    for (const int stages : {1, 3}) compare_decoder({.stages = stages, .degrees = {.tensor = 2, .sequence = sequence}});
  compare_decoder({.stages = 2, .degrees = {.tensor = 4, .sequence = true}}, true);
}

constexpr StateSharding kShardings[] = {StateSharding::Optimizer, StateSharding::Gradients, StateSharding::Weights};

TEST_CASE("divided states change nothing, with and without tensor groups and stages") {
  for (const StateSharding sharding : kShardings)
    for (const bool reshard : {false, true}) {
      if (reshard && sharding != StateSharding::Weights) continue;
      compare_whole_numbers({.stages = 2, .degrees = {.replicas = 4}, .sharding = sharding, .reshard = reshard});
      compare_decoder({.schedule = "zb-h1",
                       .stages = 2,
                       .degrees = {.replicas = 2, .tensor = 2, .sequence = true},
                       .sharding = sharding,
                       .reshard = reshard});
    }
}

TEST_CASE("context groups exchange keys and values, around a ring or at once, or heads for rows") {
  for (const ContextExchange exchange :
       {ContextExchange::Ring, ContextExchange::AllGather, ContextExchange::AllToAll}) {
    compare_decoder({.stages = 2, .degrees = {.context = 4}, .exchange = exchange});
    compare_decoder({.degrees = {.context = 2, .tensor = 2, .sequence = true},
                     .sharding = StateSharding::Weights,
                     .exchange = exchange,
                     .recomputation = Recomputation::Selective});
  }
}

TEST_CASE("each row goes to the devices of its experts and back, with the bits of the CPU") {
  const Training whole = test::training_of(OptimizerKind::Integer, 1, "integers");
  const Training momentum = test::training_of(OptimizerKind::Momentum, 1e-2);
  compare(test::experts_net(2, 8, 4, 8), {.stages = 2, .degrees = {.replicas = 4, .expert = 2, .expert_tensor = 2}},
          whole);
  for (const bool llama : {false, true})
    compare(test::mixture_net(1, llama), {.degrees = {.replicas = 2, .tensor = 2, .expert = 4, .sequence = true}},
            momentum);
  compare(test::mixture_net(1, false),
          {.degrees = {.replicas = 4, .expert = 2}, .sharding = StateSharding::Weights, .micro_batches = 2}, momentum);
  compare(test::mixture_net(1, false), {}, momentum);
  const test::GroupRun cpu =
      test::run_group(test::experts_net(1, 4, 4, 8), {.degrees = {.replicas = 2, .expert = 2}}, whole, 2);
  CHECK(on_gpu(cpu.program, {{}, GpuTiming::Off, true}).enqueued->no_graph ==
        "the host has to know how many rows each expert gets");
}

TEST_CASE("random groups of experts on the emulated GPU") {
  Rng rng(29, "experts on the GPU");
  for (int trial = 0; trial < test::trials(60, 2); ++trial) {
    const int tensor = rng.integer(1, 2), context = rng.integer(1, 2), expert = 1 << rng.integer(0, 2);
    GroupCase c{.stages = rng.integer(1, 2),
                .degrees = {.replicas = 4 / context / tensor, .context = context, .tensor = tensor, .expert = expert},
                .exchange = static_cast<ContextExchange>(rng.integer(0, 2)),
                .micro_batches = 2};
    c.degrees.expert_tensor = rng.integer(1, expert < 4 ? 2 : 1);
    c.degrees.sequence = tensor > 1;
    c.sharding = static_cast<StateSharding>(rng.integer(0, 3));
    compare(test::mixture_net(1, false), c, test::training_of(OptimizerKind::Momentum, 1e-2), 1, 1 + trial % 2);
  }
}

TEST_CASE("recomputation repeats the collectives of the forward; loops share devices") {
  compare_decoder({.stages = 2, .degrees = {.tensor = 2}, .recomputation = Recomputation::Full});
  compare_whole_numbers({.schedule = "looped-bfs",
                         .stages = 4,
                         .degrees = {.replicas = 2, .tensor = 2},
                         .sharding = StateSharding::Optimizer,
                         .loops = 2});
}

TEST_CASE("iterations of groups as graphs, and on several GPUs") {
  for (const StateSharding sharding : {StateSharding::None, StateSharding::Weights}) {
    const test::GroupRun cpu =
        test::run_group(test::divided_net(2, 4, 4, 8, OperationKind::Tanh, OperationKind::MeanSquare),
                        {.degrees = {.replicas = 2, .tensor = 2}, .sharding = sharding},
                        test::training_of(OptimizerKind::Adam, 1e-2), 4);
    for (emulated_gpu::Machine machine : test::machines(test::trials(6, 1)))
      for (const bool graph : {false, true}) {
        machine.devices = graph ? 1 : 4;
        CAPTURE(machine.seed);
        CAPTURE(graph);
        const Timeline gpu = on_gpu(cpu.program, {machine, GpuTiming::Off, graph});
        REQUIRE(gpu.learnt->losses == cpu.learnt().losses);
        REQUIRE(gpu.learnt->weights == cpu.learnt().weights);
        if (!graph) continue;
        CHECK(gpu.enqueued->no_graph == "");
        CHECK(gpu.enqueued->launches == 3);
        CHECK(gpu.enqueued->graphs <= 1);  // Devices of odd and of even iterations come in two orders.
      }
  }
}

TEST_CASE("messages and sums of gradients by NCCL leave divided gradients to the groups") {
  emulated_gpu::Machine machine;
  machine.devices = 8;
  for (const StateSharding sharding : {StateSharding::None, StateSharding::Optimizer, StateSharding::Gradients}) {
    const test::GroupRun cpu =
        compare_whole_numbers({.stages = 2, .degrees = {.replicas = 2, .tensor = 2}, .sharding = sharding});
    const Timeline gpu = on_gpu(cpu.program, {.machine = machine, .by_nccl = true});
    CHECK(gpu.learnt->losses == cpu.learnt().losses);
    CHECK(gpu.learnt->weights == cpu.learnt().weights);
  }
}

TEST_CASE("devices of a group that do not reach each other's memory get copies: the same bits, as graphs too") {
  const Training training = test::training_of(OptimizerKind::Momentum, 1e-2);
  const GroupCase cases[] = {
      {.stages = 2, .degrees = {.tensor = 2, .sequence = true}},
      {.degrees = {.replicas = 2, .tensor = 2}, .sharding = StateSharding::Weights, .reshard = true},
      {.degrees = {.context = 4}, .exchange = ContextExchange::Ring},
      {.degrees = {.replicas = 4, .expert = 2}, .micro_batch_size = 6}};
  for (const GroupCase& c : cases) {
    const std::string text = to_text(c);
    CAPTURE(text);
    const bool experts = c.degrees.expert > 1;
    const test::GroupRun cpu = test::run_group(
        experts ? test::mixture_net(1, false) : test::decoder_net(2, false, c.stages == 1), c, training, 3);
    for (emulated_gpu::Machine machine : test::machines(test::trials(12, 3))) {
      machine.devices = machine.seed % 2 == 0 ? 2 : 4;
      machine.peer_access = false;
      const bool graph = machine.seed % 3 == 0;
      const Timeline gpu = on_gpu(cpu.program, {machine, graph ? GpuTiming::Off : GpuTiming::Events, graph});
      REQUIRE(gpu.learnt->losses == cpu.learnt().losses);
      REQUIRE(gpu.learnt->weights == cpu.learnt().weights);
      if (graph && !experts) CHECK(gpu.enqueued->launches == 2);
    }
  }
}

TEST_CASE("groups are enqueued in one order: all devices of a stage together, after everything they wait for") {
  const test::GroupRun run = test::run_group(
      test::divided_net(4, 8, 4, 8),
      {.schedule = "zb-h1", .stages = 2, .degrees = {.replicas = 2, .tensor = 2}, .sharding = StateSharding::Optimizer},
      test::training_of(OptimizerKind::Sgd, 1e-3), 2);
  const Program& p = run.program;
  std::vector<InstructionId> instructions;
  for (const InstructionId id : p.instructions.ids()) instructions.push_back(id);
  const std::vector<cuda::EnqueueUnit> order = cuda::enqueue_order(p, instructions);
  IdVector<InstructionId, int> place(p.size(), -1);
  int next = 0;
  for (const cuda::EnqueueUnit& unit : order) {
    const Instruction& first = p.at(unit.front());
    if (first.is_compute()) CHECK(unit.size() == 4);
    for (const InstructionId id : unit) {
      place[id] = next;
      CHECK(p.at(id).stage == first.stage);
      if (first.is_compute()) CHECK(p.at(id).number == first.number);
    }
    ++next;
  }
  for (const InstructionId id : instructions)
    for (const InstructionId w : p.waits_for(id))
      CHECK((place[w] >= 0 && (place[w] < place[id] || (place[w] == place[id] && !p.at(id).is_compute()))));
  std::reverse(instructions.begin(), instructions.end());
  CHECK(cuda::enqueue_order(p, instructions) == order);
  // Without the first computation of a device, its second one would meet the first one of the others.
  const auto computes = [&](InstructionId id) { return p.at(id).is_compute() && p.at(id).device == DeviceId{3}; };
  std::sort(instructions.begin(), instructions.end());
  instructions.erase(std::find_if(instructions.begin(), instructions.end(), computes));
  CHECK_THROWS_WITH_AS(cuda::enqueue_order(p, instructions),
                       "devices of a stage do not run the same instructions in the same order", InternalError);
}

TEST_CASE("a wait around an exchange that is left out makes other numbers, or is one of several") {
  const test::GroupRun cpu =
      test::run_group(test::divided_net(2, 4, 4, 8, OperationKind::Tanh, OperationKind::MeanSquare),
                      {.degrees = {.tensor = 2}}, test::training_of(OptimizerKind::Momentum, 1e-2, "teacher"), 1);
  on_gpu(cpu.program, {});
  const std::int64_t waits = emulated_gpu::waits();
  REQUIRE(waits > 60);
  int detected = 0, tried = 0;
  for (std::int64_t wait = waits / 2; wait < waits; wait += waits / 12) {
    ++tried;
    bool is_seen = false;
    for (emulated_gpu::Machine machine : test::machines(6)) {
      machine.ignored_wait = wait;
      try {
        is_seen = is_seen || on_gpu(cpu.program, {machine}).learnt->weights != cpu.learnt().weights;
      } catch (const Infeasible&) {  // NaNs.
        is_seen = true;
      }
      if (is_seen) break;
    }
    detected += is_seen;
  }
  CAPTURE(tried);
  CHECK(2 * detected >= tried);
}

TEST_CASE("a member that fails ends the run, and with it those that pause for it") {
  class Failing final : public test::QueuedCpu {
   public:
    using QueuedCpu::QueuedCpu;
    void forward(const real::Call& call) override {
      if (++forwards_ == 7) throw Infeasible("memory", "none is left", "more");
      QueuedCpu::forward(call);
    }

   private:
    int forwards_ = 0;
  };
  const test::GroupRun cpu = test::run_group(test::divided_net(2, 8, 4, 8), {.stages = 2, .degrees = {.tensor = 4}},
                                             test::training_of(OptimizerKind::Sgd, 1e-3), 2);
  emulated_gpu::reset();
  const auto maker = [](cudaStream_t stream, int, std::size_t width) {
    return std::make_unique<Failing>(stream, width);
  };
  CHECK_THROWS_WITH_AS(cuda::run(cpu.program, maker, {}), doctest::Contains("none is left"), Infeasible);
}

TEST_CASE("random groups, replicas, stages, states and schedules on the emulated GPU") {
  Rng rng(23, "groups on the GPU");
  const auto pick = [&](auto... options) {
    const std::common_type_t<decltype(options)...> list[] = {options...};
    return list[rng.integer(0, static_cast<int>(sizeof...(options)) - 1)];
  };
  for (int trial = 0; trial < test::trials(150, 3); ++trial) {
    GroupCase c;
    c.schedule = pick("gpipe", "1f1b", "zb-h1", "zb-2p", "eager-1f1b", "graph");
    c.stages = pick(1, 2, 4);
    c.degrees.tensor = pick(1, 2, 4);
    c.degrees.sequence = c.degrees.tensor > 1 && pick(0, 1) == 1;
    c.degrees.context = pick(1, 1, 2);
    c.exchange = pick(ContextExchange::Ring, ContextExchange::AllGather, ContextExchange::AllToAll);
    c.degrees.replicas = pick(1, 2);
    c.sharding = static_cast<StateSharding>(pick(0, 1, 2, 3));
    c.reshard = c.sharding == StateSharding::Weights && pick(0, 1) == 1;
    const int gpus = pick(1, 2, 4);
    if (c.stages < 4)
      compare_decoder(c, false, 1, gpus);
    else
      compare_whole_numbers(c, 1, gpus);
  }
}

}  // namespace stagecraft::groups_on_gpu_test
