// Whole runs with the kernels for GPUs against the CPU: on a GPU that is emulated, in random orders, or on one that is
// there.
#include <doctest/doctest.h>

#include <cmath>

#include "backends/cuda/kernels/kernels.hpp"
#include "backends/cuda/run.hpp"
#include "tests/backends/real/group_case.hpp"
#include "tests/support/nets.hpp"
#include "tests/support/trials.hpp"
#ifdef STAGECRAFT_EMULATED_GPU
#include "tests/support/emulated_gpu/streams.hpp"
#endif

namespace stagecraft::device_test {

namespace {

#ifdef STAGECRAFT_EMULATED_GPU
constexpr int kOrders = 10;
void set_order(int order) {
  emulated_gpu::Machine m;
  m.order = static_cast<emulated_gpu::Order>(order % 3);
  m.seed = static_cast<std::uint64_t>(order) + 1;
  emulated_gpu::reset(m);
}
#else
constexpr int kOrders = 3;
void set_order(int) {}
#endif

struct Trial {
  std::string schedule = "1f1b", policy = "flush";
  ModelGraph model;
  Plan plan;
  Training training = test::training_of(OptimizerKind::Momentum, 0.01, "teacher");
  GpuMessages messages = GpuMessages::Copy;
  bool graph = false;
};

/// The largest difference, of numbers beyond 1 as a share of them.
double furthest(const Learnt& ours, const Learnt& theirs) {
  double worst = 0;
  const auto compare = [&](const std::vector<double>& a, const std::vector<double>& b) {
    REQUIRE(a.size() == b.size());
    for (std::size_t i = 0; i < a.size(); ++i)
      worst = std::max(worst, std::abs(a[i] - b[i]) / std::max(1.0, std::abs(b[i])));
  };
  compare(ours.losses, theirs.losses);
  for (std::size_t s = 0; s < theirs.weights.size(); ++s) compare(ours.weights[StageId{s}], theirs.weights[StageId{s}]);
  return worst;
}

/// Products may be summed in another order than on the CPU, but in the same one each time.
void compare(const Program& program, const Learnt& cpu, const GpuOptions& gpu_options, double bound,
             int orders = kOrders) {
  const auto maker = [](cudaStream_t stream, int multiprocessors, std::size_t width) {
    return cuda::make_kernels({stream, multiprocessors}, width);
  };
  std::optional<Learnt> first;
  for (int order = 0; order < orders; ++order) {
    CAPTURE(order);
    set_order(order);
    cuda::Options options;
    options.gpu = gpu_options;
    options.copy_kernel = cuda::copy_by_kernel;
    options.fills_new_memory = true;
    const Timeline gpu = cuda::run(program, maker, options);
    CHECK(furthest(*gpu.learnt, cpu) <= bound);
    if (!first) first = gpu.learnt;
    if (gpu_options.graph) CHECK(gpu.enqueued->launches == 2);
    CHECK(gpu.learnt->losses == first->losses);
    CHECK(gpu.learnt->weights == first->weights);
  }
}

GpuOptions as_graphs(GpuOptions options) {
  options.graph = true;
  options.timing = GpuTiming::Off;
  return options;
}

void compare(const Trial& t, double bound) {
  CAPTURE(t.schedule);
  const WeightsRule& rule = test::policy(t.policy);
  const Program program =
      test::with_workload(test::real_program(t.schedule, t.plan, rule, 3), t.model, t.plan, rule, t.training);
  GpuOptions options;
  options.messages = t.messages;
  compare(program, test::really_run(program, t.model, t.plan, rule, t.training, true).learnt(),
          t.graph ? as_graphs(options) : options, bound);
}

void compare_group(const test::GroupCase& c, const ModelGraph& model, const Training& training, double bound) {
  const std::string text = to_text(c);
  CAPTURE(text);
  const test::GroupRun cpu = test::run_group(model, c, training, 2);
  compare(cpu.program, cpu.learnt(), {}, bound, test::trials(kOrders, 1));
}

}  // namespace

TEST_CASE("doubles within rounding of the CPU, and the same bits each time") {
  for (const int depth : {2, 4, 8})
    for (const char* schedule : {"gpipe", "1f1b", "graph"}) {
      Trial t;
      t.schedule = schedule;
      t.model = test::deep_net(depth, 6, 8, 3);
      t.plan = test::stage_each(t.model, 4);
      compare(t, 1e-12);
    }
}

TEST_CASE("whole numbers are equal") {
  Trial t;
  t.model = test::deep_net(4, 6, 8, 3, OperationKind::Relu, OperationKind::SumSquare);
  t.plan = test::stage_each(t.model, 4);
  t.training = test::training_of(OptimizerKind::Integer, 1, "integers");
  compare(t, 0);
}

TEST_CASE("replicas and stale weights") {
  Trial t;
  t.model = test::deep_net(3, 6, 8, 3);
  t.plan = test::stage_each(t.model, 4, 4);
  t.plan.stages[StageId{1}].place_on({DeviceId{1}, DeviceId{3}});
  compare(t, 1e-12);
  t.schedule = t.policy = "2bw";
  t.plan = test::stage_each(t.model, 4);
  compare(t, 1e-12);
}

// gpu_check runs cases with NCCL in their name apart from the others: they take longer, and need an interface.
TEST_CASE("replicas and stale weights, messages by NCCL") {
  Trial t;
  t.model = test::deep_net(3, 6, 8, 3);
  t.plan = test::stage_each(t.model, 4, 4);
  t.plan.stages[StageId{1}].place_on({DeviceId{1}, DeviceId{3}});
  t.schedule = "pipedream";
  t.policy = "stash";
  t.messages = GpuMessages::Nccl;
  compare(t, 1e-12);
  t.schedule = t.policy = "2bw";
  t.plan = test::stage_each(t.model, 4);
  compare(t, 1e-12);
}

TEST_CASE("messages by a kernel, and iterations as graphs") {
  for (const OptimizerKind kind : {OptimizerKind::Momentum, OptimizerKind::Adam}) {
    Trial t;
    t.model = test::deep_net(4, 6, 8, 3);
    t.plan = test::stage_each(t.model, 4);
    t.training = test::training_of(kind, 0.01, "teacher");
    t.messages = GpuMessages::Kernel;
    compare(t, 1e-12);
    t.graph = true;
    compare(t, 1e-12);
  }
}

TEST_CASE("iterations as graphs, messages by NCCL") {
  Trial t;
  t.model = test::deep_net(4, 6, 8, 3);
  t.plan = test::stage_each(t.model, 4);
  t.training = test::training_of(OptimizerKind::Adam, 0.01, "teacher");
  t.messages = GpuMessages::Nccl;
  t.graph = true;
  compare(t, 1e-12);
}

TEST_CASE("groups of devices: tensor, context, divided states") {
  const ModelGraph decoder = test::decoder_net(1, false);
  const Training training = test::training_of(OptimizerKind::Momentum, 0.01);
  for (const bool sequence : {false, true})
    compare_group(
        {.stages = 2, .degrees = {.tensor = 2, .sequence = sequence}, .micro_batches = 1, .micro_batch_size = 2},
        decoder, training, 1e-12);
  for (const ContextExchange exchange : {ContextExchange::Ring, ContextExchange::AllGather, ContextExchange::AllToAll})
    compare_group({.degrees = {.context = 2}, .exchange = exchange, .micro_batches = 1, .micro_batch_size = 2}, decoder,
                  training, 1e-12);
  compare_group({.degrees = {.replicas = 2},
                 .sharding = StateSharding::Weights,
                 .reshard = true,
                 .micro_batches = 1,
                 .micro_batch_size = 2},
                decoder, training, 1e-12);
  compare_group({.stages = 2, .degrees = {.replicas = 2, .tensor = 2, .sequence = true}}, test::divided_net(2, 8, 4, 8),
                test::training_of(OptimizerKind::Integer, 1, "integers"), 0);
}

TEST_CASE("decoders with rotations, RMS norms, gates and shared keys, alone and in groups") {
  const ModelGraph llama = test::decoder_net(1, true);
  const Training training = test::training_of(OptimizerKind::Momentum, 0.01);
  compare_group({.micro_batches = 1, .micro_batch_size = 2}, llama, training, 1e-12);
  compare_group({.stages = 2, .degrees = {.tensor = 2, .sequence = true}, .micro_batches = 1, .micro_batch_size = 2},
                llama, training, 1e-12);
  for (const ContextExchange exchange : {ContextExchange::Ring, ContextExchange::AllGather, ContextExchange::AllToAll})
    compare_group({.degrees = {.context = 2, .tensor = 2}, .exchange = exchange, .micro_batches = 1}, llama, training,
                  1e-12);
  compare_group({.degrees = {.replicas = 2, .tensor = 2, .expert = 4, .sequence = true}, .micro_batches = 1},
                test::mixture_net(1, true), training, 1e-12);
}

TEST_CASE("groups of devices: experts, and experts on one device") {
  const Training training = test::training_of(OptimizerKind::Momentum, 0.01);
  const ModelGraph mixture = test::mixture_net(1, false);
  compare_group({.degrees = {.replicas = 2, .expert = 2}, .micro_batches = 1, .micro_batch_size = 2}, mixture, training,
                1e-12);
  compare_group({.micro_batches = 1, .micro_batch_size = 2}, mixture, training, 1e-12);
  compare_group({.degrees = {.replicas = 4, .expert = 2, .expert_tensor = 2}, .micro_batches = 1},
                test::experts_net(1, 8, 4, 8), test::training_of(OptimizerKind::Integer, 1, "integers"), 0);
}

}  // namespace stagecraft::device_test
