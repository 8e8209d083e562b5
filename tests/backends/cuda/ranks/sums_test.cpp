// Gradients of replicas by an all-reduce of NCCL, which here adds in a tree: against the sum in the order of the
// replicas.
#include <doctest/doctest.h>

#include <cmath>
#include <cstdlib>
#include <deque>
#include <limits>

#include "backends/cuda/capture.hpp"
#include "backends/cuda/ranks/nccl_communicators.hpp"
#include "sim/core/diagnostic.hpp"
#include "sim/core/random.hpp"
#include "tests/backends/cuda/run/gpu_case.hpp"
#include "tests/support/devices.hpp"

namespace stagecraft::sums_test {

namespace {

/// One stage of a net on `replicas` devices; its gradients go through one sum an iteration.
test::Case replicated(int replicas) {
  test::Case c;
  c.model = test::deep_net(1, 6, 8, 3);
  c.plan = test::stage_each(c.model, 2 * replicas, replicas);
  c.plan.stages[StageId{0}].place_on(test::device_range(0, replicas));
  c.sums = GpuSums::Collective;
  return c;
}

/// Two of three stages have replicas.
test::Case pipeline() {
  test::Case c;
  c.model = test::deep_net(3, 6, 8, 3);
  c.plan = test::stage_each(c.model, 4, 4);
  c.plan.stages[StageId{0}].place_on({DeviceId{0}, DeviceId{4}});
  c.plan.stages[StageId{1}].place_on({DeviceId{1}, DeviceId{3}});
  c.sums = GpuSums::Collective;
  return c;
}

std::vector<emulated_gpu::Machine> gpus(int count, int orders) {
  std::vector<emulated_gpu::Machine> result = test::machines(orders);
  for (emulated_gpu::Machine& m : result) m.devices = count;
  return result;
}

void same_bits(test::Case c, int devices) {
  const Program program = c.program();
  REQUIRE(!program.collectives.empty());
  const Timeline cpu = test::on_cpu(c, program);
  for (const GpuMessages messages : {GpuMessages::Copy, GpuMessages::Nccl})
    for (const emulated_gpu::Machine& machine : gpus(devices, 4)) {
      c.messages = messages;
      const Timeline gpu = test::on_gpu(c, program, machine);
      REQUIRE(gpu.learnt->losses == cpu.learnt->losses);
      REQUIRE(gpu.learnt->weights == cpu.learnt->weights);
      REQUIRE(gpu.learnt->versions == cpu.learnt->versions);
    }
}

/// What each rank holds after an all-reduce of the shares.
template <class T>
std::vector<std::vector<T>> all_reduced(const std::vector<std::vector<T>>& shares) {
  const int count = static_cast<int>(shares.size());
  const Program program = replicated(count).program();
  const std::size_t numbers = shares.front().size();
  std::vector<cuda::GpuSlot> slots;
  for (int r = 0; r < count; ++r) slots.push_back({0, r});
  const auto alone = [](const std::string& text) { return std::vector{text}; };
  emulated_gpu::reset(gpus(count, 1).front());
  cuda::NcclCommunicators ranks(program, slots, 0, {false, true}, alone);
  ranks.open(cuda::at_most(10));
  std::deque<cuda::Block> blocks;
  std::vector<cuda::Summand> summands;
  for (int r = 0; r < count; ++r) {
    cuda::check(cudaSetDevice(r), "cudaSetDevice");
    void* const data = blocks.emplace_back(numbers * sizeof(T)).template as<void>();
    cudaStream_t stream = nullptr;
    cuda::check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "a stream");
    const auto& share = shares[r];
    cuda::check(cudaMemcpy(data, share.data(), numbers * sizeof(T), cudaMemcpyHostToDevice), "up");
    summands.push_back({DeviceId{r}, data, numbers, stream});
  }
  ranks.sum(0, sizeof(T), summands);
  std::vector<std::vector<T>> sums(shares.size(), std::vector<T>(numbers));
  for (std::size_t r = 0; r < sums.size(); ++r) {
    cuda::check(cudaStreamSynchronize(summands[r].stream), "the sum");
    cuda::check(cudaMemcpy(sums[r].data(), summands[r].data, numbers * sizeof(T), cudaMemcpyDeviceToHost), "down");
  }
  return sums;
}

// n numbers added in any order are within (n - 1) u / (1 - (n - 1) u) times the sum of their sizes of the true sum (N.
// J. Higham, Accuracy and Stability of Numerical Algorithms, 2002, section 4.2), so two orders are within twice that.
template <class T>
void compare_orders(int ranks) {
  constexpr std::size_t kNumbers = 1000;
  Rng rng(7, "shares");
  std::vector<std::vector<T>> shares(static_cast<std::size_t>(ranks), std::vector<T>(kNumbers));
  for (auto& share : shares)
    for (T& x : share) x = static_cast<T>(std::ldexp(rng.integer(-1024, 1024) / 3.0, rng.integer(-8, 8)));
  const std::vector<std::vector<T>> sums = all_reduced(shares);
  for (const auto& sum : sums) CHECK(sum == sums.front());
  const double u = std::numeric_limits<T>::epsilon() / 2, steps = ranks - 1;
  int others = 0;
  for (std::size_t i = 0; i < kNumbers; ++i) {
    T ordered{};
    double sizes = 0;
    for (const auto& share : shares) {
      ordered += share[i];
      sizes += std::abs(static_cast<double>(share[i]));
    }
    others += sums[0][i] != ordered;
    REQUIRE(std::abs(static_cast<double>(sums[0][i]) - static_cast<double>(ordered)) <=
            2 * steps * u / (1 - steps * u) * sizes);
  }
  CHECK((others > 0) == (ranks > 2));  // Or the order would be the same, and this test would show nothing.
}

}  // namespace

