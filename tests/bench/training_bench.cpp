// One device trains: CPU seconds of forward, backward and update of one micro-batch, the least of many rounds, as JSON.
// training_bench FILE SAMPLES ROUNDS; the same model in PyTorch is torch_training.py.
#include <time.h>

#include <algorithm>
#include <cstdlib>
#include <limits>

#include <fmt/core.h>

#include "backends/cpu/kernels.hpp"
#include "backends/real/layer_runs.hpp"
#include "sim/experiment/experiment.hpp"
#include "sim/experiment/run.hpp"

using namespace stagecraft;

namespace {

double cpu_seconds() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

/// Adds up the passes of all nodes but the first, which makes the data.
class CpuStopwatch final : public real::Stopwatch {
 public:
  void start(real::LayerPass pass, std::size_t node) override {
    sum_ = node == 0 ? &data_ : pass == real::LayerPass::Forward ? &forward : &backward;
    since_ = cpu_seconds();
  }
  void stop() override { *sum_ += cpu_seconds() - since_; }

  double forward = 0, backward = 0;

 private:
  double data_ = 0, since_ = 0;
  double* sum_ = nullptr;
};

/// Adam on all weights at once, and zeroing of their gradients.
class Update {
 public:
  Update(const OptimizerRule& rule, std::int64_t count, real::Kernels& kernels)
      : rule_(rule), count_(count), kernels_(kernels), memory_(kernels) {
    for (real::Array* array : {&weights_, &gradient_, &first_, &second_}) {
      *array = real::Array(memory_, 1, count, real::Use::Weights);
      kernels.zero(array->data(), bytes());
    }
    state_.first = first_.data(), state_.second = second_.data();
  }
  double seconds() {
    const double start = cpu_seconds();
    kernels_.update(rule_, {}, count_, gradient_.data(), state_, weights_.data(), weights_.data());
    kernels_.zero(gradient_.data(), bytes());
    return cpu_seconds() - start;
  }

 private:
  std::size_t bytes() const { return static_cast<std::size_t>(count_) * kernels_.width(); }

  const OptimizerRule& rule_;
  std::int64_t count_;
  real::Kernels& kernels_;
  real::DeviceMemory memory_;
  real::Array weights_, gradient_, first_, second_;
  real::OptimizerState state_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  const int samples = std::atoi(argv[2]), rounds = std::atoi(argv[3]);
  const CompiledExperiment compiled = compile(load_experiment(argv[1], {}));
  const ProfileRequest request{*compiled.program.workload, {samples}};
  const auto kernels = cpu::make_kernels(sizeof(float));
  const std::vector<double> weights = real::profile_weights(request, sizeof(float));
  real::LayerRuns runs(request, samples, weights, *kernels);
  Update update(request.workload.training.optimizer, std::ssize(weights), *kernels);
  double forward = std::numeric_limits<double>::infinity(), backward = forward, step = forward;
  for (int round = 0; round < rounds + 1; ++round) {
    CpuStopwatch watch;
    runs.once(&watch);
    const double seconds = update.seconds();
    if (round == 0) continue;  // It touches memory for the first time.
    forward = std::min(forward, watch.forward), backward = std::min(backward, watch.backward);
    step = std::min(step, seconds);
  }
  fmt::print("{{\"forward\": {}, \"backward\": {}, \"update\": {}, \"parameters\": {}}}\n", forward, backward, step,
             request.workload.parameters);
}
