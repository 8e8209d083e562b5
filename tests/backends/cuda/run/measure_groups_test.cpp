// Profiles of groups of devices on the emulated GPU, with the kernels of the CPU in its streams. Its clock is not that
// of a GPU: a kernel takes 10 us and a call of the host 1 us.
#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "backends/cuda/measure.hpp"
#include "sim/core/diagnostic.hpp"
#include "tests/backends/cuda/run/gpu_case.hpp"
#include "tests/backends/real/group_case.hpp"

namespace stagecraft::measure_groups_test {

namespace {

using test::GroupCase;

Profile profile_of(const ModelGraph& model, const GroupCase& c, const cuda::KernelMaker& maker = test::queued_cpu,
                   int gpus = 1, GpuSums sums = GpuSums::Ordered) {
  emulated_gpu::Machine machine;
  machine.devices = gpus;
  emulated_gpu::reset(machine);
  const test::GroupRun run = test::run_group(model, c, test::training_of(OptimizerKind::Momentum, 1e-2), 1);
  ProfileRequest request{*run.program.workload, {2}};
  request.threads = run.program.devices;
  request.seconds = 0;
  request.gpu.sums = sums;
  return cuda::measure(request, maker, {});
}

using Kinds = std::set<CollectiveKind>;
Kinds kinds_of(const Profile& p, CollectiveUse use, int ranks) {
  Kinds kinds;
  for (const MeasuredCollective& c : p.collectives)
    if (c.use == use && c.ranks == ranks) kinds.insert(c.kind);
  return kinds;
}

const GroupCase kTensor{.degrees = {.tensor = 2}, .micro_batches = 2};

}  // namespace

TEST_CASE("a profile on GPUs has the layers and the collectives of each kind of group") {
  using enum CollectiveKind;
  const ModelGraph llama = test::decoder_net(1, true);
  struct Expected {
    GroupCase divided;
    std::string group;
    Kinds ops;
  };
  const Expected cases[] = {
      {{.stages = 2, .degrees = {.tensor = 2, .sequence = true}, .micro_batches = 2},
       "tensor 2, sequence",
       {AllReduce, AllGather, ReduceScatter}},
      {{.degrees = {.context = 2}, .exchange = ContextExchange::AllToAll}, "context 2 a2a", {AllToAll}},
      {{.degrees = {.context = 2}, .exchange = ContextExchange::AllGather},
       "context 2 all_gather",
       {AllGather, ReduceScatter}},
      {{.degrees = {.context = 2}, .exchange = ContextExchange::Ring}, "context 2 p2p", {}}};
  for (const Expected& e : cases) {
    CAPTURE(e.group);
    const Profile p = profile_of(llama, e.divided);
    CHECK(p.threads == 2 * e.divided.stages);
    CHECK(kinds_of(p, CollectiveUse::Ops, 2) == e.ops);
    CHECK(p.layers.size() == 6);  // Input, embedding, block, norm, head and loss.
    for (const MeasuredLayer& layer : p.layers) CHECK(layer.group == e.group);
    for (const MeasuredLayer& layer : p.layers) CHECK(layer.forward.value >= 0);
    for (const MeasuredCollective& c : p.collectives) CHECK(c.time.value > 0);
  }
}

TEST_CASE("a profile on GPUs has the exchanges of experts") {
  const Profile p =
      profile_of(test::mixture_net(1, true), {.degrees = {.replicas = 2, .expert = 2}, .micro_batches = 2});
  CHECK(p.threads == 2);
  CHECK(kinds_of(p, CollectiveUse::Ops, 2) == Kinds{CollectiveKind::AllToAll});
  CHECK(std::all_of(p.layers.begin(), p.layers.end(), [](const MeasuredLayer& l) { return l.group == "expert 2"; }));
}

TEST_CASE("a profile on GPUs has what divided states exchange, in the sizes of their layers if each pass does it") {
  using enum CollectiveKind;
  const ModelGraph model = test::divided_net(2, 4, 4, 8);
  const auto profile = [&](StateSharding sharding, bool reshard = false) {
    const Profile p =
        profile_of(model, {.degrees = {.replicas = 2}, .sharding = sharding, .reshard = reshard, .micro_batches = 2});
    for (const MeasuredCollective& c : p.collectives) {
      CHECK(c.use == CollectiveUse::Parameters);
      CHECK(c.ranks == 2);
      CHECK(c.time.value > 0);
    }
    return p;
  };
  const auto bytes_of = [](const Profile& p, CollectiveKind kind) {
    std::set<double> bytes;
    for (const MeasuredCollective& c : p.collectives)
      if (c.kind == kind) bytes.insert(c.bytes.value);
    return bytes;
  };
  // Two layers of 4 x 8 + 8, 8 x 4 + 4 and 4 x 4 + 4 numbers, whose blocks begin at 64 bytes.
  const double whole = 8 * model.parameters(), layer = 8 * (32 + 8 + 32 + 8 + 16 + 8);
  REQUIRE(whole == 8 * 2 * 96);
  const std::set<double> in_updates{whole, whole / 8, whole / 64}, in_passes{layer};
  const Profile optimizer = profile(StateSharding::Optimizer), gradients = profile(StateSharding::Gradients);
  const Profile weights = profile(StateSharding::Weights, true);
  CHECK(bytes_of(optimizer, ReduceScatter) == in_updates);
  CHECK(bytes_of(optimizer, AllGather) == in_updates);
  CHECK(bytes_of(gradients, ReduceScatter) == in_passes);
  CHECK(bytes_of(weights, ReduceScatter) == in_passes);
  CHECK(bytes_of(gradients, AllGather) == in_updates);
  CHECK(bytes_of(weights, AllGather) == in_passes);
}

TEST_CASE("a device that waits for its group in a collective does not charge its layer for it") {
  constexpr double kSlow = 1e-3;
  class Slow final : public test::QueuedCpu {
   public:
    Slow(cudaStream_t stream, std::size_t width) : QueuedCpu(stream, width), stream_(stream) {}
    void forward(const real::Call& call) override {
      if (call.operation->kind == OperationKind::Relu)
        emulated_gpu::enqueue(
            stream_, [] {}, kSlow);
      QueuedCpu::forward(call);
    }

   private:
    cudaStream_t stream_;
  };
  int queues = 0;
  const auto maker = [&](cudaStream_t stream, int, std::size_t width) -> std::unique_ptr<real::Kernels> {
    if (++queues % 2 == 0) return std::make_unique<Slow>(stream, width);
    return std::make_unique<test::QueuedCpu>(stream, width);
  };
  const ModelGraph model = test::divided_net(1, 4, 4, 8);
  const Profile usual = profile_of(model, kTensor), slow = profile_of(model, kTensor, maker);
  const auto layer = [](const Profile& p) {
    return *std::find_if(p.layers.begin(), p.layers.end(),
                         [](const MeasuredLayer& l) { return l.layer.find("relu") != std::string::npos; });
  };
  const auto sum = [](const Profile& p) {
    return p.collective(CollectiveKind::AllReduce, CollectiveUse::Ops, 2, Bytes{8 * 2 * 4 * 4})->value;
  };
  // One of two devices takes 1 ms longer, and the other waits as long for it in the sum: means are half of that.
  const auto longer = [&](double with, double without) { return (with - without) / (kSlow / 2); };
  CHECK(longer(layer(slow).forward.value, layer(usual).forward.value) == doctest::Approx(1).epsilon(0.01));
  CHECK(longer(sum(slow), sum(usual)) == doctest::Approx(1).epsilon(0.01));
  CHECK(longer(layer(slow).weight_gradient.value, layer(usual).weight_gradient.value) ==
        doctest::Approx(0).epsilon(0.01));
}

TEST_CASE("groups on several GPUs are measured, and sums of gradients by NCCL are not") {
  const GroupCase c{.degrees = {.replicas = 2, .tensor = 2}, .micro_batches = 2};
  const ModelGraph model = test::divided_net(1, 4, 4, 8);
  const Profile ordered = profile_of(model, c, test::queued_cpu, 4);
  CHECK(ordered.threads == 4);
  CHECK(!ordered.gpu);
  CHECK(kinds_of(ordered, CollectiveUse::Parameters, 2) == Kinds{CollectiveKind::AllReduce});
  const Profile by_nccl = profile_of(model, c, test::queued_cpu, 4, GpuSums::Collective);
  CHECK(kinds_of(by_nccl, CollectiveUse::Parameters, 2).empty());
  CHECK(kinds_of(by_nccl, CollectiveUse::Ops, 2) == Kinds{CollectiveKind::AllReduce});
}

TEST_CASE("a member that fails ends the measurement, and with it those that pause for it") {
  class Failing final : public test::QueuedCpu {
   public:
    using QueuedCpu::QueuedCpu;
    void weight_gradient(const real::Call& call, real::Tensor d_output, void* d_weights) override {
      if (++calls_ == 7) throw Infeasible("memory", "none is left", "more");
      QueuedCpu::weight_gradient(call, d_output, d_weights);
    }

   private:
    int calls_ = 0;
  };
  const auto maker = [](cudaStream_t stream, int, std::size_t width) {
    return std::make_unique<Failing>(stream, width);
  };
  CHECK_THROWS_WITH_AS(profile_of(test::divided_net(1, 4, 4, 8), kTensor, maker), doctest::Contains("none is left"),
                       Infeasible);
}

}  // namespace stagecraft::measure_groups_test
