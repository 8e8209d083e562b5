// Updates, predictions and reconstructions of weights, a thread for each weight, by the formulas of
// backends/real/formulas.

#include "backends/cuda/kernels/counter.hpp"
#include "backends/cuda/kernels/each.hpp"
#include "backends/real/formulas/predictions.hpp"
#include "backends/real/formulas/updates.hpp"

namespace stagecraft::cuda {
namespace {

/// A weight after a step.
template <class T, class Step>
struct Stepped {
  const T* from;
  Step step;
  __device__ T operator()(std::int64_t i) const { return step(i, from[i]); }
  __host__ __device__ auto arrays() { return std::tuple_cat(std::tie(from), step.arrays()); }
};

/// Adam's step with the corrections that the counter says.
template <class T>
struct CountedStep {
  real::AdamStep<T> step;
  const T* counter;
  __device__ T operator()(std::int64_t i, T w) const {
    const T* const corrections = counter + counter::kTable + 2 * static_cast<std::int64_t>(*counter);
    real::AdamStep<T> now = step;
    now.corrections.of_first = corrections[0];
    now.corrections.of_second = corrections[1];
    return now(i, w);
  }
  __host__ __device__ auto arrays() { return step.arrays(); }
};

/// real/formulas, a thread for each weight.
struct ForEach {
  const Device& device;
  const void* counter = nullptr;

  template <class T, class Step>
  void operator()(std::int64_t count, const T* from, T* to, const Step& step) const {
    put(device, false, count, to, Stepped<T, Step>{from, step});
  }
  template <class T>
  void operator()(std::int64_t count, const T* from, T* to, const real::AdamStep<T>& step) const {
    if (!counter) return put(device, false, count, to, Stepped<T, real::AdamStep<T>>{from, step});
    put(device, false, count, to, Stepped<T, CountedStep<T>>{from, {step, static_cast<const T*>(counter)}});
  }
};

}  // namespace

template <class T>
void update(const Device& device, const OptimizerRule& rule, const real::UpdateOptions& options, std::int64_t count,
            const T* gradient, real::OptimizerState& state, const T* from, T* to) {
  real::update<T>(rule, options, count, gradient, state, from, to, ForEach{device, state.counter});
}

template <class T>
void predict(const Device& device, const OptimizerRule& rule, Direction direction, int horizon, std::int64_t count,
             const real::OptimizerState& state, const T* from, T* to) {
  real::predict<T>(rule, direction, horizon, count, state, from, to, ForEach{device});
}

template <class T>
void reconstruct(const Device& device, const OptimizerRule& rule, Reconstruction kind, int delay, std::int64_t count,
                 const real::OptimizerState& state, const T* from, T* to) {
  real::reconstruct<T>(rule, kind, delay, count, state, from, to, ForEach{device});
}

#define STAGECRAFT_OPTIMIZER(T)                                                                                    \
  template void update<T>(const Device&, const OptimizerRule&, const real::UpdateOptions&, std::int64_t, const T*, \
                          real::OptimizerState&, const T*, T*);                                                    \
  template void predict<T>(const Device&, const OptimizerRule&, Direction, int, std::int64_t,                      \
                           const real::OptimizerState&, const T*, T*);                                             \
  template void reconstruct<T>(const Device&, const OptimizerRule&, Reconstruction, int, std::int64_t,             \
                               const real::OptimizerState&, const T*, T*);
STAGECRAFT_OPTIMIZER(float)
STAGECRAFT_OPTIMIZER(double)

}  // namespace stagecraft::cuda
