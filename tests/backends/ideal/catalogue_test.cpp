// Every schedule of the catalog, on every small pipeline, under every way of communicating: valid, lowered, checked,
// run, and never faster than pure data flow.

#include <doctest/doctest.h>

#include "tests/support/ideal.hpp"
#include "tests/support/road.hpp"
#include "tests/support/trials.hpp"

namespace stagecraft::catalogue_test {
namespace {

struct Point {
  const ScheduleDef* def;
  int ranks, micro_batches, iterations;
};

std::vector<Point> points() {
  std::vector<Point> result;
  const bool every = test::all_trials();
  for (const ScheduleDef* def : schedules::catalog())
    for (const int p : {1, 2, 3, 4, 7})
      for (const int m : {1, 2, 3, 8})
        for (const int iterations : {1, 2, 3}) {
          if (!every && (p == 3 || m == 3 || iterations == 1)) continue;
          if (!every && (p + m + iterations) % 2 == 0) continue;
          if (def->name != "csv") result.push_back({def, p, m, iterations});
        }
  return result;
}

std::vector<LoweringOptions> ways(int iterations) {
  std::vector<LoweringOptions> result;
  for (const bool overlap : {true, false})
    for (const bool rendezvous : {true, false})
      for (const StreamModel streams :
           {StreamModel::Single, StreamModel::Pair, StreamModel::Direction, StreamModel::None})
        for (const bool fifo : {true, false}) {
          if (!overlap && streams != StreamModel::Direction) continue;  // all is in one stream then
          result.push_back({overlap, rendezvous, streams, fifo, iterations});
        }
  return result;
}

/// What a program computes, by device: the same whatever the communication.
IdVector<DeviceId, std::string> computing(const Program& program) {
  IdVector<DeviceId, std::string> rows(static_cast<std::size_t>(program.devices));
  for (const InstructionId n : program.instructions.ids())
    if (program.instructions[n].is_compute()) rows[program.instructions[n].device] += to_text(program, n) + " ";
  return rows;
}

/// Whether blocking rendezvous ends in a deadlock; any other refusal goes on.
bool blocks(std::string_view name, const Plan& plan, const StageCosts& costs, const LoweringOptions& options) {
  try {
    test::program_of(name, plan, costs, options);
    return false;
  } catch (const Infeasible& e) {
    if (e.code() != "deadlock") throw;
    return true;
  }
}

bool waits_hold(const Program& program, const Timeline& t) {
  for (const InstructionId n : program.instructions.ids())
    for (const InstructionId w : program.waits_for(n))
      if (t.start[n] < t.end_of(w).value) return false;
  return true;
}

}  // namespace

TEST_CASE("every entry, size and way of communicating") {
  int runs = 0, refused = 0, blocked = 0;
  for (const Point& point : points()) {
    CAPTURE(point.def->name);
    CAPTURE(point.ranks);
    CAPTURE(point.micro_batches);
    CAPTURE(point.iterations);
    if (!test::takes(*point.def, point.ranks, point.micro_batches)) {
      CHECK_THROWS_AS(test::build(point.def->name, test::least_plan(*point.def, point.ranks, point.micro_batches)),
                      Infeasible);
      ++refused;
      continue;
    }
    Plan plan = test::least_plan(*point.def, point.ranks, point.micro_batches);
    for (StageEdge& e : plan.edges) e.bytes = Bytes{2e5};
    const StageCosts costs = uniform_costs(plan, test::times(1, 2, 0.5));
    const Cluster cluster = test::star(point.ranks, 1e6, 0.05);
    const Program free = test::program_of(point.def->name, plan, costs, test::pure_delays(point.iterations));
    const double bound = test::run_ideal(free, cluster).last_end().value;
    for (const LoweringOptions& options : ways(point.iterations)) {
      if (!options.overlap && !test::runs_blocked(*point.def)) continue;
      const bool may_block = !options.overlap && options.rendezvous && !test::neighbours_meet(*point.def);
      if (may_block && blocks(point.def->name, plan, costs, options)) {
        ++blocked;
        continue;
      }
      const Program program = test::program_of(point.def->name, plan, costs, options);
      const Timeline t = test::run_ideal(program, cluster);
      CHECK(waits_hold(program, t));
      CHECK(computing(program) == computing(free));
      CHECK(program.transfers.size() == free.transfers.size());
      CHECK(t.last_end().value >= bound - 1e-9);
      ++runs;
    }
  }
  CHECK(runs > (test::all_trials() ? 5000 : 1000));
  CHECK(refused > 0);
  CHECK(blocked > 0);
}

TEST_CASE("more freedom never costs time: eager under rendezvous, more streams under fewer") {
  for (const char* name : {"gpipe", "1f1b", "2bw", "inference"}) {
    Plan plan = chain_plan(4, 4, 8);
    for (StageEdge& e : plan.edges) e.bytes = Bytes{4e5};
    const StageCosts costs = uniform_costs(plan, test::times(1, 2));
    const Cluster cluster = test::star(4, 1e6, 0.05);
    const auto length = [&](bool rendezvous, StreamModel streams, bool fifo) {
      return test::run_ideal(test::program_of(name, plan, costs, {true, rendezvous, streams, fifo, 2}), cluster)
          .last_end()
          .value;
    };
    CAPTURE(name);
    for (const bool rendezvous : {true, false})
      for (const bool fifo : {true, false}) {
        const double single = length(rendezvous, StreamModel::Single, fifo),
                     pair = length(rendezvous, StreamModel::Pair, fifo);
        const double direction = length(rendezvous, StreamModel::Direction, fifo),
                     none = length(rendezvous, StreamModel::None, fifo);
        CHECK(single >= pair - 1e-9);
        CHECK(pair >= direction - 1e-9);
        CHECK(direction >= none - 1e-9);
      }
    for (const StreamModel streams :
         {StreamModel::Single, StreamModel::Pair, StreamModel::Direction, StreamModel::None})
      CHECK(length(true, streams, true) >= length(false, streams, true) - 1e-9);
  }
}

}  // namespace stagecraft::catalogue_test