TEST_CASE("an all-reduce is within rounding of the sum in the order of the replicas, and the same on all of them") {
  for (const int ranks : {2, 3, 4, 8}) {
    compare_orders<float>(ranks);
    compare_orders<double>(ranks);
  }
}

TEST_CASE("whole numbers have one sum: the bits of the CPU, however many replicas") {
  for (const int replicas : {2, 3, 4}) {
    test::Case c = replicated(replicas);
    c.model = test::deep_net(1, 6, 8, 3, OperationKind::Relu, OperationKind::SumSquare);
    c.training = test::training_of(OptimizerKind::Integer, 1, "integers");
    same_bits(c, replicas);
  }
}

TEST_CASE("two replicas have one order of addition: the bits of the CPU") {
  same_bits(pipeline(), 5);
  test::Case c = pipeline();
  c.lowering.rendezvous = false;
  c.lowering.streams = StreamModel::None;
  same_bits(c, 5);
  c = pipeline();
  c.schedule = "pipedream";
  c.policy = "stash";
  same_bits(c, 5);
}

namespace {

/// Sum of the absolute values of all summands, number by number, for a net that adds only gradients of replicas.
std::vector<double> sizes;
class Measuring final : public test::QueuedCpu {
 public:
  Measuring(cudaStream_t stream, std::size_t width) : QueuedCpu(stream, width), on_(stream) {}
  void add(real::Tensor from, real::Tensor to) override {
    emulated_gpu::enqueue(on_, [from, to] {
      const bool first = sizes.empty();
      sizes.resize(static_cast<std::size_t>(from.size()), 0);
      for (std::size_t i = 0; i < sizes.size(); ++i)
        sizes[i] +=
            std::abs(static_cast<double*>(from.data)[i]) + (first ? std::abs(static_cast<double*>(to.data)[i]) : 0);
    });
    QueuedCpu::add(from, to);
  }

 private:
  cudaStream_t on_;
};

std::vector<double> weights_after(const test::Case& c, const Program& program) {
  emulated_gpu::reset(gpus(3, 1).front());
  cuda::Options options;
  options.gpu.sums = c.sums;
  options.warm_up = false;
  const auto maker = [](cudaStream_t stream, int, std::size_t width) -> std::unique_ptr<real::Kernels> {
    return std::make_unique<Measuring>(stream, width);
  };
  return cuda::run(program, maker, options).learnt->weights.front();
}

}  // namespace

