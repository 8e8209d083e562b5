// Table 5 of Qi et al., Zero Bubble Pipeline Parallelism, ICLR 2024, from the times of its table 9: bubble rates of
// five schedules on twelve settings, to the four digits that are printed.

#include <doctest/doctest.h>

#include <cmath>

#include "sim/run/run.hpp"
#include "tests/support/ideal.hpp"

using namespace stagecraft;

namespace {

constexpr const char* kSchedules[] = {"1f1b", "zb-h1", "zb-h2", "zb-1p", "zb-2p"};

struct Row {
  const char* scenario;
  double rates[5];  ///< In the order of kSchedules.
};

constexpr Row kTable[] = {
    {"1.5b-m24", {0.2431, 0.1585, 0.1083, 0.1585, 0.0433}},   {"1.5b-m32", {0.1985, 0.1242, 0.0837, 0.1242, 0.0039}},
    {"1.5b-m64", {0.1240, 0.0674, 0.0444, 0.0674, 0.0026}},   {"6.2b-m24", {0.2347, 0.1323, 0.0698, 0.1323, 0.0029}},
    {"6.2b-m32", {0.1898, 0.1045, 0.0559, 0.1045, 0.0022}},   {"6.2b-m64", {0.1091, 0.0554, 0.0294, 0.0554, 0.0010}},
    {"14.6b-m48", {0.2552, 0.1397, 0.0672, 0.1397, 0.0066}},  {"14.6b-m64", {0.2082, 0.1088, 0.0516, 0.1088, 0.0054}},
    {"14.6b-m128", {0.1251, 0.0576, 0.0266, 0.0576, 0.0028}}, {"28.3b-m96", {0.2646, 0.1421, 0.0641, 0.1421, 0.0038}},
    {"28.3b-m128", {0.2168, 0.1106, 0.0490, 0.1106, 0.0029}}, {"28.3b-m256", {0.1352, 0.0594, 0.0257, 0.0594, 0.0018}},
};

/// (cost - m(F + I + W)) / cost, where the cost is the longest time from a stage's first start to its last end.
double bubble_rate(const Prepared& p, const Timeline& timeline, int micro_batches) {
  double cost = 0;
  for (int d = 0; d < p.program.devices; ++d) {
    double first = INFINITY, last = 0;
    for (std::size_t n = 0; n < p.program.size(); ++n) {
      const Instruction& i = p.program.instructions[n];
      if (i.device != d || !i.is_compute() || i.kind == InstructionKind::Update) continue;
      first = std::min(first, timeline.start[n]);
      last = std::max(last, timeline.end[n]);
    }
    cost = std::max(cost, last - first);
  }
  const StageCost& one = p.costs.front().front();
  return 1 - micro_batches * (one.forward + one.input_gradient + one.weight_gradient).value / cost;
}

}  // namespace

TEST_CASE("zero bubble, table 5: 60 of 60 bubble rates") {
  int cells = 0;
  for (const Row& row : kTable)
    for (int k = 0; k < 5; ++k) {
      CAPTURE(row.scenario);
      CAPTURE(kSchedules[k]);
      const Scenario scenario = load_scenario(std::string("scenarios/papers/zero-bubble/") + row.scenario + ".yaml",
                                              {std::string("run.schedule=") + kSchedules[k], "run.iterations=1"});
      const Prepared p = prepare(scenario);
      const double rate = bubble_rate(p, test::run_ideal(p.program, p.cluster), scenario.micro_batches);
      CHECK(std::round(rate * 1e4) == std::round(row.rates[k] * 1e4));
      ++cells;
    }
  CHECK(cells == 60);
}
