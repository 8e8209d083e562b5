// Orders of work with other numbers of iterations than they were made for.

#include "sim/experiment/order_experiment.hpp"

#include <doctest/doctest.h>

#include <string>

#include <fmt/core.h>

namespace stagecraft::order_experiment_test {
namespace {

PlannedExperiment planned(const std::string& schedule, int iterations) {
  return plan_experiment(load_experiment("examples/quickstart",
                                         {"run.schedule=" + schedule, fmt::format("run.iterations={}", iterations)}));
}

}  // namespace

TEST_CASE("an order that repeats its iterations is that of any other number of them") {
  for (const char* const name : {"1f1b", "gpipe", "zb-h1", "synthesised"}) {
    CAPTURE(name);
    const PlannedExperiment one = planned(name, 1), three = planned(name, 3);
    const Schedule of_one = order_experiment(one), of_three = order_experiment(three);
    CHECK(of_one.op_count() * 3 == of_three.op_count());
    CHECK(with_iterations(of_three, three.plan, 3, 1) == of_one);
    CHECK(with_iterations(of_one, one.plan, 1, 3) == of_three);
  }
}

}  // namespace stagecraft::order_experiment_test
