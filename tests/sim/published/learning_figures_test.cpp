// Figures of learning in pipelines: delay of gradients, stable learning rates, and updates until the loss falls.

#include "sim/published/named_figures.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <numbers>

#include "sim/core/diagnostic.hpp"

namespace stagecraft::learning_figures_test {
namespace {

CompiledExperiment stages(int p, const std::string& schedule, int micro_batches) {
  const std::string count = std::to_string(p);
  return compile(load_experiment(
      "scenarios/papers/pipeoptim/equal-stages.yaml",
      {"model.layers=" + count, "cluster.devices=" + count, "plan.stages=" + count, "run.schedule=" + schedule,
       "run.micro_batches=" + std::to_string(micro_batches), "run.iterations=20"}));
}

Outcome learnt(const std::vector<double>& losses) {
  Outcome o;
  o.timeline.learnt.emplace();
  for (std::size_t n = 0; n < losses.size(); ++n)
    o.timeline.learnt->evaluations.push_back({static_cast<int>(10 * n), losses[n]});
  return o;
}

}  // namespace

TEST_CASE("gradients of the first stage are p - 1 updates late without a flush, one in 2BW, none with a flush") {
  for (const int p : {2, 3, 8}) {
    CAPTURE(p);
    CHECK(delay_of_first_stage(stages(p, "pipedream", 1).program) == p - 1);
    CHECK(delay_of_first_stage(stages(p, "2bw", 8).program) == 1);
    CHECK(delay_of_first_stage(stages(p, "1f1b", 8).program) == 0);
    CHECK(delay_of_first_stage(stages(p, "zb-h1", 8).program) == 0);
  }
  CHECK_THROWS_AS(delay_of_first_stage(stages(2, "inference", 4).program), InputError);
}

TEST_CASE("the largest stable rate is 2 sin(pi / (4 d + 2))") {
  for (const int p : {2, 4, 8}) {
    CAPTURE(p);
    const double theory = 2 * std::sin(std::numbers::pi / (4 * (p - 1) + 2));
    CHECK(std::abs(stable_rate(stages(p, "pipedream", 1), {}) - theory) < 1e-4);
  }
}

TEST_CASE("the target is half of the first loss, as a mean of three evaluations") {
  CHECK(updates_to_half_loss({}, learnt({8, 6, 5, 4, 3, 2})) == 30);  // (5 + 4 + 3) / 3 = 4
  CHECK(std::isnan(updates_to_half_loss({}, learnt({8, 6, 5, 5, 5}))));
  CHECK(std::isnan(updates_to_half_loss({}, {})));
  CHECK(evaluated_loss({}, learnt({8, 6, 5, 4, 3})) == 4.5);
  CHECK(std::isnan(evaluated_loss({}, learnt({8, 6, 5}))));
  CHECK(std::isnan(evaluated_loss({}, {})));
}

}  // namespace stagecraft::learning_figures_test
