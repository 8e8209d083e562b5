#include <cmath>

#include <doctest/doctest.h>

#include "backends/cuda/kernels/counter.hpp"
#include "backends/cuda/launch_limit.hpp"
#include "tests/backends/cpu/trial.hpp"
#include "tests/backends/cuda/kernels/gpu.hpp"

namespace stagecraft::optimizer_test {
using test::Gpu;

namespace {

using enum OptimizerKind;

constexpr OptimizerKind kKinds[] = {Sgd, Momentum, Adam, AdamW, RmsProp, Integer};
constexpr Direction kDirections[] = {Direction::Optimizer, Direction::NextMomentum, Direction::Momentum,
                                     Direction::Geometric};

OptimizerRule rule_of(OptimizerKind kind) {
  OptimizerRule rule;
  rule.kind = kind;
  rule.learning_rate = 0.03;
  rule.weight_decay = kind == Integer ? 0 : 0.05;
  if (kind == Momentum) rule.dampening = 0.2;
  return rule;
}

std::vector<double> drawn(std::size_t count, OptimizerKind kind, Rng& rng) {
  std::vector<double> numbers(count);
  for (double& x : numbers) x = kind == Integer ? rng.integer(-3000, 3000) : rng.integer(-1024, 1024) / 1024.0;
  return numbers;
}

/// Weights and the state of their optimizer, on some device.
class Weights {
 public:
  /// `shift`: the number of its block that each array begins at.
  Weights(real::Kernels& kernels, const std::vector<double>& start, std::size_t shift = 0)
      : kernels_(kernels),
        size_(start.size()),
        before_(shift * kernels.width()),
        bytes_(before_ + size_ * kernels.width()) {
    for (void*& block : blocks_) {
      void* const begin = kernels.allocate(bytes_);
      kernels.zero(begin, bytes_);
      block = static_cast<char*>(begin) + before_;
    }
    kernels.upload(start, blocks_[0]);
    state_ = {blocks_[1], blocks_[2], blocks_[3], blocks_[4], blocks_[5], 0};
  }
  Weights(const Weights&) = delete;
  Weights& operator=(const Weights&) = delete;
  ~Weights() {
    if (state_.counter) kernels_.release(state_.counter, counter_bytes_);
    for (void* const block : blocks_) kernels_.release(static_cast<char*>(block) - before_, bytes_);
  }

  void update(const OptimizerRule& rule, const real::UpdateOptions& options, const std::vector<double>& gradient) {
    kernels_.upload(gradient, blocks_[6]);
    kernels_.update(rule, options, count(), blocks_[6], state_, blocks_[0], blocks_[0]);
  }
  /// From now on the device counts, up to `steps` steps.
  void count_steps(const OptimizerRule& rule, int steps) {
    const std::vector<double> numbers = cuda::counter::numbers(rule, steps);
    counter_bytes_ = numbers.size() * kernels_.width();
    state_.counter = kernels_.allocate(counter_bytes_);
    kernels_.upload(numbers, state_.counter);
  }
  void counted_update(const OptimizerRule& rule, const real::UpdateOptions& options,
                      const std::vector<double>& gradient) {
    state_.steps = 0;  // As a launch that is repeated would say.
    update(rule, options, gradient);
    const auto at = [&](std::int64_t n) {
      return real::Tensor{static_cast<char*>(state_.counter) + static_cast<std::size_t>(n) * kernels_.width(), 1, 1};
    };
    kernels_.add(at(cuda::counter::kOne), at(0));
  }
  std::vector<double> predicted(const OptimizerRule& rule, Direction direction, int horizon) {
    kernels_.predict(rule, direction, horizon, count(), state_, blocks_[0], blocks_[7]);
    return download(7);
  }
  std::vector<double> reconstructed(const OptimizerRule& rule, Reconstruction kind, int delay) {
    kernels_.reconstruct(rule, kind, delay, count(), state_, blocks_[0], blocks_[7]);
    return download(7);
  }
  /// Weights, then the whole state.
  std::vector<double> everything() {
    std::vector<double> numbers;
    for (int block = 0; block <= 5; ++block)
      for (const double x : download(block)) numbers.push_back(x);
    return numbers;
  }

 private:
  std::int64_t count() const { return static_cast<std::int64_t>(size_); }
  std::vector<double> download(int block) {
    std::vector<double> numbers(size_);
    kernels_.download(blocks_[block], numbers);
    return numbers;
  }

