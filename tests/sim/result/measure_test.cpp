// Metrics of a run, computed by hand.
//
// 1F1B on two stages, two micro-batches, F = 1, B = 2, U = 0.5, every message 0.5:
//   rank 0: F0 0-1, F1 1-2, B0 5-7, B1 8-10, U 10-10.5
//   rank 1: F0 1.5-2.5, B0 2.5-4.5, F1 4.5-5.5, B1 5.5-7.5, U 7.5-8
//   messages: F0 1-1.5, F1 2-2.5, B0 4.5-5, B1 7.5-8

#include <doctest/doctest.h>

#include "sim/result/report.hpp"
#include "tests/support/ideal.hpp"
#include "tests/support/program_builder.hpp"
#include "tests/support/road.hpp"

namespace stagecraft::measure_test {
namespace {

struct Run {
  Program program;
  Cluster cluster;
  Timeline timeline;
  Report report;
};

Run run_of(Program program, Cluster cluster) {
  Timeline timeline = test::run_ideal(program, cluster);
  Report report = measure(program, timeline, cluster);
  return {std::move(program), std::move(cluster), std::move(timeline), std::move(report)};
}

StageCost sized() {
  StageCost cost = test::times(1, 2, 0.5);
  cost.memory.stash = Bytes{100};
  cost.memory.weights = Bytes{1000}, cost.memory.gradients = Bytes{500}, cost.memory.optimizer = Bytes{2000};
  return cost;
}

Run two_stages(int iterations = 1, const char* schedule = "1f1b", const LoweringOptions& how = {}) {
  const Plan plan = test::dag_plan(2, 2, {{0, 1}}, 10);
  LoweringOptions options = how;
  options.iterations = iterations;
  return run_of(test::program_of(schedule, plan, uniform_costs(plan, sized()), options), test::star(2, 20, 0));
}

doctest::Approx near(double value) { return doctest::Approx(value).epsilon(1e-12); }

}  // namespace

TEST_CASE("makespan, bubble, utilization and throughput follow from the timeline") {
  const Report r = two_stages().report;
  CHECK(r.makespan.value == 10.5);
  CHECK(r.length.value == 10.5);
  CHECK(r.period.value == 10.5);
  CHECK(r.devices[DeviceId{0}].busy.value == 6.5);
  CHECK(r.devices[DeviceId{1}].busy.value == 6.5);
  CHECK(r.devices[DeviceId{0}].utilisation == near(6.5 / 10.5));
  CHECK(r.bubble == near(1 - (13.0 + 1.5) / 21));  // Devices wait 1 and 0.5 for messages on the wire.
  CHECK(r.steady_bubble == near(1 - 6.5 / 10.5));
  CHECK(r.throughput == near(2 / 10.5));
}

TEST_CASE("of several iterations the first is the makespan, and the last difference the period") {
  const Report flush = two_stages(3).report;
  CHECK(flush.makespan.value == 10.5);
  CHECK(flush.period.value == 10.5);
  CHECK(flush.length.value == 31.5);
  CHECK(flush.devices[DeviceId{0}].busy.value == 6.5);
  CHECK(flush.devices[DeviceId{0}].utilisation == near(6.5 / 10.5));

  // Continuous, and rank 0 is never without work: F and B of two micro-batches and an update, once each period.
  const Report continuous = run_of(test::program_of("2bw", chain_plan(2, 2, 2),
                                                    uniform_costs(chain_plan(2, 2, 2), sized()), test::pure_delays(4)),
                                   test::delay_cluster(2, 0))
                                .report;
  CHECK(continuous.period.value == near(2 * 3 + 0.5));
  CHECK(continuous.steady_bubble == near(0));
}

TEST_CASE("stages that run ahead of the last one have the work of a period, though they end before it begins") {
  const Plan plan = chain_plan(3, 3, 4);
  StageCosts costs = uniform_costs(plan, test::times(1, 0));
  costs.at(StageId{2}, 0).forward = Seconds{5};
  const Cluster cluster = test::star(3, 1, 0);
  const Program program = test::program_of("inference", plan, costs, {.iterations = 4});
  const Report r = measure(program, test::run_ideal(program, cluster), cluster);
  CHECK(r.period.value == near(4 * 5.0));
  for (const auto& [device, compute] : {std::pair{0, 4.0}, {1, 4.0}, {2, 20.0}}) {
    const TimeClasses& time = r.devices[DeviceId{device}].time;
    CHECK(time.compute().value == near(compute));
    CHECK(time.total().value == near(r.period.value));
  }
}

TEST_CASE("exposed communication is the same for two messages in sequence or in parallel") {
  // Two sources of 1 s each feed a third device, which then waits 2 s for 1 GB from each.
  Plan plan = test::dag_plan(3, 1, {{0, 2}, {1, 2}});
  for (StageEdge& e : plan.edges) e.bytes = Bytes{1e9};
  const Cluster cluster = test::star(3, 1e9, 0);
  for (const StreamModel streams : {StreamModel::Single, StreamModel::Direction}) {
    LoweringOptions options;
    options.streams = streams;
    const Program program = test::program_of("inference", plan, uniform_costs(plan, test::times(1, 0)), options);
    Timeline timeline = test::run_ideal(program, cluster);
    if (streams == StreamModel::Direction)  // What sharing the last link does to both.
      for (const char* name : {"0>2:0F0", "2<0:0F0", "1>2:1F0", "2<1:1F0"}) timeline.end[test::find(program, name)] = 3;
    const InstructionId last = test::find(program, "2F0");
    timeline.start[last] = 3, timeline.end[last] = 4;
    CHECK(measure(program, timeline, cluster).devices[DeviceId{2}].time.spent.messages.value == near(2));
  }
}

TEST_CASE("exposed communication is waiting for messages on the wire, not for those not yet sent") {
  const Report r = two_stages().report;
  CHECK(r.devices[DeviceId{0}].time.spent.messages.value == near(1.0));  // B0 and B1, half a second each
  CHECK(r.devices[DeviceId{1}].time.spent.messages.value == near(0.5));  // F0; F1 came while B0 ran
}

TEST_CASE("peak memory has its time, its op and its parts") {
  const Run run = two_stages();
  const MemoryPeak& first = run.report.devices[DeviceId{0}].memory;
  CHECK(to_text(run.program, first.at) == "0F1");  // two activations, and both messages still on their way out
  CHECK(first.resident.value == 3500);
  CHECK(first.stash.value == 200);
  CHECK(first.outgoing.value == 20);
  CHECK(first.received.value == 0);
  CHECK(first.total.value == 3720);
  CHECK(first.activations == 2);
  const MemoryPeak& second = run.report.devices[DeviceId{1}].memory;
  CHECK(to_text(run.program, second.at) ==
        "1<0:0F1");  // 1F0 has its activation and its input, and the next input comes
  CHECK(second.stash.value == 100);
  CHECK(second.received.value == 20);
  CHECK(second.outgoing.value == 0);
  CHECK(second.total.value == 3620);
  CHECK(second.activations == 1);
  CHECK(second.capacity.value == 0);
}

TEST_CASE("a peak where one op ends and the next starts belongs to the one that starts") {
  // Blocking: F1 starts when F0's message has gone, which frees its buffer at that moment.
  LoweringOptions options;
  options.overlap = false;
  const Run run = two_stages(1, "gpipe", options);
  const MemoryPeak& peak = run.report.devices[DeviceId{0}].memory;
  CHECK(to_text(run.program, peak.at) == "0F1");
  CHECK(peak.stash.value == 200);
  CHECK(peak.outgoing.value == 10);
  CHECK(peak.total.value == 3710);
}

TEST_CASE("an op that ends frees memory before an op that starts at the same time") {
  const Plan plan = test::dag_plan(1, 4, {});
  const Run run = run_of(test::program_of("1f1b", plan, uniform_costs(plan, sized())), test::star(1, 1, 0));
  CHECK(run.report.devices[DeviceId{0}].memory.stash.value == 100);
  CHECK(run.report.devices[DeviceId{0}].memory.activations == 1);
}

TEST_CASE("a rounding error between the end of one op and the start of the next changes no peak") {
  const Plan plan = test::dag_plan(1, 4, {});
  const Run run = run_of(test::program_of("1f1b", plan, uniform_costs(plan, sized())), test::star(1, 1, 0));
  const MemoryPeak exact = run.report.devices[DeviceId{0}].memory;
  const auto peak_with = [&](double factor) {
    Timeline moved = run.timeline;
    for (double& start : moved.start) start *= factor;
    return measure(run.program, moved, run.cluster).devices[DeviceId{0}].memory;
  };
  for (const double factor : {1 - 1e-15, 1 + 1e-15, 1 - 4e-13, 1 + 4e-13}) {
    CHECK(peak_with(factor).total == exact.total);
    CHECK(peak_with(factor).activations == 1);
    CHECK(peak_with(factor).at == exact.at);
  }
  CHECK(peak_with(1 - 1e-9).activations == 2);
}

TEST_CASE("the critical path goes from the last end to the first start, and its parts sum to the length") {
  const Run run = two_stages();
  std::string path;
  for (const InstructionId id : run.report.critical_path) path += to_text(run.program, id) + " ";
  CHECK(path == "0F0 1<0:0F0 1F0 1B0 1F1 1B1 0<1:1B1 0B1 0U0 ");  // one end stands for both of a rendezvous
  CHECK(run.report.critical_compute.value == near(9.5));
  CHECK(run.report.critical_transfer.value == near(1.0));
  CHECK(run.report.critical_wait.value == near(0));
}

TEST_CASE("unexplained waiting is on the critical path as waiting") {
  // A timeline in which the second op starts late.
  test::ProgramBuilder builder(1);
  builder.compute(0, 1);
  builder.compute(0, 1);
  const Program program = builder.build();
  Timeline timeline;
  timeline.start = {0, 3}, timeline.end = {1, 4};
  const Report r = measure(program, timeline, test::bare_cluster(1));
  CHECK(r.critical_compute.value == 2);
  CHECK(r.critical_wait.value == 2);
  CHECK(r.length.value == 4);
}

TEST_CASE("a run that does not begin at zero is measured from its first op") {
  test::ProgramBuilder builder(1);
  builder.compute(0, 1);
  const Program program = builder.build();
  Timeline timeline;
  timeline.start = {100}, timeline.end = {101};
  const Report r = measure(program, timeline, test::bare_cluster(1));
  CHECK(r.makespan.value == 1);
  CHECK(r.length.value == 1);
  CHECK(r.bubble == 0);
}

TEST_CASE("the busiest device of a measured run is never idle for less than nothing, however well the clocks agree") {
  const Plan plan = chain_plan(2, 2, 2);
  LoweringOptions options = test::pure_delays(2);
  const Run run =
      run_of(test::program_of("2bw", plan, uniform_costs(plan, sized()), options), test::delay_cluster(2, 0));
  for (const double late : {0.0, 0.1, 0.5}) {
    CAPTURE(late);
    Timeline measured = run.timeline;
    measured.clock = Clock::Host;
    // Rank 0 has no pause. By its clock it ends the first iteration later, and the second as late as by all others.
    InstructionId last{};
    for (const InstructionId n : run.program.instructions.ids())
      if (run.program.iteration_of(run.program.at(n)) == 0 && (!last.valid() || measured.end[n] > measured.end[last]))
        last = n;
    measured.end[last] += late;
    const Report report = measure(run.program, measured, run.cluster);
    CHECK(report.period.value == near(6.5 - late));
    CHECK(report.steady_bubble == near(0));
  }
}

TEST_CASE("every link and direction has its traffic, and its share of the capacity") {
  const Run run = two_stages();
  REQUIRE(run.report.links.size() == 4);  // two cables, both ways
  for (const LinkReport& l : run.report.links) {
    CHECK(l.traffic.value == 20);
    CHECK(l.utilisation == near(20 / (20 * 10.5)));
  }
  Cluster bus = test::bare_cluster(2);
  test::connect(bus, {0, 1}, 20, 0, Duplex::Half);
  const Report half = measure(run.program, run.timeline, bus);
  REQUIRE(half.links.size() == 1);
  CHECK(half.links[0].traffic.value == 40);
}

TEST_CASE("an all-reduce sends 2(n-1)/n of the bytes over every edge of the ring") {
  test::ProgramBuilder builder(4);
  builder.all_reduce({0, 1, 2}, 300);
  const Run run = run_of(builder.build(), test::star(4, 100, 0));
  CHECK(run.report.links.size() == 6);  // the fourth device has no part in it
  for (const LinkReport& l : run.report.links) CHECK(l.traffic.value == 400);
}

TEST_CASE("links come busiest first") {
  test::ProgramBuilder builder(3);
  builder.send(0, 1, 100);
  builder.send(0, 2, 300);
  const Report r = run_of(builder.build(), test::star(3, 100, 0)).report;
  REQUIRE(r.links.size() == 3);
  CHECK(r.links[0].traffic.value == 400);
  CHECK(r.links[1].traffic.value == 300);
  CHECK(r.links[2].traffic.value == 100);
}

TEST_CASE("devices without a stage do not count in means and energy") {
  Plan plan = test::dag_plan(2, 2, {{0, 1}});
  plan.stages[StageId{1}].place_on({DeviceId{3}});
  Cluster cluster = test::star(5, 1, 0);
  cluster.types[DeviceTypeId{0}].busy = Watts{10}, cluster.types[DeviceTypeId{0}].idle = Watts{1};
  const Report r = run_of(test::program_of("gpipe", plan, uniform_costs(plan, test::times(1, 2))), cluster).report;
  CHECK(r.makespan.value == 9);
  CHECK(r.bubble == near(1 - 12.0 / 18));
  REQUIRE(r.devices.size() == 4);
  CHECK(r.devices[DeviceId{0}].used);
  CHECK_FALSE(r.devices[DeviceId{1}].used);
  CHECK(r.energy.value == near(2 * (6 * 10 + 3 * 1)));
}

}  // namespace stagecraft::measure_test
