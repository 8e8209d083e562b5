// Weights of other times than now, ahead and back.

#include "backends/cpu/optimizer_math.hpp"

namespace stagecraft::cpu {
namespace {

using real::OptimizerState;

/// W - reach * direction(i).
template <class T, class Where>
void line(double reach, std::int64_t count, const T* from, T* to, Where direction) {
  const T far = static_cast<T>(reach);
  for_each(count, from, to, [=](std::int64_t i, T w) { return w - far * direction(i); });
}

template <class T>
void line(double reach, std::int64_t count, const T* from, T* to, void* direction) {
  const T* const d = state_numbers<T>(direction);
  line(reach, count, from, to, [=](std::int64_t i) { return d[i]; });
}

template <class T>
void predict_momentum(const OptimizerRule& rule, Direction direction, int horizon, std::int64_t count,
                      const OptimizerState& state, const T* from, T* to) {
  const double rate = rule.learning_rate;
  if (direction == Direction::Geometric)
    return line(rate * geometric_sum(rule.momentum, 1, horizon), count, from, to, state.first);
  if (direction != Direction::NextMomentum) return line(rate * horizon, count, from, to, state.first);
  const T *const m = state_numbers<T>(state.first), *const last = state_numbers<T>(state.last);
  const T mu = static_cast<T>(rule.momentum), share = static_cast<T>(1 - rule.dampening);
  line(rate * horizon, count, from, to, [=](std::int64_t i) { return mu * m[i] + share * last[i]; });
}

// AdamW's decay is part of the geometric prediction (FTPipe) but not of the straight one (PipeOptim).
template <class T>
void predict_adam(const OptimizerRule& rule, Direction direction, int horizon, std::int64_t count,
                  const OptimizerState& state, const T* from, T* to) {
  const double rate = rule.learning_rate;
  if (direction == Direction::Momentum) return line(rate * horizon, count, from, to, state.first);
  const T *const m = state_numbers<T>(state.first), *const v = state_numbers<T>(state.second);
  if (direction != Direction::Geometric) {
    const Corrections<T> now(rule, rate * horizon, state.steps);
    return for_each(count, from, to, [=](std::int64_t i, T w) { return w - now.step(m[i], v[i]); });
  }
  const T shrink = static_cast<T>(rule.kind == OptimizerKind::AdamW ? 1 - rate * rule.weight_decay : 1);
  for (int j = 1; j <= horizon; ++j) {
    const Corrections<T> then(rule, rate * std::pow(rule.beta1, j), state.steps + j);
    // of_first divides by 1 - beta1^(t + j), like a step whose momentum has shrunk to beta1^j m.
    for_each(count, j == 1 ? from : to, to, [=](std::int64_t i, T w) { return shrink * w - then.step(m[i], v[i]); });
  }
}

template <class T>
void predict_rmsprop(const OptimizerRule& rule, int horizon, std::int64_t count, const OptimizerState& state,
                     const T* from, T* to) {
  const T *const v = state_numbers<T>(state.second), *const last = state_numbers<T>(state.last);
  const T epsilon = static_cast<T>(rule.epsilon);
  line(rule.learning_rate * horizon, count, from, to,
       [=](std::int64_t i) { return last[i] / (std::sqrt(v[i]) + epsilon); });
}

template <class T>
void predict_integer(Direction direction, int horizon, std::int64_t count, const OptimizerState& state, const T* from,
                     T* to) {
  const T* const m = state_numbers<T>(state.first);
  const T times = static_cast<T>(horizon);
  if (direction == Direction::NextMomentum) {
    const T* const last = state_numbers<T>(state.last);
    return for_each(count, from, to,
                    [=](std::int64_t i, T w) { return integer_weight(w, std::floor(m[i] / 2) + last[i], times); });
  }
  if (direction != Direction::Geometric)
    return for_each(count, from, to, [=](std::int64_t i, T w) { return integer_weight(w, m[i], times); });
  for_each(count, from, to, [=](std::int64_t i, T w) {
    T left = m[i];
    for (int j = 0; j < horizon; ++j) {
      left = std::floor(left / 2);
      w = integer_weight(w, left, T(1));
    }
    return w;
  });
}

}  // namespace

template <class T>
void predict(const OptimizerRule& rule, Direction direction, int horizon, std::int64_t count,
             const OptimizerState& state, const T* from, T* to) {
  const bool keeps_momentum = rule.kind != OptimizerKind::Sgd && rule.kind != OptimizerKind::RmsProp;
  const bool nothing = direction == Direction::Geometric && !keeps_momentum;
  if (state.steps == 0 || horizon == 0 || nothing) return copy(count, from, to);
  const double reach = rule.learning_rate * horizon;
  if (direction == Direction::Momentum && !keeps_momentum) return line(reach, count, from, to, state.bare);
  switch (rule.kind) {
    case OptimizerKind::Sgd:
      return line(reach, count, from, to, state.last);
    case OptimizerKind::Momentum:
      return predict_momentum(rule, direction, horizon, count, state, from, to);
    case OptimizerKind::Adam:
    case OptimizerKind::AdamW:
      return predict_adam(rule, direction, horizon, count, state, from, to);
    case OptimizerKind::RmsProp:
      return predict_rmsprop(rule, horizon, count, state, from, to);
    case OptimizerKind::Integer:
      return predict_integer(direction, horizon, count, state, from, to);
  }
}

template <class T>
void reconstruct(const OptimizerRule& rule, Reconstruction kind, int delay, std::int64_t count,
                 const OptimizerState& state, const T* from, T* to) {
  if (delay == 0) return copy(count, from, to);
  const double back = kind == Reconstruction::UpdateAverage ? delay : -delay * rule.learning_rate;
  line(back, count, from, to, state.average);
}

template void predict<float>(const OptimizerRule&, Direction, int, std::int64_t, const OptimizerState&, const float*,
                             float*);
template void reconstruct<float>(const OptimizerRule&, Reconstruction, int, std::int64_t, const OptimizerState&,
                                 const float*, float*);
template void predict<double>(const OptimizerRule&, Direction, int, std::int64_t, const OptimizerState&, const double*,
                              double*);
template void reconstruct<double>(const OptimizerRule&, Reconstruction, int, std::int64_t, const OptimizerState&,
                                  const double*, double*);

}  // namespace stagecraft::cpu
