#pragma once

#include <cstdint>

#include "backends/real/kernels.hpp"

namespace stagecraft::cpu {

/// One step of the optimizer; then the state counts one more. Of the state, what is not null is maintained. `gradient`
/// never overlaps the rest. For float and double.
template <class T>
void update(const OptimizerRule&, const real::UpdateOptions&, std::int64_t count, const T* gradient,
            real::OptimizerState&, const T* from, T* to);

/// Weights `horizon` updates ahead; the same weights before the first update. Directions for each optimizer:
///
///              Optimizer                       NextMomentum              Momentum  Geometric
///   sgd        g                               g                         bare      nothing
///   momentum   m                               mu m + (1 - dampening) g  m         sum of mu^j m, j = 1..horizon
///   adam(w)    m / c1 / (sqrt(v / c2) + eps)   as Optimizer              m         the steps that zero gradients make
///   rmsprop    g / (sqrt(v) + eps)             as Optimizer              bare      nothing
///
/// with the last gradient g, its weight decay included, m `first`, v `second`. Integer predicts in whole numbers: its
/// last step again and again (Optimizer, Momentum), the step that an equal gradient would make (NextMomentum), or the
/// steps that zero gradients make.
template <class T>
void predict(const OptimizerRule&, Direction, int horizon, std::int64_t count, const real::OptimizerState&,
             const T* from, T* to);

/// Weights as they were `delay` updates ago, about.
template <class T>
void reconstruct(const OptimizerRule&, Reconstruction, int delay, std::int64_t count, const real::OptimizerState&,
                 const T* from, T* to);

}  // namespace stagecraft::cpu