TEST_CASE("three replicas that learn from another order of additions are within rounding") {
  test::Case c = replicated(3);
  c.iterations = 1;
  c.training = test::training_of(OptimizerKind::Sgd, 0.5, "teacher");
  const Program program = c.program();
  c.sums = GpuSums::Ordered;
  sizes.clear();
  const std::vector<double> ordered = weights_after(c, program);
  const std::vector<double> summed = sizes;
  c.sums = GpuSums::Collective;
  const std::vector<double> collective = weights_after(c, program);
  REQUIRE(ordered.size() == collective.size());
  REQUIRE(summed.size() >= ordered.size());
  // w - lr * g: gradients differ by 4 u of their sizes at most (see above, n = 3); then each product and each
  // difference is rounded once, on both sides.
  const double u = std::numeric_limits<double>::epsilon() / 2;
  for (std::size_t i = 0; i < ordered.size(); ++i) {
    const double moved = 0.5 * summed[i];
    REQUIRE(std::abs(ordered[i] - collective[i]) <=
            1.01 * (4 * u * moved + 2 * u * moved + 2 * u * std::abs(ordered[i])));
  }
  CHECK(ordered != collective);
}

TEST_CASE("replicas that share a GPU cannot be added up by NCCL, and that is said before anything runs") {
  const test::Case c = replicated(3);
  for (const int devices : {1, 2})
    CHECK_THROWS_WITH_AS(
        test::on_gpu(c, c.program(), gpus(devices, 1).front()),
        doctest::Contains("devices 0 and 1 of the plan, whose gradients an all-reduce of NCCL is to add "
                          "up, share GPU 0, which NCCL takes once"),
        InputError);
}

TEST_CASE("without replicas there is nothing to add up, so one GPU will do") {
  test::Case c = pipeline();
  c.plan = test::stage_each(c.model, 4);
  const Program program = c.program();
  CHECK(test::on_gpu(c, program, {}).learnt->weights == test::on_cpu(c, program).learnt->weights);
}

TEST_CASE("a rank that never comes: what waits is listed") {
  const test::Case c = replicated(3);
  emulated_gpu::reset(gpus(3, 1).front());
  setenv("STAGECRAFT_EMULATED_NCCL_SILENT", "4", 1);  // The second of three in the second sum.
  cuda::Options options;
  options.gpu.sums = c.sums;
  options.timeout = 0.5;
  options.warm_up = false;
  std::string said;
  try {
    cuda::run(c.program(), test::queued_cpu, options);
  } catch (const BackendError& e) {
    said = e.what();
  }
  unsetenv("STAGECRAFT_EMULATED_NCCL_SILENT");
  CAPTURE(said);
  CHECK(said.find("nothing has ended for 0.5 s, so the GPU is stuck:") != std::string::npos);
  CHECK(said.find("has not ended") != std::string::npos);
  CHECK(said.find("waits for") != std::string::npos);
}

TEST_CASE("a wait that is left out around a sum makes other numbers, whichever it is") {
  test::Case c = replicated(3);
  c.warm_up = false;  // Its numbers are dropped.
  c.iterations = 1;
  const Program program = c.program();
  const auto outcome = [&](const emulated_gpu::Machine& machine) -> IdVector<StageId, std::vector<double>> {
    try {
      return test::on_gpu(c, program, machine).learnt->weights;
    } catch (const Infeasible&) {  // NaNs.
      return {};
    }
  };
  const auto expected = outcome(gpus(3, 1).front());
  const std::int64_t waits = emulated_gpu::waits();
  constexpr std::int64_t kGates = 5;  // Three GPUs with two streams each: all streams but the first wait at a gate.
  REQUIRE(waits == kGates + 3 + 3);   // Each sum waits for its gradient, each update for its sum.
  for (std::int64_t ignored = kGates; ignored < waits; ++ignored) {
    CAPTURE(ignored);
    bool noticed = false;
    for (emulated_gpu::Machine machine : gpus(3, 30)) {
      machine.ignored_wait = ignored;
      noticed = noticed || outcome(machine) != expected;
    }
    CHECK(noticed);
  }
}

}  // namespace stagecraft::sums_test
