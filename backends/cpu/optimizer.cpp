#include "backends/cpu/optimizer.hpp"

#include "backends/cpu/optimizer_math.hpp"

namespace stagecraft::cpu {
namespace {

using real::OptimizerState;
using real::UpdateOptions;

/// What is added to the gradient for each unit of weight.
double coupled_decay(const OptimizerRule& rule) {
  const bool apart = rule.kind == OptimizerKind::AdamW || rule.kind == OptimizerKind::Integer;
  return apart ? 0 : rule.weight_decay;
}

/// How much of `average` stays at each update. PipeMare: 0.135^(1/tau) (Yang et al., MLSys 2021). LayerPipe2 (2025)
/// ties its window to tau without a formula that we know; read here as the average with the mean age of a window of
/// tau gradients, (tau - 1) / 2.
double kept_share(Reconstruction kind, int tau) {
  if (tau <= 1) return kind == Reconstruction::UpdateAverage && tau == 1 ? 0.135 : 0;
  return kind == Reconstruction::UpdateAverage ? std::pow(0.135, 1.0 / tau) : (tau - 1.0) / (tau + 1.0);
}

/// What predictions and reconstructions want to know of gradients; before the weights change.
template <class T>
void remember_gradient(const OptimizerRule& rule, const UpdateOptions& options, std::int64_t count, const T* gradient,
                       OptimizerState& state, const T* from) {
  const T decay = static_cast<T>(coupled_decay(rule));
  const auto g = [=](std::int64_t i) { return gradient[i] + decay * from[i]; };
  if (state.last) {
    T* const last = state_numbers<T>(state.last);
    for (std::int64_t i = 0; i < count; ++i) last[i] = g(i);
  }
  if (state.bare) {
    T* const bare = state_numbers<T>(state.bare);
    const T mu = static_cast<T>(rule.momentum);
    for (std::int64_t i = 0; i < count; ++i) bare[i] = mu * bare[i] + g(i);
  }
  if (state.average && options.reconstruction == Reconstruction::GradientAverage) {
    T* const average = state_numbers<T>(state.average);
    const double keep = kept_share(options.reconstruction, options.delay);
    const T old = static_cast<T>(keep), fresh = static_cast<T>(1 - keep);
    for (std::int64_t i = 0; i < count; ++i) average[i] = old * average[i] + fresh * g(i);
  }
}

/// Replaces the weights by those that `step` makes of them, and maintains the average of the changes.
template <class T, class Step>
void move(const UpdateOptions& options, std::int64_t count, OptimizerState& state, const T* from, T* to, Step step) {
  if (!state.average || options.reconstruction != Reconstruction::UpdateAverage) return for_each(count, from, to, step);
  T* const average = state_numbers<T>(state.average);
  const double keep = kept_share(options.reconstruction, options.delay);
  const T old = static_cast<T>(keep), fresh = static_cast<T>(1 - keep);
  for_each(count, from, to, [=](std::int64_t i, T w) {
    const T next = step(i, w);
    average[i] = old * average[i] + fresh * (next - w);
    return next;
  });
}

// With spike compensation W -= lr (mu^tau m + (1 + mu + .. + mu^(tau-1)) g): the gradient makes up for the tau steps in
// which momentum would have carried it (Kosson et al., MLSys 2021, equation 12).
template <class T>
auto momentum_step(const OptimizerRule& rule, const UpdateOptions& options, double rate, const T* gradient,
                   const OptimizerState& state) {
  T* const m = state_numbers<T>(state.first);
  const bool first = state.steps == 0;
  const int tau = options.spike_compensation ? options.delay : 0;
  const T lr = static_cast<T>(rate), decay = static_cast<T>(rule.weight_decay);
  const T mu = static_cast<T>(first ? 0 : rule.momentum), share = static_cast<T>(first ? 1 : 1 - rule.dampening);
  const T of_m = static_cast<T>(std::pow(rule.momentum, tau));
  const T of_g = static_cast<T>((1 - rule.dampening) * geometric_sum(rule.momentum, 0, tau));
  return [=](std::int64_t i, T w) {
    const T g = gradient[i] + decay * w;
    m[i] = mu * m[i] + share * g;
    return w - lr * (of_m * m[i] + of_g * g);
  };
}

// Spike compensation was written for momentum. Adam's average of gradients is a momentum of (1 - beta1) g, so the same
// argument gives beta1^tau m + (1 - beta1^tau) g: a reading of ours, not of the paper. Rules without a momentum have
// nothing to compensate.
template <class T>
auto adam_step(const OptimizerRule& rule, const UpdateOptions& options, double rate, const T* gradient,
               const OptimizerState& state) {
  T *const m = state_numbers<T>(state.first), *const v = state_numbers<T>(state.second);
  const T coupled = static_cast<T>(coupled_decay(rule));
  const T shrink = static_cast<T>(rule.kind == OptimizerKind::AdamW ? 1 - rate * rule.weight_decay : 1);
  const T beta1 = static_cast<T>(rule.beta1), rest1 = static_cast<T>(1 - rule.beta1);
  const T beta2 = static_cast<T>(rule.beta2), rest2 = static_cast<T>(1 - rule.beta2);
  const Corrections<T> corrections(rule, rate, state.steps + 1);
  const double left = std::pow(rule.beta1, options.spike_compensation ? options.delay : 0);
  const T of_m = static_cast<T>(left), of_g = static_cast<T>(1 - left);
  return [=](std::int64_t i, T w) {
    const T g = gradient[i] + coupled * w;
    m[i] = beta1 * m[i] + rest1 * g;
    v[i] = beta2 * v[i] + rest2 * g * g;
    return shrink * w - corrections.step(of_m * m[i] + of_g * g, v[i]);
  };
}

template <class T>
auto rmsprop_step(const OptimizerRule& rule, double rate, const T* gradient, const OptimizerState& state) {
  T* const v = state_numbers<T>(state.second);
  const T lr = static_cast<T>(rate), decay = static_cast<T>(rule.weight_decay), epsilon = static_cast<T>(rule.epsilon);
  const T alpha = static_cast<T>(rule.alpha), rest = static_cast<T>(1 - rule.alpha);
  return [=](std::int64_t i, T w) {
    const T g = gradient[i] + decay * w;
    v[i] = alpha * v[i] + rest * g * g;
    return w - lr * g / (std::sqrt(v[i]) + epsilon);
  };
}

template <class T>
auto integer_step(const T* gradient, const OptimizerState& state) {
  T* const m = state_numbers<T>(state.first);
  return [=](std::int64_t i, T w) {
    m[i] = std::floor(m[i] / 2) + gradient[i];
    return integer_weight(w, m[i], T(1));
  };
}

}  // namespace

template <class T>
void update(const OptimizerRule& rule, const UpdateOptions& options, std::int64_t count, const T* gradient,
            OptimizerState& state, const T* from, T* to) {
  const double rate = rule.learning_rate * options.rate_scale;
  remember_gradient(rule, options, count, gradient, state, from);
  const auto apply = [&](auto step) { move(options, count, state, from, to, step); };
  switch (rule.kind) {
    case OptimizerKind::Sgd: {
      const T lr = static_cast<T>(rate), decay = static_cast<T>(rule.weight_decay);
      apply([=](std::int64_t i, T w) { return w - lr * (gradient[i] + decay * w); });
      break;
    }
    case OptimizerKind::Momentum:
      apply(momentum_step(rule, options, rate, gradient, state));
      break;
    case OptimizerKind::Adam:
    case OptimizerKind::AdamW:
      apply(adam_step(rule, options, rate, gradient, state));
      break;
    case OptimizerKind::RmsProp:
      apply(rmsprop_step(rule, rate, gradient, state));
      break;
    case OptimizerKind::Integer:
      apply(integer_step(gradient, state));
      break;
  }
  ++state.steps;
}

template void update<float>(const OptimizerRule&, const UpdateOptions&, std::int64_t, const float*, OptimizerState&,
                            const float*, float*);
template void update<double>(const OptimizerRule&, const UpdateOptions&, std::int64_t, const double*, OptimizerState&,
                             const double*, double*);

}  // namespace stagecraft::cpu
