// Distance from training without a pipeline after 100 updates, relative to naive stale weights, compared with a
// prototype: ||W - W_sync|| / ||W_naive - W_sync||.

#include "tests/convergence/methods.hpp"
#include "tests/reference/weights/comparison.hpp"

namespace stagecraft::trajectories_test {
using namespace stagecraft::test;

namespace {

constexpr int kUpdates = 100, kSeeds = 5;

struct TrainingSetting {
  std::string task, optimizer;
  double rate = 0;

  friend auto operator<=>(const TrainingSetting&, const TrainingSetting&) = default;
};

/// Least, median and most of 20 seeds.
std::map<TrainingSetting, Losses> reference_ratios() {
  std::map<TrainingSetting, Losses> ratios;
  for (const ReferenceRow& row : reference_rows("weight_distances.csv"))
    ratios[{row.text("task"), row.text("optimizer"), row.number("rate")}][row.text("method")] = {
        row.number("least"), row.number("median"), row.number("most")};
  return ratios;
}

test::Method method_of(const std::string& name) {
  const auto colon = name.find(':');
  return {name.substr(0, colon), colon != name.npos};
}

std::vector<double> weights_of(const test::Method& method, const TrainingSetting& setting, int seed) {
  Training training = training_of(setting.optimizer == "sgdm"    ? OptimizerKind::Momentum
                                  : setting.optimizer == "adamw" ? OptimizerKind::AdamW
                                                                 : OptimizerKind::RmsProp,
                                  setting.rate, setting.task);
  if (setting.optimizer == "adamw") training.optimizer.weight_decay = 0.01;
  training.seed = static_cast<std::uint64_t>(seed);
  const Case c(method.policy, setting.task);
  const WeightsRule rule = method.rule();
  const Program program = real_program(c.schedule, c.plan, rule, kUpdates);
  const Learnt learnt = really_run(program, c.model, c.plan, rule, training, true).learnt();
  std::vector<double> weights;
  for (const auto& stage : learnt.weights) weights.insert(weights.end(), stage.begin(), stage.end());
  return weights;
}

Losses train_ratios(const TrainingSetting& setting, const Losses& methods) {
  Losses ratios_by_method;
  for (int seed = 1; seed <= kSeeds; ++seed) {
    const auto sync = weights_of({"flush"}, setting, seed);
    const double naive = distance(weights_of({"naive"}, setting, seed), sync);
    for (const auto& [name, ratios] : methods)
      ratios_by_method[name].push_back(distance(weights_of(method_of(name), setting, seed), sync) / naive);
  }
  return ratios_by_method;
}

}  // namespace

TEST_CASE("distances from training without a pipeline stand in the order that the data separates") {
  int pairs = 0;
  const auto settings = reference_ratios();
  int tested = trials(static_cast<int>(settings.size()));
  for (const auto& [setting, reference] : settings) {
    if (tested-- == 0) break;
    const Losses actual = train_ratios(setting, reference);
    std::string text = fmt::format("{}, {} at {}\n", setting.task, setting.optimizer, setting.rate);
    for (const auto& [name, ratios] : actual)
      text += fmt::format("  {:<24}{}   data {}\n", name, in_words(ratios), in_words(reference.at(name)));
    MESSAGE(text);
    INFO(text);
    pairs += check_less(reference, actual);
  }
  MESSAGE(pairs << " orders");
  CHECK(pairs > (all_trials() ? 50 : 5));
}

}  // namespace stagecraft::trajectories_test
