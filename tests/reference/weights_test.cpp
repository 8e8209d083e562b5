// Weight versions of asynchronous pipelines against the golden file: for D stages and an update every T micro-batches,
// the version that each forward and backward sees is the number of updates before it in its stage's list.

#include <doctest/doctest.h>

#include <map>

#include "tests/support/checked.hpp"
#include "tests/support/road.hpp"

using namespace stagecraft;

namespace {

struct Row {
  int micro, stage, forward, backward, staleness, two_bw;
};

/// Rows by (D, T). The last column is empty where 2BW does not apply.
std::map<std::pair<int, int>, std::vector<Row>> golden(const std::string& file) {
  std::map<std::pair<int, int>, std::vector<Row>> all;
  const auto lines = split(read_file(file), '\n');
  REQUIRE(trim(lines.front()) ==
          "D,T,mb,stage,v_F,v_B,staleness,pipeoptim_s_paper,pipeoptim_s_exact,spectrain_sF,spectrain_sB,vsync_version,"
          "2bw_version");
  for (std::size_t i = 1; i < lines.size(); ++i) {
    if (trim(lines[i]).empty()) continue;
    const auto cells = split(std::string(trim(lines[i])), ',');
    REQUIRE(cells.size() == 13);
    const auto number = [&](std::size_t c) { return cells[c].empty() ? -1 : std::stoi(cells[c]); };
    all[{number(0), number(1)}].push_back({number(2), number(3), number(4), number(5), number(6), number(12)});
  }
  return all;
}

/// 1F1B that never drains, with an update every T micro-batches. This is the schedule 2bw where that is allowed.
Schedule continuous(const Plan& plan, int iterations) {
  const int depth = plan.stage_count(), total = plan.mini_batch * iterations;
  return complete(
      by_stage(plan, "continuous", false, [&](StageId s, OpList& ops) { alternate(total, depth - s, 1, ops); }), plan,
      1);
}

/// Updates in front of an op of its stage.
int updates_before(const Schedule& schedule, StageId stage, OpKind kind, int micro) {
  int updates = 0;
  for (const Op& op : schedule.devices[static_cast<std::size_t>(stage)]) {
    if (op.kind == kind && op.micro == micro) return updates;
    updates += op.kind == OpKind::Update;
  }
  FAIL("no such op");
  return -1;
}

}  // namespace

TEST_CASE("versions are the updates that come before, and 2bw reads one behind") {
  const std::string folder = test::reference_data();
  if (folder.empty()) return;
  int rows = 0, with_two_bw = 0;
  for (const auto& [key, list] : golden(folder + "/weights/golden_versions.csv")) {
    const int depth = key.first, each = key.second;
    CAPTURE(depth);
    CAPTURE(each);
    int last = 0;
    for (const Row& row : list) last = std::max(last, row.micro);
    const int iterations = last / each + 1;
    const Plan plan = chain_plan(depth, depth, each);
    const Schedule schedule = continuous(plan, iterations);
    const bool allowed = each >= depth - 1;
    if (allowed) {
      CHECK(schedule == test::build("2bw", plan, iterations));
    } else {
      CHECK_THROWS_AS(test::build("2bw", plan, iterations), Infeasible);
    }
    LoweringOptions options;
    options.iterations = iterations;
    const Program program = test::lowered(schedule, plan, uniform_costs(plan, test::times(1, 1)), options, "2bw");
    for (const Row& row : list) {
      CAPTURE(row.micro);
      CAPTURE(row.stage);
      const StageId stage{row.stage};
      const int forward = updates_before(schedule, stage, OpKind::Forward, row.micro);
      const int backward = updates_before(schedule, stage, OpKind::Backward, row.micro);
      CHECK(forward == row.forward);
      CHECK(backward == row.backward);
      CHECK(backward - forward == row.staleness);
      ++rows;
      if (row.two_bw < 0) continue;
      ++with_two_bw;
      for (const char* kind : {"F", "B"}) {
        const std::string op = std::to_string(row.stage) + kind + std::to_string(row.micro);
        CHECK(program.at(test::find(program, op)).version == row.two_bw);
      }
      CHECK(row.two_bw <= forward);       // it exists at the forward,
      CHECK(row.two_bw >= backward - 1);  // and is one of two at the backward
    }
  }
  CHECK(rows >= 160);
  CHECK(with_two_bw >= 80);
}

TEST_CASE("2bw: T = D - 1 is enough, T = D - 2 would read a version that is not there yet") {
  for (const int depth : {3, 4, 8}) {
    const auto missing = [&](int each) {
      const Plan plan = chain_plan(depth, depth, each);
      const Schedule schedule = continuous(plan, 4);
      int count = 0;
      for (int q = 0; q < 4 * each; ++q)
        for (int s = 0; s < depth; ++s) {
          const int version = std::max(0, q / each - 1);
          count += version > updates_before(schedule, StageId{s}, OpKind::Forward, q);
        }
      return count;
    };
    CHECK(missing(depth) == 0);
    CHECK(missing(depth - 1) == 0);
    CHECK(missing(depth - 2) > 0);
  }
}
