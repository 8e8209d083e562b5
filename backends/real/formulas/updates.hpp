#pragma once

#include <tuple>

#include "backends/real/formulas/optimizers.hpp"

/// One update, for any backend: `loop(count, from, to, step)` does to[i] = step(i, from[i]) for all i, in place too. A
/// step uses i only to find numbers in its arrays(), of which it reads all, and writes those that are not constant.
namespace stagecraft::real {

/// What is added to the gradient for each unit of weight.
inline double coupled_decay(const OptimizerRule& rule) {
  const bool apart = rule.kind == OptimizerKind::AdamW || rule.kind == OptimizerKind::Integer;
  return apart ? 0 : rule.weight_decay;
}

/// How much of `average` stays at each update. PipeMare: 0.135^(1/tau) (Yang et al., MLSys 2021). LayerPipe2 (2025)
/// ties its window to tau without a formula that we know; read here as the average with the mean age of a window of
/// tau gradients, (tau - 1) / 2.
inline double kept_share(Reconstruction kind, int tau) {
  if (tau <= 1) return kind == Reconstruction::UpdateAverage && tau == 1 ? 0.135 : 0;
  return kind == Reconstruction::UpdateAverage ? std::pow(0.135, 1.0 / tau) : (tau - 1.0) / (tau + 1.0);
}

template <class T>
struct DecayedGradient {
  const T* gradient;
  T decay;
  STAGECRAFT_PORTABLE T operator()(std::int64_t i, T w) const { return gradient[i] + decay * w; }
  STAGECRAFT_PORTABLE auto arrays() { return std::tie(gradient); }
};

/// old * sum + fresh * g.
template <class T>
struct RunningSum {
  const T* weights;
  DecayedGradient<T> g;
  T old, fresh;
  STAGECRAFT_PORTABLE T operator()(std::int64_t i, T sum) const { return old * sum + fresh * g(i, weights[i]); }
  STAGECRAFT_PORTABLE auto arrays() { return std::tie(weights, g.gradient); }
};

/// What predictions and reconstructions want to know of gradients; before the weights change.
template <class T, class Loop>
void remember_gradient(const OptimizerRule& rule, const UpdateOptions& options, std::int64_t count, const T* gradient,
                       OptimizerState& state, const T* from, Loop&& loop) {
  const DecayedGradient<T> g{gradient, static_cast<T>(coupled_decay(rule))};
  const auto running = [&](void* sum, double old, double fresh) {
    T* const numbers = state_numbers<T>(sum);
    loop(count, numbers, numbers, RunningSum<T>{from, g, static_cast<T>(old), static_cast<T>(fresh)});
  };
  if (state.last) loop(count, from, state_numbers<T>(state.last), g);
  if (state.bare) running(state.bare, rule.momentum, 1);
  if (state.average && options.reconstruction == Reconstruction::GradientAverage) {
    const double keep = kept_share(options.reconstruction, options.delay);
    running(state.average, keep, 1 - keep);
  }
}

template <class T>
struct SgdStep {
  const T* gradient;
  T lr, decay;
  STAGECRAFT_PORTABLE T operator()(std::int64_t i, T w) const { return w - lr * (gradient[i] + decay * w); }
  STAGECRAFT_PORTABLE auto arrays() { return std::tie(gradient); }
};

// With spike compensation W -= lr (mu^tau m + (1 + mu + .. + mu^(tau-1)) g): the gradient makes up for the tau steps in
// which momentum would have carried it (Kosson et al., MLSys 2021, equation 12).
template <class T>
struct MomentumStep {
  MomentumStep(const OptimizerRule& rule, const UpdateOptions& options, double rate, const T* g,
               const OptimizerState& state)
      : gradient(g), m(state_numbers<T>(state.first)), lr(static_cast<T>(rate)) {
    const bool first = state.steps == 0;
    const int tau = options.spike_compensation ? options.delay : 0;
    decay = static_cast<T>(rule.weight_decay);
    mu = static_cast<T>(first ? 0 : rule.momentum);
    share = static_cast<T>(first ? 1 : 1 - rule.dampening);
    of_m = static_cast<T>(std::pow(rule.momentum, tau));
    of_g = static_cast<T>((1 - rule.dampening) * geometric_sum(rule.momentum, 0, tau));
  }
  STAGECRAFT_PORTABLE T operator()(std::int64_t i, T w) const {
    const T g = gradient[i] + decay * w;
    m[i] = mu * m[i] + share * g;
    return w - lr * (of_m * m[i] + of_g * g);
  }
  STAGECRAFT_PORTABLE auto arrays() { return std::tie(gradient, m); }

