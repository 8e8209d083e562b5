// How the time of every schedule, and of validating it, grows with micro-batches and with ranks. Arguments: ranks
// micro_batches [unequal] [schedule ...]. CPU seconds, best of three; growth is the power of the number of ops, so 1 is
// linear. `unequal`: stages take from one to four times as long as others, which searches find harder.
#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <functional>

#include <fmt/core.h>

#include "sim/core/random.hpp"
#include "sim/schedule/builder.hpp"
#include "sim/schedule/validate.hpp"
#include "tests/support/schedules.hpp"

using namespace stagecraft;

namespace {

double cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  double total = 0;
  for (const timeval& t : {usage.ru_utime, usage.ru_stime})
    total += static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  return total;
}

double best_of_three(const std::function<void()>& work) {
  double best = 1e9;
  for (int i = 0; i < 3; ++i) {
    const double start = cpu_seconds();
    work();
    best = std::min(best, cpu_seconds() - start);
  }
  return std::max(best, 1e-9);
}

struct Point {
  double ops = 0, build = 0, validate = 0;
};

StageCosts unequal_costs(const Plan& plan) {
  Rng random(1, "unequal");
  const auto time = [&] { return random.uniform(1, 4); };
  StageCosts costs;
  for (int s = 0; s < plan.stage_count(); ++s) {
    StageCost cost = test::times(time(), 0);
    cost.input_gradient = Seconds{time()}, cost.weight_gradient = Seconds{time()};
    cost.backward = cost.input_gradient + cost.weight_gradient;
    costs.add({cost});
  }
  return costs;
}

Point measured(const ScheduleDef& def, int ranks, int micro_batches, bool unequal) {
  const Plan plan = test::least_plan(def, ranks, micro_batches);
  const StageCosts costs = unequal ? unequal_costs(plan) : uniform_costs(plan, test::times(1, 2));
  Point point;
  Schedule schedule;
  point.build = best_of_three([&] { schedule = build_schedule(def, {.plan = plan, .costs = costs}); });
  point.validate =
      best_of_three([&] { throw_if_any(validate(schedule, plan, {.trains = def.trains}), std::string(def.name)); });
  point.ops += static_cast<double>(schedule.op_count());
  return point;
}

double power(double seconds, double before, double ops, double ops_before) {
  return std::log(seconds / before) / std::log(ops / ops_before);
}

void show(const ScheduleDef& def, int p, int m, bool unequal) {
  const Point one = measured(def, p, m, unequal), deep = measured(def, 2 * p, m, unequal),
              longer = measured(def, p, 2 * m, unequal);
  const auto growth = [&](const Point& to, double Point::*time) { return power(to.*time, one.*time, to.ops, one.ops); };
  fmt::print("{:<18} {:>10.0f} {:>9.4f} s {:>7.1f} M/s {:>6.2f} {:>6.2f}   {:>9.4f} s {:>7.1f} M/s {:>6.2f} {:>6.2f}\n",
             def.name, one.ops, one.build, one.ops / one.build / 1e6, growth(longer, &Point::build),
             growth(deep, &Point::build), one.validate, one.ops / one.validate / 1e6, growth(longer, &Point::validate),
             growth(deep, &Point::validate));
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  const int p = argc > 1 ? std::atoi(argv[1]) : 32, m = argc > 2 ? std::atoi(argv[2]) : 1024;
  fmt::print("{} ranks, {} micro-batches, and twice as many of either\n", p, m);
  fmt::print("{:<18} {:>10} {:>11} {:>11} {:>6} {:>6}   {:>11} {:>11} {:>6} {:>6}\n", "schedule", "ops", "made", "",
             "m", "p", "validated", "", "m", "p");
  const bool unequal = argc > 3 && std::string_view(argv[3]) == "unequal";
  char** const names = argv + (unequal ? 4 : 3);
  for (const ScheduleDef* def : schedules::catalog()) {
    const std::string name(def->name);
    if (name == "csv" || name == "synthesised") continue;  // From a file; as long as its search may be.
    if (names < argv + argc && std::none_of(names, argv + argc, [&](const char* asked) { return name == asked; }))
      continue;
    if (!test::takes(*def, p, m) || !test::takes(*def, 2 * p, m) || !test::takes(*def, p, 2 * m)) {
      fmt::print(stderr, "{} cannot have these ranks and micro-batches\n", name);
      continue;
    }
    show(*def, p, m, unequal);
  }
}
