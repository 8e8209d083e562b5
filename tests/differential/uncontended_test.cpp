// Two simulators that share no code for time agree: if no two transfers share a link at the same time, the longest path
// and SimGrid give the same start and end of every instruction to 1e-9.

#include <doctest/doctest.h>

#include <set>

#include "backends/backend.hpp"
#include "tests/support/devices.hpp"
#include "tests/support/differences.hpp"
#include "tests/support/random_cases.hpp"
#include "tests/support/random_changes.hpp"
#include "tests/support/trials.hpp"

namespace stagecraft::uncontended_test {
using test::difference;

namespace {

Timeline run(const char* backend, const Program& program, const Cluster& cluster) {
  return get_from(backends::catalog(), "backend", backend).run(program, cluster, {});
}

/// A separate cable for every pair that exchanges messages, with separate directions.
Cluster cables(const Program& program, test::Draw& draw) {
  Cluster cluster = test::bare_cluster(program.devices);
  std::set<std::pair<int, int>> joined;
  for (const RouteEnds& r : program.routes) {
    const int low = std::min(r.from, r.to).value, high = std::max(r.from, r.to).value;
    if (low == high || !joined.emplace(low, high).second) continue;
    test::connect(cluster, {low, high}, 1e6 * draw(50, 20000), 1e-6 * draw(0, 300));
  }
  return cluster;
}

/// Cards of different speeds on one switch; each message has the full bandwidth, however many there are.
Cluster unshared_star(const Program& program, test::Draw& draw) {
  Cluster cluster = test::bare_cluster(program.devices, 1);
  for (int d = 0; d < program.devices; ++d)
    test::connect(cluster, {d, program.devices}, 1e6 * draw(50, 20000), 1e-6 * draw(0, 300), Duplex::Unshared);
  return cluster;
}

/// Whether messages of one direction between one pair follow each other: in a stream per direction, in one shared
/// stream, or because a device sends one at a time.
bool pairs_take_turns(const LoweringOptions& options) {
  return options.fifo_sends || (options.overlap && options.streams != StreamModel::None);
}

}  // namespace

TEST_CASE("random programs have the same starts and ends, also while machines and links change") {
  test::Draw draw{Rng(41, "differential")}, draw_changes{Rng(41, "changes")}, draw_ties{Rng(41, "ties")};
  test::ChangesMet changes;
  int compared = 0, deadlocked = 0;
  std::set<std::string> schedules;
  int ways[2][2][4] = {}, replicated = 0, tied = 0, recomputed = 0, mixed = 0;
  for (int trial = 0; compared < test::trials(700, 140); ++trial) {
    REQUIRE(trial < 1500);
    test::RandomCase c = test::random_case(draw, 6);
    add_ties(c, draw_ties);
    CAPTURE(to_text(c));
    std::optional<Program> lowered = test::program_unless_deadlock(c);
    if (!lowered) {
      CHECK_FALSE(c.options.overlap);
      CHECK(c.options.rendezvous);
      ++deadlocked;
      continue;
    }
    Program& program = *lowered;
    // A ring of tied weights may meet messages of other stages.
    const bool own_cables = pairs_take_turns(c.options) && draw(0, 3) != 0 && !test::has_ties(c.plan);
    Cluster cluster = own_cables ? cables(program, draw) : unshared_star(program, draw);
    test::random_changes(cluster, run("ideal", program, cluster).last_end().value, draw_changes);
    changes.count(cluster);
    CAPTURE(test::changes_of(cluster));
    CHECK(difference(program, run("ideal", program, cluster), run("simgrid", program, cluster)) == "");
    ++compared;
    schedules.insert(c.schedule);
    ++ways[c.options.overlap][c.options.rendezvous][static_cast<int>(c.options.streams)];
    replicated += std::any_of(program.collectives.begin(), program.collectives.end(),
                              [](const CollectiveCall& r) { return r.tie < 0; });
    tied += std::any_of(program.collectives.begin(), program.collectives.end(),
                        [](const CollectiveCall& r) { return r.tie >= 0; });
    for (const Stage& stage : c.plan.stages) {
      recomputed += stage.shape.recomputes_all();
      mixed += stage.micro_batch_size != c.plan.stages.front().micro_batch_size;
    }
  }
  // The cases do reach everything they are meant to.
  const int needed = test::trials(50, 10);
  CHECK(schedules == std::set<std::string>{"1f1b", "2bw", "gpipe", "graph", "inference", "pipedream"});
  for (const auto& overlap : ways)
    for (const auto& rendezvous : overlap)
      for (const int count : rendezvous) CHECK(count >= needed / 6);
  CHECK(replicated >= needed);
  CHECK(tied >= needed);
  CHECK(recomputed >= needed);
  CHECK(mixed >= needed);
  CHECK(changes.min_count() >= needed);
  MESSAGE(compared << " programs compared, " << deadlocked << " deadlocked");
}

TEST_CASE("several stages on a device and rings next to messages have the same starts and ends") {
  test::Draw draw{Rng(42, "shared devices")};
  for (int trial = 0; trial < test::trials(60, 20); ++trial) {
    const int ranks = draw(1, 3), chunks = draw(2, 3);
    Plan plan = chain_plan(ranks * chunks, ranks, draw(1, 5));
    StageCosts costs;
    for (StageEdge& e : plan.edges) e.bytes = Bytes{1e3 * draw(0, 500)};
    for (int s = 0; s < plan.stage_count(); ++s) costs.add({test::random_cost(draw)});
    LoweringOptions options;
    options.rendezvous = draw(0, 1) == 0;
    options.streams = static_cast<StreamModel>(draw(0, 2));
    options.iterations = draw(1, 2);
    const Program program = test::program_of("inference", plan, costs, options);
    const Cluster cluster = cables(program, draw);
    CHECK(difference(program, run("ideal", program, cluster), run("simgrid", program, cluster)) == "");
  }
}

TEST_CASE("bidirectional copies of the model have the same starts and ends, with replicas or without") {
  test::Draw draw{Rng(44, "both ways")};
  int reduced = 0;
  for (int trial = 0; trial < test::trials(150, 50); ++trial) {
    const char* const names[] = {"chimera", "gems", "dualpipe"};
    const std::string name = names[trial % 3];
    const int ranks = name == "gems" ? draw(1, 5) : 2 * draw(1, 3), replicas = draw(1, 2);
    const int micro_batches = name == "dualpipe" ? 2 * (ranks + draw(0, 3)) : draw(2, 9);
    Plan plan = plan_for(get_from(schedules::catalog(), "schedule", name), ranks, 2, micro_batches);
    plan.mini_batch *= replicas;
    for (StageEdge& e : plan.edges) e.bytes = Bytes{1e3 * draw(0, 500)};
    StageCosts costs;
    for (Stage& stage : plan.stages) {
      const DeviceId rank = stage.leaders.front();
      stage.micro_batch_size = replicas;
      stage.shape.recomputation = draw(0, 3) == 0 ? Recomputation::Full : Recomputation::None;
      stage.place_on(test::device_range(rank.value * replicas, replicas));
      std::vector<StageCost> replica_costs;
      for (int r = 0; r < replicas; ++r) replica_costs.push_back(test::random_cost(draw));
      costs.add(replica_costs);
    }
    LoweringOptions options;
    options.overlap = draw(0, 3) != 0;
    options.rendezvous = options.overlap && draw(0, 1) == 0;
    options.streams = static_cast<StreamModel>(draw(0, 3));
    options.fifo_sends = draw(0, 3) != 3;
    options.iterations = draw(1, 3);
    CAPTURE(name);
    CAPTURE(to_text(plan));
    const Program program = test::program_of(name, plan, costs, options);
    const Cluster cluster = unshared_star(program, draw);
    CHECK(difference(program, run("ideal", program, cluster), run("simgrid", program, cluster)) == "");
    reduced += !program.collectives.empty();
  }
  CHECK(reduced >= test::trials(100, 33));
}

TEST_CASE("a long run does not drift") {
  Plan plan = chain_plan(4, 4, 64);
  for (StageEdge& e : plan.edges) e.bytes = Bytes{123457};
  test::Draw draw{Rng(43, "long")};
  StageCosts costs;
  for (int s = 0; s < 4; ++s) costs.add({test::random_cost(draw)});
  LoweringOptions options;
  options.iterations = 8;
  const Program program = test::program_of("1f1b", plan, costs, options);
  const Cluster cluster = cables(program, draw);
  CHECK(difference(program, run("ideal", program, cluster), run("simgrid", program, cluster)) == "");
}

}  // namespace stagecraft::uncontended_test