  const T* gradient;
  T *m, lr, decay{}, mu{}, share{}, of_m{}, of_g{};
};

// Spike compensation was written for momentum. Adam's average of gradients is a momentum of (1 - beta1) g, so the same
// argument gives beta1^tau m + (1 - beta1^tau) g: a reading of ours, not of the paper. Rules without a momentum have
// nothing to compensate.
template <class T>
struct AdamStep {
  AdamStep(const OptimizerRule& rule, const UpdateOptions& options, double rate, const T* g,
           const OptimizerState& state)
      : gradient(g),
        m(state_numbers<T>(state.first)),
        v(state_numbers<T>(state.second)),
        corrections(rule, rate, state.steps + 1) {
    coupled = static_cast<T>(coupled_decay(rule));
    shrink = static_cast<T>(rule.kind == OptimizerKind::AdamW ? 1 - rate * rule.weight_decay : 1);
    beta1 = static_cast<T>(rule.beta1);
    rest1 = static_cast<T>(1 - rule.beta1);
    beta2 = static_cast<T>(rule.beta2);
    rest2 = static_cast<T>(1 - rule.beta2);
    const double left = std::pow(rule.beta1, options.spike_compensation ? options.delay : 0);
    of_m = static_cast<T>(left);
    of_g = static_cast<T>(1 - left);
  }
  STAGECRAFT_PORTABLE T operator()(std::int64_t i, T w) const {
    const T g = gradient[i] + coupled * w;
    m[i] = beta1 * m[i] + rest1 * g;
    v[i] = beta2 * v[i] + rest2 * g * g;
    return shrink * w - corrections.step(of_m * m[i] + of_g * g, v[i]);
  }
  STAGECRAFT_PORTABLE auto arrays() { return std::tie(gradient, m, v); }

  const T* gradient;
  T *m, *v;
  Corrections<T> corrections;
  T coupled{}, shrink{}, beta1{}, rest1{}, beta2{}, rest2{}, of_m{}, of_g{};
};

template <class T>
struct RmsPropStep {
  const T* gradient;
  T *v, lr, decay, epsilon, alpha, rest;
  STAGECRAFT_PORTABLE T operator()(std::int64_t i, T w) const {
    const T g = gradient[i] + decay * w;
    v[i] = alpha * v[i] + rest * g * g;
    return w - lr * g / (std::sqrt(v[i]) + epsilon);
  }
  STAGECRAFT_PORTABLE auto arrays() { return std::tie(gradient, v); }
};

template <class T>
struct IntegerStep {
  const T* gradient;
  T* m;
  STAGECRAFT_PORTABLE T operator()(std::int64_t i, T w) const {
    m[i] = std::floor(m[i] / 2) + gradient[i];
    return integer_weight(w, m[i], T(1));
  }
  STAGECRAFT_PORTABLE auto arrays() { return std::tie(gradient, m); }
};

/// A step, and the average of the changes that it makes.
template <class T, class Step>
struct AveragedStep {
  Step step;
  T *average, old, fresh;
  STAGECRAFT_PORTABLE T operator()(std::int64_t i, T w) const {
    const T next = step(i, w);
    average[i] = old * average[i] + fresh * (next - w);
    return next;
  }
  STAGECRAFT_PORTABLE auto arrays() { return std::tuple_cat(step.arrays(), std::tie(average)); }
};

/// One step of the optimizer; then the state counts one more. Of the state, what is not null is maintained. `gradient`
/// never overlaps the rest.
template <class T, class Loop>
void update(const OptimizerRule& rule, const UpdateOptions& options, std::int64_t count, const T* gradient,
            OptimizerState& state, const T* from, T* to, Loop&& loop) {
  const double rate = rule.learning_rate * options.rate_scale;
  const T lr = static_cast<T>(rate), decay = static_cast<T>(rule.weight_decay);
  const auto apply = [&](const auto& step) {
    if (!state.average || options.reconstruction != Reconstruction::UpdateAverage) return loop(count, from, to, step);
    const double keep = kept_share(options.reconstruction, options.delay);
    T* const average = state_numbers<T>(state.average);
    loop(count, from, to,
         AveragedStep<T, std::decay_t<decltype(step)>>{step, average, static_cast<T>(keep), static_cast<T>(1 - keep)});
  };
  remember_gradient(rule, options, count, gradient, state, from, loop);
  switch (rule.kind) {
    case OptimizerKind::Sgd:
      apply(SgdStep<T>{gradient, lr, decay});
      break;
    case OptimizerKind::Momentum:
      apply(MomentumStep<T>(rule, options, rate, gradient, state));
      break;
    case OptimizerKind::Adam:
    case OptimizerKind::AdamW:
      apply(AdamStep<T>(rule, options, rate, gradient, state));
      break;
    case OptimizerKind::RmsProp:
      apply(RmsPropStep<T>{gradient, state_numbers<T>(state.second), lr, decay, static_cast<T>(rule.epsilon),
                           static_cast<T>(rule.alpha), static_cast<T>(1 - rule.alpha)});
      break;
    case OptimizerKind::Integer:
      apply(IntegerStep<T>{gradient, state_numbers<T>(state.first)});
      break;
  }
  ++state.steps;
}

}  // namespace stagecraft::real
