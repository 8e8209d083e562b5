#include "backends/cpu/optimizer.hpp"

#include "backends/real/formulas/predictions.hpp"
#include "backends/real/formulas/updates.hpp"

namespace stagecraft::cpu {
namespace {

/// In place and between arrays apart: a compiler makes vectors only of loops where it can rule out overlaps.
struct ForEach {
  template <class T, class Step>
  void operator()(std::int64_t count, const T* from, T* to, Step step) const {
    if (from == to)
      for (std::int64_t i = 0; i < count; ++i) to[i] = step(i, to[i]);
    else
      for (std::int64_t i = 0; i < count; ++i) to[i] = step(i, from[i]);
  }
};

}  // namespace

template <class T>
void update(const OptimizerRule& rule, const real::UpdateOptions& options, std::int64_t count, const T* gradient,
            real::OptimizerState& state, const T* from, T* to) {
  real::update<T>(rule, options, count, gradient, state, from, to, ForEach{});
}

template <class T>
void predict(const OptimizerRule& rule, Direction direction, int horizon, std::int64_t count,
             const real::OptimizerState& state, const T* from, T* to) {
  real::predict<T>(rule, direction, horizon, count, state, from, to, ForEach{});
}

template <class T>
void reconstruct(const OptimizerRule& rule, Reconstruction kind, int delay, std::int64_t count,
                 const real::OptimizerState& state, const T* from, T* to) {
  real::reconstruct<T>(rule, kind, delay, count, state, from, to, ForEach{});
}

template void update<float>(const OptimizerRule&, const real::UpdateOptions&, std::int64_t, const float*,
                            real::OptimizerState&, const float*, float*);
template void update<double>(const OptimizerRule&, const real::UpdateOptions&, std::int64_t, const double*,
                             real::OptimizerState&, const double*, double*);
template void predict<float>(const OptimizerRule&, Direction, int, std::int64_t, const real::OptimizerState&,
                             const float*, float*);
template void predict<double>(const OptimizerRule&, Direction, int, std::int64_t, const real::OptimizerState&,
                              const double*, double*);
template void reconstruct<float>(const OptimizerRule&, Reconstruction, int, std::int64_t, const real::OptimizerState&,
                                 const float*, float*);
template void reconstruct<double>(const OptimizerRule&, Reconstruction, int, std::int64_t, const real::OptimizerState&,
                                  const double*, double*);

}  // namespace stagecraft::cpu
