// Distance from training without a pipeline after 100 updates, relative to naive stale weights, compared with a
// prototype: ||W - W_sync|| / ||W_naive - W_sync||.

#include "sim/core/file.hpp"
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

/// task,opt,lr,n,method,median_ratio_to_naive,min,max: least, median and most of 20 seeds.
std::map<Course, Losses> their_ratios() {
  std::map<Course, Losses> all;
  const auto lines = split(read_file(reference_data() + "/weights/traj.csv"), '\n');
  REQUIRE(trim(lines.front()) == "task,opt,lr,n,method,median_ratio_to_naive,min,max");
  for (std::size_t n = 1; n < lines.size(); ++n) {
    const auto cells = split(lines[n], ',');
    if (cells.size() != 8 || cells[3] != std::to_string(kUpdates) || cells[4] == "naive") continue;
    all[{cells[0], cells[1], std::stod(cells[2])}][our_name(cells[4])] = {std::stod(cells[6]), std::stod(cells[5]),
                                                                          std::stod(cells[7])};
  }
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
  if (reference_data().empty()) return;
  int pairs = 0;
  for (const auto& [course, theirs] : their_ratios()) {
    const Losses ours = our_ratios(course, theirs);
    std::string text = fmt::format("{}, {} at {}\n", course.task, course.optimizer, course.rate);
    for (const auto& [name, ratios] : ours)
      text += fmt::format("  {:<24}{}   data {}\n", name, in_words(ratios), in_words(theirs.at(name)));
    MESSAGE(text);
    INFO(text);
    pairs += check_less(theirs, ours);
  }
  MESSAGE(pairs << " orders");
  CHECK(pairs > 50);
}
