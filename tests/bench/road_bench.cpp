// How long the road takes and how much memory it needs as pipelines grow: schedule, validate, lower, check, run on
// `ideal`, measure. Arguments: stages micro_batches ["simgrid" to run that backend too]. CPU seconds, children
// included; memory is the highest of the process so far. `ideal` runs six times: the first ones pay for memory that the
// system hands out for the first time, a search that asks again and again does not.
#include <sys/resource.h>

#include <algorithm>
#include <cstdlib>
#include <functional>

#include <fmt/core.h>

#include "backends/backend.hpp"
#include "sim/program/check.hpp"
#include "sim/program/lower.hpp"
#include "sim/result/report.hpp"
#include "sim/schedule/builder.hpp"
#include "sim/schedule/validate.hpp"

using namespace stagecraft;

namespace {

double cpu_seconds() {
  double total = 0;
  for (const int who : {RUSAGE_SELF, RUSAGE_CHILDREN}) {
    rusage usage{};
    getrusage(who, &usage);
    for (const timeval& t : {usage.ru_utime, usage.ru_stime})
      total += static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  }
  return total;
}

double peak_gib() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / (1024.0 * 1024.0);
}

double seconds_of(const std::function<void()>& work) {
  const double start = cpu_seconds();
  work();
  return cpu_seconds() - start;
}

void show(const char* step, double per, double seconds) {
  fmt::print("{:<12} {:>8.3f} s  {:>8.2f} M/s  {:>6.2f} GiB\n", step, seconds, per / seconds / 1e6, peak_gib());
}

void timed(const char* step, double per, const std::function<void()>& work) { show(step, per, seconds_of(work)); }

/// One full-duplex link from each device to a switch.
Cluster star(int devices) {
  Cluster cluster;
  cluster.types.push_back({.name = "gpu"});
  cluster.switches = {"switch"};
  for (int d = 0; d < devices; ++d) {
    cluster.devices.push_back({fmt::format("gpu{}", d), DeviceTypeId{0}, ""});
    cluster.links.push_back(
        {fmt::format("link{}", d), {12.5e9}, {2.5e-6}, Duplex::Full, {VertexId{d}, VertexId{devices}}});
  }
  return cluster;
}

}  // namespace

int main(int argc, char** argv) {
  const int stages = argc > 1 ? std::atoi(argv[1]) : 4096, micro_batches = argc > 2 ? std::atoi(argv[2]) : 2048;
  Plan plan = chain_plan(stages, stages, micro_batches);
  for (StageEdge& e : plan.edges) e.bytes = {16e6};
  StageCost cost;
  cost.forward = {1e-3};
  cost.backward = {2e-3};
  cost.memory.stash = {64e6};
  const StageCosts costs = uniform_costs(plan, cost);
  const double ops = 2.0 * stages * micro_batches;
  const Cluster cluster = star(stages);
  fmt::print("{} stages, {} micro-batches: {:.0f} ops\n", stages, micro_batches, ops);

  Schedule schedule;
  Program program;
  Timeline timeline;
  Report report;
  const BackendDef& ideal = get_from(backends::catalog(), "backend", "ideal");
  timed("schedule", ops, [&] {
    schedule = build_schedule(get_from(schedules::catalog(), "schedule", "1f1b"), {.plan = plan, .costs = costs});
  });
  timed("validate", ops, [&] { throw_if_any(validate(schedule, plan, {}), "1f1b"); });
  timed("lower", ops, [&] { program = lower(schedule, plan, costs, WeightsRule{}, {.rendezvous = false}); });
  const auto size = static_cast<double>(program.size());
  timed("check", size, [&] { check_program(program); });
  double best = 1e9;
  for (int i = 0; i < 6; ++i) {
    const double seconds = seconds_of([&] { timeline = ideal.run(program, cluster, {}); });
    if (i == 0) show("ideal, first", size, seconds);
    best = std::min(best, seconds);
  }
  show("ideal, best", size, best);
  if (argc > 3) {
    const double other =
        seconds_of([&] { timeline = get_from(backends::catalog(), "backend", argv[3]).run(program, cluster, {}); });
    show(argv[3], size, other);
    fmt::print("ideal is {:.0f} times as fast\n", other / best);
  }
  timed("measure", size, [&] { report = measure(program, timeline, cluster); });
  fmt::print("{:.0f} instructions, {:.1f} bytes each at the peak, makespan {:.9f} s\n", size,
             peak_gib() * 1024 * 1024 * 1024 / size, report.makespan.value);
}
