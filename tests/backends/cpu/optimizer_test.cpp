#include <doctest/doctest.h>

#include <cmath>
#include <cstring>

#include "sim/core/diagnostic.hpp"
#include "sim/core/random.hpp"
#include "tests/backends/cpu/optimizer_state.hpp"

namespace stagecraft::optimizer_test {
using test::Trained;

namespace {

using enum OptimizerKind;
using Wide = long double;

constexpr OptimizerKind kKinds[] = {Sgd, Momentum, Adam, AdamW, RmsProp, Integer};
constexpr Direction kDirections[] = {Direction::Optimizer, Direction::NextMomentum, Direction::Momentum,
                                     Direction::Geometric};

/// One weight, step by step as the papers write it.
struct Naive {
  Wide w = 0, first = 0, second = 0, last = 0, bare = 0, average = 0;
  int t = 0;

  void step(const OptimizerRule& r, const real::UpdateOptions& o, Wide g) {
    const Wide lr = static_cast<Wide>(r.learning_rate) * o.rate_scale, mu = r.momentum, before = w;
    const int tau = o.delay;
    ++t;
    if (r.kind != AdamW && r.kind != Integer) g += r.weight_decay * w;
    last = g;
    bare = mu * bare + g;
    if (r.kind == Sgd) w -= lr * g;
    if (r.kind == Momentum) {
      first = t == 1 ? g : mu * first + (1 - static_cast<Wide>(r.dampening)) * g;
      const Wide a = o.spike_compensation ? std::pow(mu, static_cast<Wide>(tau)) : 1;
      w -= lr * (a * first + (1 - a) / (1 - mu) * (1 - static_cast<Wide>(r.dampening)) * g);
    }
    if (r.kind == Adam || r.kind == AdamW) {
      if (r.kind == AdamW) w -= lr * r.weight_decay * w;
      first = r.beta1 * first + (1 - static_cast<Wide>(r.beta1)) * g;
      second = r.beta2 * second + (1 - static_cast<Wide>(r.beta2)) * g * g;
      const Wide decay = o.spike_compensation ? std::pow(static_cast<Wide>(r.beta1), static_cast<Wide>(tau)) : 1;
      const Wide m =
          (decay * first + (1 - decay) * g) / (1 - std::pow(static_cast<Wide>(r.beta1), static_cast<Wide>(t)));
      const Wide v = second / (1 - std::pow(static_cast<Wide>(r.beta2), static_cast<Wide>(t)));
      w -= lr * m / (std::sqrt(v) + r.epsilon);
    }
    if (r.kind == RmsProp) {
      second = r.alpha * second + (1 - static_cast<Wide>(r.alpha)) * g * g;
      w -= lr * g / (std::sqrt(second) + r.epsilon);
    }
    const Wide gamma = std::pow(static_cast<Wide>(0.135), static_cast<Wide>(1) / tau);
    const Wide beta = static_cast<Wide>(tau - 1) / (tau + 1);
    if (o.reconstruction == Reconstruction::UpdateAverage) average = gamma * average + (1 - gamma) * (w - before);
    if (o.reconstruction == Reconstruction::GradientAverage) average = beta * average + (1 - beta) * g;
  }
};

std::vector<double> random_numbers(std::size_t count, Rng& rng) {
  std::vector<double> numbers(count);
  for (double& x : numbers) x = rng.uniform(-1, 1);
  return numbers;
}

OptimizerRule rule_of(OptimizerKind kind, double weight_decay = 0.05) {
  OptimizerRule rule;
  rule.kind = kind;
  rule.learning_rate = 0.03;
  rule.weight_decay = kind == Integer ? 0 : weight_decay;
  if (kind == Momentum) rule.dampening = 0.2;
  return rule;
}

template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

template <class T>
std::vector<T> from(const std::vector<T>& numbers, std::size_t offset) {
  return {numbers.begin() + static_cast<std::ptrdiff_t>(offset), numbers.end()};
}

template <class T>
std::vector<T> as(const std::vector<double>& numbers) {
  return {numbers.begin(), numbers.end()};
}

/// Weights, then what belongs to them, after a few steps: whole numbers, so that Integer can take them too.
template <class T>
Trained<T> warmed(const OptimizerRule& rule, std::size_t count, Rng& rng) {
  std::vector<T> start(count), gradient(count);
  for (T& w : start) w = static_cast<T>(rng.integer(-2, 2));
  Trained<T> trained(start);
  for (int step = 0; step < 3; ++step) {
    for (T& g : gradient) g = static_cast<T>(rng.integer(-3000, 3000));
    trained.update(rule, gradient);
  }
  return trained;
}

template <class T>
void check_places(OptimizerKind kind) {
  Rng rng(5, "places");
  const OptimizerRule rule = rule_of(kind);
  constexpr std::size_t count = 101;
  const Trained<T> start = warmed<T>(rule, count, rng);
  std::vector<T> gradient(count);
  for (T& g : gradient) g = static_cast<T>(rng.integer(-3000, 3000));

  Trained<T> whole = start;
  whole.update(rule, gradient);
  for (const std::size_t offset : {1U, 2U, 3U, 5U, 8U, 13U}) {
    Trained<T> part = start;
    real::OptimizerState state = part.state(offset);
    std::vector<T> to(count - offset);
    cpu::update<T>(rule, {}, static_cast<std::int64_t>(to.size()), gradient.data() + offset, state,
                   part.weights.data() + offset, to.data());
    CHECK(state.steps == 4);
    CHECK(same_bits(to, from(whole.weights, offset)));
    CHECK(same_bits(part.weights, start.weights));
    for (auto member :
         {&Trained<T>::first, &Trained<T>::second, &Trained<T>::last, &Trained<T>::bare, &Trained<T>::average})
      CHECK(same_bits(from(part.*member, offset), from(whole.*member, offset)));
  }
  for (const Direction direction : kDirections) {
    const std::vector<T> apart = whole.predicted(rule, direction, 3);
    Trained<T> inside = whole;
    cpu::predict<T>(rule, direction, 3, inside.count(), inside.state(), inside.weights.data(), inside.weights.data());
    CHECK(same_bits(apart, inside.weights));
    std::vector<T> one(1);
    for (std::size_t i = 0; i < count; ++i) {
      cpu::predict<T>(rule, direction, 3, 1, whole.state(i), whole.weights.data() + i, one.data());
      CHECK(one[0] == apart[i]);
    }
  }
}

}  // namespace

// Each step rounds a dozen times at numbers of the order of one, so that 20 of them stay well below 1e-13.
TEST_CASE("every optimizer against its formula in long double") {
  Rng rng(1, "optimizer");
  for (const OptimizerKind kind : {Sgd, Momentum, Adam, AdamW, RmsProp}) {
    for (const double decay : {0.0, 0.05}) {
      for (const Reconstruction average : {Reconstruction::UpdateAverage, Reconstruction::GradientAverage}) {
        for (const bool spike : {false, true}) {
          CAPTURE(to_text(kind));
          CAPTURE(decay);
          CAPTURE(spike);
          const OptimizerRule rule = rule_of(kind, decay);
          const real::UpdateOptions options{
              .rate_scale = 0.7, .delay = 5, .spike_compensation = spike, .reconstruction = average};
          Trained<double> trained(random_numbers(37, rng));
          std::vector<Naive> naive(trained.size());
          for (std::size_t i = 0; i < naive.size(); ++i) naive[i].w = trained.weights[i];
          for (int step = 0; step < 20; ++step) {
            const std::vector<double> gradient = random_numbers(trained.size(), rng);
            trained.update(rule, gradient, options);
            for (std::size_t i = 0; i < naive.size(); ++i) naive[i].step(rule, options, gradient[i]);
          }
          CHECK(trained.steps == 20);
          for (std::size_t i = 0; i < naive.size(); ++i) {
            const auto near = [](double a, Wide b) { return std::abs(static_cast<double>(a - b)) < 1e-13; };
            CHECK(near(trained.weights[i], naive[i].w));
            CHECK(near(trained.last[i], naive[i].last));
            CHECK(near(trained.bare[i], naive[i].bare));
            CHECK(near(trained.average[i], naive[i].average));
            if (kind == Momentum || kind == Adam || kind == AdamW) CHECK(near(trained.first[i], naive[i].first));
            if (kind != Sgd && kind != Momentum) CHECK(near(trained.second[i], naive[i].second));
          }
        }
      }
    }
  }
}

TEST_CASE("a number does not depend on where it lies, nor on whether it is replaced") {
  for (const OptimizerKind kind : kKinds) {
    CAPTURE(to_text(kind));
    check_places<double>(kind);
    check_places<float>(kind);
  }
}

// A float has 24 bits; 10 steps of a dozen roundings at numbers of the order of one are below 120 * 2^-24 = 7e-6.
TEST_CASE("float follows double") {
  for (const OptimizerKind kind : {Sgd, Momentum, Adam, AdamW, RmsProp}) {
    CAPTURE(to_text(kind));
    Rng rng(2, "float");
    const OptimizerRule rule = rule_of(kind);
    const std::vector<double> start = random_numbers(50, rng);
    Trained<double> wide(start);
    Trained<float> narrow(as<float>(start));
    for (int step = 0; step < 10; ++step) {
      const std::vector<double> gradient = random_numbers(50, rng);
      wide.update(rule, gradient);
      narrow.update(rule, as<float>(gradient));
    }
    for (std::size_t i = 0; i < start.size(); ++i)
      CHECK(std::abs(static_cast<double>(narrow.weights[i]) - wide.weights[i]) < 1e-5);
  }
}

TEST_CASE("integer stays in whole numbers, and its floors are shifts") {
  Rng rng(3, "integer");
  const OptimizerRule rule = rule_of(Integer);
  constexpr std::size_t count = 40;
  std::vector<std::int64_t> weights(count), momentum(count, 0);
  std::vector<double> gradient(count);
  for (std::int64_t& w : weights) w = rng.integer(-1, 1);
  Trained<double> wide({weights.begin(), weights.end()});
  Trained<float> narrow({weights.begin(), weights.end()});
  int moves = 0, at_edge = 0;
  for (int update = 0; update < 60; ++update) {
    for (std::size_t i = 0; i < count; ++i) {
      const int g = rng.integer(-5000, 5000);
      gradient[i] = g;
      momentum[i] = (momentum[i] >> 1) + g;
      const std::int64_t step = (momentum[i] + 1024) >> 11;
      weights[i] = std::min<std::int64_t>(std::max<std::int64_t>(weights[i] - step, -2), 2);
      moves += step != 0;
      at_edge += std::abs(weights[i]) == 2;
    }
    wide.update(rule, gradient);
    narrow.update(rule, as<float>(gradient));
    CHECK(same_bits(wide.weights, {weights.begin(), weights.end()}));
    CHECK(same_bits(narrow.weights, {weights.begin(), weights.end()}));
    for (const Direction direction : kDirections)
      for (const double w : wide.predicted(rule, direction, 2)) CHECK((w == std::floor(w) && std::abs(w) <= 2));
  }
  CHECK(moves > 0);
  CHECK(at_edge > 0);
}

// With PipeMare's average the weights of tau updates ago are exact when all updates are equal, but for gamma^n of the
// start; with the average of gradients also when they grow evenly, since its mean age is that of the last tau.
TEST_CASE("reconstructions find the weights of tau updates ago") {
  OptimizerRule rule = rule_of(Sgd, 0);
  for (const int tau : {1, 2, 3, 7}) {
    for (const Reconstruction kind : {Reconstruction::UpdateAverage, Reconstruction::GradientAverage}) {
      CAPTURE(tau);
      const double slope = kind == Reconstruction::GradientAverage ? 0.25 : 0;
      Trained<double> trained({3.0});
      std::vector<double> history{3.0};
      for (int update = 0; update < 300; ++update) {
        trained.update(rule, {1 + slope * update}, {.delay = tau, .reconstruction = kind});
        history.push_back(trained.weights[0]);
      }
      const double then = trained.reconstructed(rule, kind, tau)[0];
      CHECK(then == doctest::Approx(history[history.size() - 1 - static_cast<std::size_t>(tau)]).epsilon(1e-12));
      CHECK(trained.reconstructed(rule, kind, 0) == trained.weights);
    }
  }
}

TEST_CASE("before the first update nothing is predicted") {
  for (const OptimizerKind kind : kKinds)
    for (const Direction direction : kDirections) {
      Trained<double> trained({1.0, -2.0});
      CHECK(trained.predicted(rule_of(kind), direction, 3) == trained.weights);
    }
}

}  // namespace stagecraft::optimizer_test