  real::Kernels& kernels_;
  std::size_t size_, before_, bytes_, counter_bytes_ = 0;
  void* blocks_[8] = {};
  real::OptimizerState state_;
};

struct Case {
  OptimizerKind kind;
  std::size_t width, count;
  real::UpdateOptions options;
};

std::vector<Case> cases() {
  std::vector<Case> result;
  constexpr std::size_t counts[] = {1, 33, 1000};
  for (const OptimizerKind kind : kKinds)
    for (const std::size_t width : test::kWidths)
      for (const auto average : {Reconstruction::UpdateAverage, Reconstruction::GradientAverage})
        for (const bool spike : {false, true})
          result.push_back({kind,
                            width,
                            counts[result.size() % 3],
                            {.rate_scale = 0.7, .delay = 5, .spike_compensation = spike, .reconstruction = average}});
  return result;
}

}  // namespace

// Nothing is summed and nothing contracted, and division and square root round as IEEE 754 says: the same bits.
TEST_CASE("updates, predictions and reconstructions have the bits of the CPU") {
  Rng rng(3, "optimizers");
  for (const Case& c : cases()) {
    CAPTURE(to_text(c.kind));
    CAPTURE(c.width);
    const OptimizerRule rule = rule_of(c.kind);
    Gpu gpu(c.width, c.count);
    const auto reference = cpu::make_kernels(c.width);
    std::vector<double> start = drawn(c.count, c.kind, rng);
    if (c.kind == Integer)
      for (double& w : start) w = rng.integer(-2, 2);
    Weights actual(gpu.kernels(), start), expected(*reference, start);
    for (int step = 0; step < 4; ++step) {
      for (const Direction direction : kDirections)
        for (const int horizon : {0, 1, 3})
          CHECK(actual.predicted(rule, direction, horizon) == expected.predicted(rule, direction, horizon));
      for (const int delay : {0, 1, 4})
        CHECK(actual.reconstructed(rule, c.options.reconstruction, delay) ==
              expected.reconstructed(rule, c.options.reconstruction, delay));
      const std::vector<double> gradient = drawn(c.count, c.kind, rng);
      actual.update(rule, c.options, gradient);
      expected.update(rule, c.options, gradient);
      CHECK(actual.everything() == expected.everything());
    }
  }
}

TEST_CASE("a step of Adam that the device counts has the bits of one that it is told") {
  Rng rng(4, "counted");
  constexpr std::size_t kCount = 500;
  constexpr int kSteps = 6;
  for (const OptimizerKind kind : {Adam, AdamW})
    for (const std::size_t width : test::kWidths) {
      const OptimizerRule rule = rule_of(kind);
      const real::UpdateOptions options{.reconstruction = Reconstruction::GradientAverage};
      Gpu gpu(width);
      const auto reference = cpu::make_kernels(width);
      const std::vector<double> start = drawn(kCount, kind, rng);
      Weights actual(gpu.kernels(), start), expected(*reference, start);
      actual.count_steps(rule, kSteps);
      for (int step = 0; step < kSteps; ++step) {
        const std::vector<double> gradient = drawn(kCount, kind, rng);
        actual.counted_update(rule, options, gradient);
        expected.update(rule, options, gradient);
        CHECK(actual.everything() == expected.everything());
      }
    }
}

TEST_CASE("updates have the bits of the CPU wherever their arrays begin, and whatever their length") {
  Rng rng(5, "places");
  for (const OptimizerKind kind : kKinds)
    for (const std::size_t width : test::kWidths)
      for (const std::size_t count : {1U, 3U, 4U, 6U, 1025U})
        for (const std::size_t shift : {0U, 1U, 2U}) {
          Gpu gpu(width, shift + 1);
          const auto reference = cpu::make_kernels(width);
          const std::vector<double> start = drawn(count, kind, rng);
          Weights actual(gpu.kernels(), start, shift), expected(*reference, start);
          for (int step = 0; step < 2; ++step) {
            const std::vector<double> gradient = drawn(count, kind, rng);
            actual.update(rule_of(kind), {.reconstruction = Reconstruction::UpdateAverage}, gradient);
            expected.update(rule_of(kind), {.reconstruction = Reconstruction::UpdateAverage}, gradient);
            CHECK(actual.everything() == expected.everything());
          }
        }
}

TEST_CASE("an update of all weights of a stage is one launch, for they are one array") {
  constexpr std::int64_t kCount = 100'000;
  constexpr std::size_t kBytes = kCount * 4;
  for (const OptimizerKind kind : kKinds) {
    CAPTURE(static_cast<int>(kind));
    Gpu gpu(4);
    void* blocks[4] = {};  // Weights, gradient and two moments.
    for (void*& block : blocks) {
      block = gpu.kernels().allocate(kBytes);
      gpu.kernels().zero(block, kBytes);
    }
    real::OptimizerState state{blocks[2], blocks[3], nullptr, nullptr, nullptr, 0};
    cuda::LaunchLimit limit;
    const cuda::LimitedLaunches limited(&limit);
    limit.share_queues(1);
    gpu.kernels().update(rule_of(kind), {}, kCount, blocks[1], state, blocks[0], blocks[0]);
    CHECK(limit.calls() == 1);
    REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
    limit.forget();
    for (void* const block : blocks) gpu.kernels().release(block, kBytes);
  }
}

}  // namespace stagecraft::optimizer_test
