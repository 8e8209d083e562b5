// Runs that are too large for this machine are refused before memory is allocated.

#include "sim/experiment/limits.hpp"

#include <doctest/doctest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "backends/backend.hpp"
#include "sim/program/lower.hpp"
#include "sim/result/report.hpp"
#include "sim/schedule/builder.hpp"
#include "sim/schedule/validate.hpp"

namespace stagecraft::limits_test {
namespace {

constexpr int kStages = 256, kMicroBatches = 2048;

Cluster star(int devices) {
  Cluster cluster;
  cluster.types.push_back({.name = "gpu"});
  cluster.switches = {"switch"};
  for (int d = 0; d < devices; ++d) {
    cluster.devices.push_back({std::to_string(d), DeviceTypeId{0}, ""});
    cluster.links.push_back({"link", {12.5e9}, {2.5e-6}, Duplex::Full, {VertexId{d}, VertexId{devices}}});
  }
  return cluster;
}

double bytes_now() {
  std::ifstream file("/proc/self/statm");
  double total = 0, resident = 0;
  file >> total >> resident;
  return resident * static_cast<double>(sysconf(_SC_PAGESIZE));
}

double most_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return 1024.0 * static_cast<double>(usage.ru_maxrss);
}

void go_the_road(const Plan& plan, const char* backend) {
  StageCost cost;
  cost.forward = {1e-3}, cost.backward = {2e-3}, cost.memory.stash = {1e6};
  const StageCosts costs = uniform_costs(plan, cost);
  const Schedule schedule =
      build_schedule(get_from(schedules::catalog(), "schedule", "1f1b"), ScheduleInput{plan, costs});
  (void)validate(schedule, plan, {});
  const Program program = lower(schedule, plan, costs, {}, {});
  const Cluster cluster = star(kStages);
  const Timeline timeline = get_from(backends::catalog(), "backend", backend).run(program, cluster, {});
  (void)measure(program, timeline, cluster);
}

/// Peak memory of a process that compiles, runs and measures, minus the memory that it began with.
double bytes_of_road(const Plan& plan, const char* backend) {
  int line[2];
  REQUIRE(pipe(line) == 0);
  const pid_t child = fork();
  if (child == 0) {
    const double before = bytes_now();
    go_the_road(plan, backend);
    const double taken = most_bytes() - before;
    _exit(write(line[1], &taken, sizeof taken) == sizeof taken ? 0 : 1);
  }
  double taken = 0;
  int status = 1;
  CHECK(read(line[0], &taken, sizeof taken) == sizeof taken);
  waitpid(child, &status, 0);
  CHECK(status == 0);
  close(line[0]), close(line[1]);
  return taken;
}

}  // namespace

TEST_CASE("the estimated memory of a run is at least what it takes, and at most 25 % more") {
#ifdef STAGECRAFT_SANITIZED
  return;  // Sanitizers take memory themselves.
#endif
  Plan plan = chain_plan(kStages, kStages, kMicroBatches);
  for (StageEdge& e : plan.edges) e.bytes = {16e6};
  const double said = memory_of(plan, 1, true).value;
  const double ideal = bytes_of_road(plan, "ideal"), fluid = bytes_of_road(plan, "fluid");
  CAPTURE(said);
  CAPTURE(ideal);
  CAPTURE(fluid);
  CHECK(ideal <= fluid);
  CHECK(fluid <= said);
  CHECK(said <= 1.25 * fluid);
}

}  // namespace stagecraft::limits_test
