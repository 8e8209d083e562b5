// Distance from training without a pipeline after 100 updates, relative to naive stale weights, compared with a
// prototype: ||W - W_sync|| / ||W_naive - W_sync||.

#include "tests/convergence/methods.hpp"
#include "tests/reference/weights/questions.hpp"

using namespace stagecraft;
using namespace stagecraft::test;

namespace {

constexpr int kUpdates = 100, kSeeds = 5;

struct Course {
  std::string task, optimizer;
  double rate = 0;

  friend auto operator<=>(const Course&, const Course&) = default;
};

/// Least, median and most of 20 seeds.
std::map<Course, Losses> their_ratios() {
  std::map<Course, Losses> all;
  for (const ReferenceRow& row : reference_rows("weight_distances.csv"))
    all[{row.text("task"), row.text("optimizer"), row.number("rate")}][row.text("method")] = {
        row.number("least"), row.number("median"), row.number("most")};
  return all;
}

test::Method method_of(const std::string& name) {
  const auto colon = name.find(':');
  return {name.substr(0, colon), colon != name.npos};
}

std::vector<double> weights_of(const test::Method& method, const Course& course, int seed) {
  Training training = training_of(course.optimizer == "sgdm"    ? OptimizerKind::Momentum
                                  : course.optimizer == "adamw" ? OptimizerKind::AdamW
                                                                : OptimizerKind::RmsProp,
                                  course.rate, course.task);
  if (course.optimizer == "adamw") training.optimizer.weight_decay = 0.01;
  training.seed = static_cast<std::uint64_t>(seed);
  const Case c(method.policy, course.task);
  const WeightsRule rule = method.rule();
  const Program program = real_program(c.schedule, c.plan, rule, kUpdates);
  const Learnt learnt = really_run(program, c.model, c.plan, rule, training, true).learnt();
  std::vector<double> all;
  for (const auto& stage : learnt.weights) all.insert(all.end(), stage.begin(), stage.end());
  return all;
}

Losses our_ratios(const Course& course, const Losses& methods) {
  Losses all;
  for (int seed = 1; seed <= kSeeds; ++seed) {
    const auto sync = weights_of({"flush"}, course, seed);
    const double naive = distance(weights_of({"naive"}, course, seed), sync);
    for (const auto& [name, ratios] : methods)
      all[name].push_back(distance(weights_of(method_of(name), course, seed), sync) / naive);
  }
  return all;
}

}  // namespace

TEST_CASE("distances from training without a pipeline stand in the order that the data separates") {
  int pairs = 0;
  const auto courses = their_ratios();
  int tested = trials(static_cast<int>(courses.size()));
  for (const auto& [course, theirs] : courses) {
    if (tested-- == 0) break;
    const Losses ours = our_ratios(course, theirs);
    std::string text = fmt::format("{}, {} at {}\n", course.task, course.optimizer, course.rate);
    for (const auto& [name, ratios] : ours)
      text += fmt::format("  {:<24}{}   data {}\n", name, in_words(ratios), in_words(theirs.at(name)));
    MESSAGE(text);
    INFO(text);
    pairs += check_less(theirs, ours);
  }
  MESSAGE(pairs << " orders");
  CHECK(pairs > (all_trials() ? 50 : 5));
}
