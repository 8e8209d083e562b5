#pragma once

#include <span>
#include <vector>

#include "backends/cpu/kernels.hpp"

namespace stagecraft::test {

/// Weights with all the state that any optimizer, prediction or reconstruction wants.
template <class T>
struct Trained {
  explicit Trained(std::vector<T> start)
      : weights(std::move(start)), first(size()), second(size()), last(size()), bare(size()), average(size()) {}
  std::size_t size() const { return weights.size(); }
  std::int64_t count() const { return static_cast<std::int64_t>(weights.size()); }

  /// The state from number `offset` on.
  real::OptimizerState state(std::size_t offset = 0) {
    return {first.data() + offset, second.data() + offset,  last.data() + offset,
            bare.data() + offset,  average.data() + offset, steps};
  }
  void update(const OptimizerRule& rule, const std::vector<T>& gradient, const real::UpdateOptions& options = {}) {
    real::OptimizerState now = state();
    cpu::update<T>(rule, options, count(), gradient.data(), now, weights.data(), weights.data());
    steps = now.steps;
  }
  std::vector<T> predicted(const OptimizerRule& rule, Direction direction, int horizon) {
    std::vector<T> to(size());
    cpu::predict<T>(rule, direction, horizon, count(), state(), weights.data(), to.data());
    return to;
  }
  std::vector<T> reconstructed(const OptimizerRule& rule, Reconstruction kind, int delay) {
    std::vector<T> to(size());
    cpu::reconstruct<T>(rule, kind, delay, count(), state(), weights.data(), to.data());
    return to;
  }

  std::vector<T> weights, first, second, last, bare, average;
  int steps = 0;
};

}  // namespace stagecraft::test
