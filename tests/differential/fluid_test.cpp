// Two implementations of max-min sharing, ours and SimGrid's, agree on the start and end of every instruction of random
// programs with contention; without contention both agree with the longest path.

#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <vector>

#include "backends/backend.hpp"
#include "tests/support/differences.hpp"
#include "tests/support/random_cases.hpp"
#include "tests/support/random_changes.hpp"
#include "tests/support/trials.hpp"

namespace stagecraft::fluid_test {
namespace {

Timeline run(const char* backend, const Program& program, const Cluster& cluster) {
  return get_from(backends::catalog(), "backend", backend).run(program, cluster, {});
}

/// Where `fluid` and `other` differ, or two runs of `fluid` are not bit-identical; empty if they agree.
std::string difference(const Program& program, const Cluster& cluster, const char* other = "simgrid") {
  const Timeline ours = run("fluid", program, cluster), again = run("fluid", program, cluster);
  if (ours.start != again.start || ours.end != again.end) return "not the same twice";
  return test::difference(program, ours, run(other, program, cluster));
}

double speed(test::Draw& draw) { return 1e6 * draw(50, 20000); }
double latency(test::Draw& draw) { return 1e-6 * draw(0, 300); }

/// Cards of different speeds and kinds on one switch.
Cluster star(int devices, test::Draw& draw) {
  const Duplex kinds[] = {Duplex::Full, Duplex::Full, Duplex::Half, Duplex::Unshared};
  const bool mixed = draw(0, 1) == 1;
  const double one_speed = speed(draw);
  Cluster cluster = test::bare_cluster(devices, 1);
  for (int d = 0; d < devices; ++d)
    test::connect(cluster, {d, devices}, mixed ? speed(draw) : one_speed, latency(draw), kinds[mixed ? draw(0, 3) : 0]);
  return cluster;
}

/// Devices on one shared cable.
Cluster medium(int devices, test::Draw& draw) {
  Cluster cluster = test::bare_cluster(devices);
  std::vector<int> stations;
  for (int d = 0; d < devices; ++d) stations.push_back(d);
  if (devices > 1) test::connect(cluster, stations, speed(draw), latency(draw), Duplex::Half);
  return cluster;
}

/// Pods of up to three devices, each with a fast switch and one card; the cards on a switch, or on one cable.
Cluster pods(int devices, test::Draw& draw) {
  const int size = draw(1, 3), count = (devices + size - 1) / size;
  const bool cable = draw(0, 1) == 1;
  Cluster cluster = test::bare_cluster(devices, count + 1);
  for (int d = 0; d < devices; ++d) test::connect(cluster, {d, devices + d / size}, speed(draw), latency(draw));
  std::vector<int> switches;
  for (int p = 0; p < count; ++p) {
    switches.push_back(devices + p);
    if (!cable) test::connect(cluster, {devices + p, devices + count}, speed(draw), latency(draw));
  }
  if (cable && count > 1) test::connect(cluster, switches, speed(draw), latency(draw), Duplex::Half);
  return cluster;
}

/// Two switches and a trunk between them, of either duplex.
Cluster dumbbell(int devices, test::Draw& draw) {
  Cluster cluster = test::bare_cluster(devices, 2);
  for (int d = 0; d < devices; ++d) test::connect(cluster, {d, devices + d % 2}, speed(draw), latency(draw));
  test::connect(cluster, {devices, devices + 1}, speed(draw), latency(draw),
                draw(0, 1) == 0 ? Duplex::Full : Duplex::Half);
  return cluster;
}

constexpr int kNetworks = 4;
Cluster network(int kind, int devices, test::Draw& draw) {
  Cluster (*const builders[kNetworks])(int, test::Draw&) = {star, medium, pods, dumbbell};
  return builders[kind](devices, draw);
}

/// Whether some transfer takes longer than it would alone.
bool contended(const Program& program, const Cluster& cluster) {
  return test::difference(program, run("fluid", program, cluster), run("ideal", program, cluster)) != "";
}

}  // namespace

TEST_CASE("random programs over shared and changing networks have the same starts and ends") {
  test::Draw draw{Rng(45, "fluid")}, draw_changes{Rng(45, "changes")}, draw_ties{Rng(45, "ties")};
  test::ChangesMet changes;
  int compared = 0, met[kNetworks] = {}, replicated = 0, simultaneous = 0;
  std::set<std::string> schedules;
  for (int trial = 0; compared < test::trials(600); ++trial) {
    REQUIRE(trial < 1500);
    test::RandomCase c = test::random_case(draw, 6);
    add_ties(c, draw_ties);
    CAPTURE(to_text(c));
    std::optional<Program> lowered = test::program_unless_deadlock(c);
    if (!lowered) continue;
    Program& program = *lowered;
    const int kind = draw(0, kNetworks - 1);
    Cluster cluster = network(kind, program.devices, draw);
    test::random_changes(cluster, run("ideal", program, cluster).last_end().value, draw_changes);
    changes.count(cluster);
    CAPTURE(test::changes_of(cluster));
    CAPTURE(kind);
    CHECK(difference(program, cluster) == "");
    ++compared;
    met[kind] += contended(program, cluster);
    replicated += !program.collectives.empty();
    simultaneous += !c.options.fifo_sends;
    schedules.insert(c.schedule);
  }
  // The cases do reach everything they are meant to.
  for (const int count : met) CHECK(count >= (test::all_trials() ? 30 : 1));
  CHECK(schedules == std::set<std::string>{"1f1b", "2bw", "gpipe", "graph", "inference", "pipedream"});
  CHECK(replicated >= (test::all_trials() ? 50 : 5));
  CHECK(simultaneous >= (test::all_trials() ? 50 : 5));
  CHECK(changes.min_count() >= (test::all_trials() ? 50 : 3));
}

TEST_CASE("bidirectional copies of the model over shared networks have the same starts and ends") {
  test::Draw draw{Rng(46, "fluid both ways")};
  int met = 0;
  for (int trial = 0; trial < 90; ++trial) {
    const char* const names[] = {"chimera", "gems", "dualpipe"};
    const std::string name = names[trial % 3];
    const int ranks = name == "gems" ? draw(2, 5) : 2 * draw(1, 3);
    const int micro_batches = name == "dualpipe" ? 2 * (ranks + draw(0, 3)) : draw(2, 9);
    Plan plan = plan_for(get_from(schedules::catalog(), "schedule", name), ranks, 2, micro_batches);
    for (StageEdge& e : plan.edges) e.bytes = Bytes{1e3 * draw(0, 2000)};
    StageCosts costs;
    for (int s = 0; s < plan.stage_count(); ++s) costs.add({test::random_cost(draw)});
    LoweringOptions options;
    options.rendezvous = draw(0, 1) == 0;
    options.iterations = draw(1, 3);
    const Program program = test::program_of(name, plan, costs, options);
    const Cluster cluster = network(draw(0, kNetworks - 1), program.devices, draw);
    CAPTURE(name);
    CHECK(difference(program, cluster) == "");
    met += contended(program, cluster);
  }
  CHECK(met >= 40);
}

/// Parts of a machine with one memory that ops and messages share: each byte of a message is read and written.
Cluster parts(int devices, double memory, double messages) {
  Cluster cluster = test::bare_cluster(devices);
  std::vector<int> members;
  for (int d = 0; d < devices; ++d) members.push_back(d);
  test::connect(cluster, members, messages, 1e-6, Duplex::Unshared);
  test::connect(cluster, members, memory / 2, 0, Duplex::Half);
  for (int from = 0; from < devices; ++from)
    for (int to = 0; to < devices; ++to)
      if (from != to)
        cluster.routes.push_back({DeviceId{from}, DeviceId{to}, {{LinkId{0}, from < to}, {LinkId{1}, from < to}}});
  for (Device& d : cluster.devices) d.memory = LinkId{1};
  return cluster;
}

TEST_CASE("random programs on devices that share one memory have the same starts and ends") {
  test::Draw draw{Rng(50, "fluid memory")};
  constexpr double kMemory = 4e10;
  int compared = 0, met = 0, with_jitter = 0;
  for (int trial = 0; compared < test::trials(300); ++trial) {
    REQUIRE(trial < 800);
    const test::RandomCase c = test::random_case(draw, 6);
    CAPTURE(to_text(c));
    std::optional<Program> lowered = test::program_unless_deadlock(c);
    if (!lowered) continue;
    Program& program = *lowered;
    for (const Instruction& i : program.instructions)  // Each op alone wants up to all of the memory, or nothing.
      program.traffic.push_back(i.is_compute() ? i.duration.value * kMemory * std::max(0, draw(-20, 100)) / 100 : 0);
    Cluster cluster = parts(program.devices, kMemory, speed(draw));
    if (draw(0, 3) == 0) cluster.jitter = {0.3, 11}, ++with_jitter;
    CHECK(difference(program, cluster) == "");
    met += contended(program, cluster);
    ++compared;
  }
  CHECK(met >= (test::all_trials() ? 150 : 15));
  CHECK(with_jitter >= (test::all_trials() ? 30 : 1));
}

TEST_CASE("random programs without contention take their longest path") {
  test::Draw draw{Rng(47, "fluid alone")};
  for (int compared = 0; compared < test::trials(300);) {
    const test::RandomCase c = test::random_case(draw, 6);
    CAPTURE(to_text(c));
    std::optional<Program> lowered = test::program_unless_deadlock(c);
    if (!lowered) continue;
    Program& program = *lowered;
    Cluster cluster = test::bare_cluster(program.devices, 1);
    for (int d = 0; d < program.devices; ++d)
      test::connect(cluster, {d, program.devices}, speed(draw), latency(draw), Duplex::Unshared);
    test::random_changes(cluster, run("ideal", program, cluster).last_end().value, draw);
    CHECK(difference(program, cluster, "ideal") == "");
    ++compared;
  }
}

TEST_CASE("long pipelines whose neighbors share cards do not drift apart") {
  test::Draw draw{Rng(48, "fluid long")};
  for (const int stages : {4, 16}) {
    Plan plan = chain_plan(stages, stages, 48);
    for (StageEdge& e : plan.edges) e.bytes = Bytes{1234567};
    StageCosts costs;
    for (int s = 0; s < stages; ++s) costs.add({test::random_cost(draw)});
    LoweringOptions options;
    options.rendezvous = false;
    options.iterations = 4;
    const Program program = test::program_of("1f1b", plan, costs, options);
    const Cluster cluster = test::star(stages, 1e9, 5e-6);
    CHECK(contended(program, cluster));
    CHECK(difference(program, cluster) == "");
  }
}

TEST_CASE("with many transfers on each card the means of many runs agree within 1 %") {
  // Eight pipelines whose equal stages share a card, each device sending whatever is ready. Of two transfers that start
  // almost together the gap can double with each pair, so bandwidths that differ in the 13th digit move the length by
  // percents, on either engine: what can be equal is where these lengths lie.
  constexpr int kPipelines = 8, kStages = 6, kDevices = kPipelines * kStages, kRuns = 24;
  test::Draw draw{Rng(49, "fluid crowded")};
  Plan plan = chain_plan(kDevices, kDevices, 64);
  plan.edges.clear();
  for (int s = 0; s < kDevices; ++s)
    if ((s + 1) % kStages != 0) plan.edges.push_back({StageId{s}, StageId{s + 1}, Bytes{5e6}});
  StageCosts costs;
  for (int s = 0; s < kDevices; ++s) costs.add({test::random_cost(draw)});
  LoweringOptions options;
  options.fifo_sends = options.rendezvous = false;
  options.streams = StreamModel::None;
  const Program program = test::program_of("1f1b", plan, costs, options);
  std::vector<double> ours, theirs;
  for (int i = 0; i < kRuns; ++i) {
    Cluster cluster = test::bare_cluster(kDevices, kStages + 1);
    const auto bandwidth = [&] { return 1e10 * (1 + 1e-13 * draw.rng.uniform()); };
    for (int d = 0; d < kDevices; ++d) test::connect(cluster, {d, kDevices + d % kStages}, bandwidth(), 0);
    for (int n = 0; n < kStages; ++n) test::connect(cluster, {kDevices + n, kDevices + kStages}, bandwidth(), 5e-6);
    ours.push_back(run("fluid", program, cluster).last_end().value);
    theirs.push_back(run("simgrid", program, cluster).last_end().value);
  }
  const auto mean = [](const std::vector<double>& samples) {
    return std::accumulate(samples.begin(), samples.end(), 0.0) / kRuns;
  };
  CHECK(mean(ours) == doctest::Approx(mean(theirs)).epsilon(0.01));
  for (const std::vector<double>* samples : {&ours, &theirs}) {
    const auto [low, high] = std::minmax_element(samples->begin(), samples->end());
    CHECK(*high > *low * 1.01);  // otherwise single runs could be compared
    MESSAGE(mean(*samples) << " s, from " << *low << " to " << *high);
  }
}

}  // namespace stagecraft::fluid_test
