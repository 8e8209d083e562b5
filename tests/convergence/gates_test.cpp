// What stale weights cost and what predictions give back, with limits set beforehand from a prototype of the same
// recurrences that drew other random numbers. Eight stages, an update for each micro-batch of 32 samples; start and
// samples depend on the seed alone, so that methods differ by nothing else.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include <fmt/core.h>

#include "sim/core/numbers.hpp"
#include "tests/convergence/predicted.hpp"
#include "tests/support/checked.hpp"
#include "tests/support/trials.hpp"

namespace stagecraft::gates_test {
namespace {

using test::Case;
using test::Method;

const Method kSync{"flush", false, ""}, kNaive{"naive", false, ""}, kPipeOptim{"pipeoptim", false, ""};

using Weights = IdVector<StageId, std::vector<double>>;
using Seeds = std::vector<double>;  ///< A number of each seed.

Learnt train(const Method& method, Training training, int updates, int seed) {
  training.seed = static_cast<std::uint64_t>(seed);
  const Case c(method.policy, training.task);
  const WeightsRule rule = method.rule();
  return test::really_run(test::real_program(c.schedule, c.plan, rule, updates), c.model, c.plan, rule, training, true)
      .learnt();
}

double distance(const Weights& a, const Weights& b) {
  double squares = 0;
  for (const StageId k : a.ids()) squares += std::pow(test::distance(a[k], b[k]), 2);
  return std::sqrt(squares);
}

double lowest(const Seeds& seeds) { return *std::min_element(seeds.begin(), seeds.end()); }

void report(const std::string& what, const std::vector<Method>& methods, const std::vector<Seeds>& results) {
  std::string text = what + fmt::format(", {} seeds\n", results.front().size());
  for (std::size_t m = 0; m < methods.size(); ++m)
    text += fmt::format("  {:<24} {:>6.3f} [{:.3f}-{:.3f}]   prototype {}\n", methods[m].name(), median(results[m]),
                        lowest(results[m]), *std::max_element(results[m].begin(), results[m].end()), methods[m].stated);
  MESSAGE(text);
}

/// ||W - W_sync|| / ||W_naive - W_sync|| after 100 updates, of each method and seed.
std::vector<Seeds> trajectories(const Training& training, int seeds, const std::vector<Method>& methods) {
  std::vector<Seeds> results(methods.size());
  for (int seed = 1; seed <= seeds; ++seed) {
    const Weights sync = train(kSync, training, 100, seed).weights;
    const double naive = distance(train(kNaive, training, 100, seed).weights, sync);
    for (std::size_t m = 0; m < methods.size(); ++m)
      results[m].push_back(distance(train(methods[m], training, 100, seed).weights, sync) / naive);
  }
  return results;
}

/// Mean of the last four evaluations, 20 updates apart.
double last_loss(const Method& method, Training training, int updates, int seed) {
  training.evaluate_every = 20;
  const auto evaluations = train(method, training, updates, seed).evaluations;
  REQUIRE(evaluations.size() == static_cast<std::size_t>(updates / 20 + 1));
  double sum = 0;
  for (auto e = evaluations.end() - 4; e != evaluations.end(); ++e) sum += e->loss;
  return sum / 4;
}

/// Share of the extra loss from stale weights that a method recovers, seed by seed:
/// (L_naive - L) / (L_naive - L_sync).
std::vector<Seeds> closures(const Training& training, int updates, int seeds, const std::vector<Method>& methods) {
  std::vector<Seeds> results(methods.size());
  for (int seed = 1; seed <= seeds; ++seed) {
    const double sync = last_loss(kSync, training, updates, seed), naive = last_loss(kNaive, training, updates, seed);
    for (std::size_t m = 0; m < methods.size(); ++m)
      results[m].push_back((naive - last_loss(methods[m], training, updates, seed)) / (naive - sync));
  }
  return results;
}

}  // namespace

TEST_CASE("momentum: predicted weights keep the run near the one without a pipeline") {
  const std::vector<Method> methods{
      {"pipeoptim", false, "0.124 [0.084-0.161]"}, {"pipeoptim", true, "0.204 [0.130-0.286]"},
      {"geometric", false, "0.316 [0.284-0.372]"}, {"spectrain", false, "0.344 [0.255-0.565]"},
      {"2bw", false, "0.165 [0.144-0.264]"},       {"stash", false, "0.864 [0.800-0.996]"}};
  const auto results =
      trajectories(test::training_of(OptimizerKind::Momentum, 5e-4, "teacher"), test::trials(10, 3), methods);
  report("teacher, momentum 0.9, rate 0.0005: distance from sync over that of naive", methods, results);
  CHECK(median(results[0]) <= 0.30);
  for (const double ratio : results[0]) CHECK(ratio <= 0.30);
}

TEST_CASE("adamw: predicting with the optimizer's step helps, with the momentum of bare gradients it does not") {
  const std::vector<Method> methods{{"pipeoptim", false, "0.216 [0.162-0.334]"},
                                    {"spectrain", false, "0.992 [0.991-0.993]"},
                                    {"geometric", false, "0.386"},
                                    {"xpipe", false, "0.425"},
                                    {"2bw", false, "0.275"}};
  Training training = test::training_of(OptimizerKind::AdamW, 3e-4, "glyph");
  training.optimizer.weight_decay = 0.01;
  const auto results = trajectories(training, test::trials(10, 3), methods);
  report("glyph, adamw, rate 0.0003: distance from sync over that of naive", methods, results);
  for (const double ratio : results[0]) CHECK(ratio <= 0.5);
  for (const double ratio : results[1]) CHECK(ratio >= 0.9);
}

TEST_CASE("momentum: predictions recover most of the loss that stale weights cost") {
  const std::vector<Method> methods{{"pipeoptim", false, "0.72 [0.60-0.84]"},
                                    {"pipeoptim", true, "0.88 [0.78-0.92] after 1000"},
                                    {"spectrain", false, "0.85 after 1000"},
                                    {"2bw", false, "0.84 after 1000"}};
  const Training training = test::training_of(OptimizerKind::Momentum, 2e-3, "teacher");
  const auto results = closures(training, 200, test::trials(5, 3), methods);
  report("teacher, momentum 0.9, rate 0.002, 200 updates: share of the loss", methods, results);
  CHECK(median(results[0]) >= 0.5);
  CHECK(lowest(results[0]) >= 0.3);
  CHECK(test::prediction_error(training, 400) < 1);
}

// With gradients that are all noise the error is ||s g - (g1 + .. + gs)|| / ||g1 + .. + gs||, which is sqrt(s + 1)
// = 2.83 for s = 7; momentum is what makes the last step tell of the next. At smaller rates there is next to no loss to
// get back: under 1 % at 0.005 and under 5 % at 0.01.
TEST_CASE("without momentum a prediction is worse than none, and the loss shows no reliable gain") {
  for (const double rate : {0.02, 0.1}) {
    CAPTURE(rate);
    const Training training = test::training_of(OptimizerKind::Sgd, rate, "teacher");
    const std::vector<Method> methods{{"pipeoptim", false, rate < 0.1 ? "-0.16" : "0.20"}};
    const auto results = closures(training, 200, test::trials(5, 3), methods);
    const double error = test::prediction_error(training, 400);
    report(fmt::format("teacher, sgd, rate {}, prediction error {:.2f} (prototype 2.4-2.8): share of the loss", rate,
                       error),
           methods, results);
    CHECK(error > 1);
    CHECK(median(results[0]) < 0.5);
  }
  const std::vector<Method> methods{{"pipeoptim", false, "1.09"}};
  const Training training = test::training_of(OptimizerKind::RmsProp, 3e-4, "glyph");
  const auto results = trajectories(training, test::trials(5, 3), methods);
  const double error = test::prediction_error(training, 200);
  report(
      fmt::format("glyph, rmsprop, rate 0.0003, prediction error {:.2f}: distance from sync over that of naive", error),
      methods, results);
  CHECK(error > 1);
  CHECK(median(results[0]) > 0.5);
}

// After a cold start the momentum is still zero while the pipeline fills, so a horizon that is too long there has no
// effect; after a drain the optimizer is warm.
TEST_CASE("a horizon that assumes old weights is wrong after a drain, and only there") {
  const WeightsRule depth = kPipeOptim.rule();
  WeightsRule exact = depth;
  exact.horizon = Horizon::Exact;
  for (const OptimizerKind kind : {OptimizerKind::Momentum, OptimizerKind::AdamW}) {
    CAPTURE(to_text(kind));
    const Training training = test::training_of(kind, 5e-4, "teacher");
    const Case c("pipeoptim", training.task);
    const auto weights = [&](const WeightsRule& rule, const char* drain) {
      const config::Value options =
          test::checked(drain, *get_from(schedules::catalog(), "schedule", c.schedule).fields);
      return test::really_run(test::real_program(c.schedule, c.plan, rule, 100, &options), c.model, c.plan, rule,
                              training, true)
          .learnt()
          .weights;
    };
    CHECK(weights(depth, "drain_every: 0") == weights(exact, "drain_every: 0"));
    CHECK(weights(depth, "drain_every: 25") != weights(exact, "drain_every: 25"));
    CHECK(weights(exact, "drain_every: 0") != weights(exact, "drain_every: 25"));
  }
}

}  // namespace stagecraft::gates_test
