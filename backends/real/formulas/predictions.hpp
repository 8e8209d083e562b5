#pragma once

#include <tuple>

#include "backends/real/formulas/optimizers.hpp"

/// Weights of other times than now, ahead and back; `loop` as for updates.
namespace stagecraft::real {

/// w - reach * direction, the direction a tensor.
template <class T>
struct DirectionStep {
  const T* direction;
  T reach;
  STAGECRAFT_PORTABLE T operator()(std::int64_t i, T w) const { return w - reach * direction[i]; }
  STAGECRAFT_PORTABLE auto arrays() { return std::tie(direction); }
};

template <class T>
struct NextMomentumLine {
  const T *m, *last;
  T reach, mu, share;
  STAGECRAFT_PORTABLE T operator()(std::int64_t i, T w) const { return w - reach * (mu * m[i] + share * last[i]); }
  STAGECRAFT_PORTABLE auto arrays() { return std::tie(m, last); }
};

template <class T>
struct RmsPropLine {
  const T *v, *last;
  T reach, epsilon;
  STAGECRAFT_PORTABLE T operator()(std::int64_t i, T w) const {
    return w - reach * (last[i] / (std::sqrt(v[i]) + epsilon));
  }
  STAGECRAFT_PORTABLE auto arrays() { return std::tie(v, last); }
};

template <class T>
struct AdamLine {
  const T *m, *v;
  Corrections<T> corrections;
  T shrink;
  STAGECRAFT_PORTABLE T operator()(std::int64_t i, T w) const { return shrink * w - corrections.step(m[i], v[i]); }
  STAGECRAFT_PORTABLE auto arrays() { return std::tie(m, v); }
};

/// The last step again, `times` over.
template <class T>
struct IntegerLine {
  const T* m;
  T times;
  STAGECRAFT_PORTABLE T operator()(std::int64_t i, T w) const { return integer_weight(w, m[i], times); }
  STAGECRAFT_PORTABLE auto arrays() { return std::tie(m); }
};

template <class T>
struct IntegerNextLine {
  const T *m, *last;
  T times;
  STAGECRAFT_PORTABLE T operator()(std::int64_t i, T w) const {
    return integer_weight(w, std::floor(m[i] / 2) + last[i], times);
  }
  STAGECRAFT_PORTABLE auto arrays() { return std::tie(m, last); }
};

template <class T>
struct IntegerCoast {
  const T* m;
  int horizon;
  STAGECRAFT_PORTABLE T operator()(std::int64_t i, T w) const {
    T left = m[i];
    for (int j = 0; j < horizon; ++j) {
      left = std::floor(left / 2);
      w = integer_weight(w, left, T(1));
    }
    return w;
  }
  STAGECRAFT_PORTABLE auto arrays() { return std::tie(m); }
};

template <class T>
struct Same {
  STAGECRAFT_PORTABLE T operator()(std::int64_t, T w) const { return w; }
  STAGECRAFT_PORTABLE auto arrays() { return std::tie(); }
};

template <class T, class Loop>
void line(double reach, std::int64_t count, const T* from, T* to, void* direction, Loop&& loop) {
  loop(count, from, to, DirectionStep<T>{state_numbers<T>(direction), static_cast<T>(reach)});
}

template <class T, class Loop>
void predict_momentum(const OptimizerRule& rule, Direction direction, int horizon, std::int64_t count,
                      const OptimizerState& state, const T* from, T* to, Loop&& loop) {
  const double rate = rule.learning_rate;
  if (direction == Direction::Geometric)
    return line(rate * geometric_sum(rule.momentum, 1, horizon), count, from, to, state.first, loop);
  if (direction != Direction::NextMomentum) return line(rate * horizon, count, from, to, state.first, loop);
  loop(count, from, to,
       NextMomentumLine<T>{state_numbers<T>(state.first), state_numbers<T>(state.last), static_cast<T>(rate * horizon),
                           static_cast<T>(rule.momentum), static_cast<T>(1 - rule.dampening)});
}

// AdamW's decay is part of the geometric prediction (FTPipe) but not of the straight one (PipeOptim).
template <class T, class Loop>
void predict_adam(const OptimizerRule& rule, Direction direction, int horizon, std::int64_t count,
                  const OptimizerState& state, const T* from, T* to, Loop&& loop) {
  const double rate = rule.learning_rate;
  if (direction == Direction::Momentum) return line(rate * horizon, count, from, to, state.first, loop);
  const T *const m = state_numbers<T>(state.first), *const v = state_numbers<T>(state.second);
  if (direction != Direction::Geometric)
    return loop(count, from, to, AdamLine<T>{m, v, Corrections<T>(rule, rate * horizon, state.steps), T(1)});
  const T shrink = static_cast<T>(rule.kind == OptimizerKind::AdamW ? 1 - rate * rule.weight_decay : 1);
  for (int j = 1; j <= horizon; ++j) {
    // of_first divides by 1 - beta1^(t + j), like a step whose momentum has shrunk to beta1^j m.
    const Corrections<T> then(rule, rate * std::pow(rule.beta1, j), state.steps + j);
    loop(count, j == 1 ? from : static_cast<const T*>(to), to, AdamLine<T>{m, v, then, shrink});
  }
}

template <class T, class Loop>
void predict_integer(Direction direction, int horizon, std::int64_t count, const OptimizerState& state, const T* from,
                     T* to, Loop&& loop) {
  const T* const m = state_numbers<T>(state.first);
  const T times = static_cast<T>(horizon);
  if (direction == Direction::NextMomentum)
    return loop(count, from, to, IntegerNextLine<T>{m, state_numbers<T>(state.last), times});
  if (direction != Direction::Geometric) return loop(count, from, to, IntegerLine<T>{m, times});
  loop(count, from, to, IntegerCoast<T>{m, horizon});
}

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
template <class T, class Loop>
void predict(const OptimizerRule& rule, Direction direction, int horizon, std::int64_t count,
             const OptimizerState& state, const T* from, T* to, Loop&& loop) {
  const bool keeps_momentum = rule.kind != OptimizerKind::Sgd && rule.kind != OptimizerKind::RmsProp;
  const bool nothing = direction == Direction::Geometric && !keeps_momentum;
  if (state.steps == 0 || horizon == 0 || nothing) return loop(count, from, to, Same<T>{});
  const double reach = rule.learning_rate * horizon;
  if (direction == Direction::Momentum && !keeps_momentum) return line(reach, count, from, to, state.bare, loop);
  switch (rule.kind) {
    case OptimizerKind::Sgd:
      return line(reach, count, from, to, state.last, loop);
    case OptimizerKind::Momentum:
      return predict_momentum(rule, direction, horizon, count, state, from, to, loop);
    case OptimizerKind::Adam:
    case OptimizerKind::AdamW:
      return predict_adam(rule, direction, horizon, count, state, from, to, loop);
    case OptimizerKind::RmsProp:
      return loop(count, from, to,
                  RmsPropLine<T>{state_numbers<T>(state.second), state_numbers<T>(state.last), static_cast<T>(reach),
                                 static_cast<T>(rule.epsilon)});
    case OptimizerKind::Integer:
      return predict_integer(direction, horizon, count, state, from, to, loop);
  }
}

/// Weights as they were `delay` updates ago, about.
template <class T, class Loop>
void reconstruct(const OptimizerRule& rule, Reconstruction kind, int delay, std::int64_t count,
                 const OptimizerState& state, const T* from, T* to, Loop&& loop) {
  if (delay == 0) return loop(count, from, to, Same<T>{});
  const double back = kind == Reconstruction::UpdateAverage ? delay : -delay * rule.learning_rate;
  line(back, count, from, to, state.average, loop);
}

}  // namespace stagecraft::real
