// Weight versions and horizons of asynchronous pipelines against the golden file: every column of every row, from the
// policies' reads on a 1F1B order without a flush of D stages with an update every T micro-batches.

#include <doctest/doctest.h>

#include <map>

#include "tests/support/reference.hpp"
#include "tests/support/road.hpp"

namespace stagecraft::weights_test {
namespace {

using test::ReferenceRow;

/// Rows by the number of stages and of micro-batches for each update.
std::map<std::pair<int, int>, std::vector<ReferenceRow>> versions() {
  std::map<std::pair<int, int>, std::vector<ReferenceRow>> rows_by_key;
  for (ReferenceRow& row : test::reference_rows("weight_versions.csv")) {
    const std::pair<int, int> key{row.integer("stages"), row.integer("each")};
    rows_by_key[key].push_back(std::move(row));
  }
  return rows_by_key;
}

/// Reads of one policy, by stage, kind and micro-batch.
class Reads {
 public:
  Reads(const Schedule& schedule, const Plan& plan, std::string_view policy) {
    const WeightReads reads(schedule, plan, test::policy(policy));
    for (int d = 0; d < schedule.device_count(); ++d)
      for (std::size_t i = 0; i < schedule.row(DeviceId{d}).size(); ++i) {
        const Op& op = schedule.row(DeviceId{d})[i];
        found_[{op.stage, op.kind, op.micro}] = reads.at(DeviceId{d}, i);
      }
  }
  int version(const ReferenceRow& row, OpKind kind) const { return at(row, kind).version; }
  int horizon(const ReferenceRow& row, OpKind kind) const { return std::max(0, at(row, kind).horizon); }

 private:
  const WeightRead& at(const ReferenceRow& row, OpKind kind) const {
    return found_.at({StageId{row.integer("stage")}, kind, row.integer("micro_batch")});
  }
  std::map<std::tuple<StageId, OpKind, int>, WeightRead> found_;
};

}  // namespace

TEST_CASE("versions and horizons of every policy equal the reference, cell by cell") {
  int rows = 0, cells = 0;
  const auto same = [&](int actual, int expected) {
    CHECK(actual == expected);
    ++cells;
  };
  for (const auto& [key, list] : versions()) {
    const int depth = key.first, each = key.second;
    int last = 0;
    for (const ReferenceRow& row : list) last = std::max(last, row.integer("micro_batch"));
    const int iterations = last / each + 1;
    const Plan plan = chain_plan(depth, depth, each);
    const Schedule schedule = test::build("pipedream", plan, iterations);
    const Reads naive(schedule, plan, "naive"), stash(schedule, plan, "stash"), paper(schedule, plan, "pipeoptim"),
        exact(schedule, plan, "geometric"), spectrain(schedule, plan, "spectrain"),
        vertical(schedule, plan, "vertical-sync");
    const bool allowed = each >= depth - 1;
    if (allowed)
      CHECK(schedule == test::build("2bw", plan, iterations));
    else
      CHECK_THROWS_AS(test::build("2bw", plan, iterations), Infeasible);
    const Reads two_bw(schedule, plan, allowed ? "2bw" : "stash");
    for (const ReferenceRow& row : list) {
      CAPTURE(row.line);
      same(stash.version(row, OpKind::Forward), row.integer("forward"));
      CHECK(stash.version(row, OpKind::Backward) == row.integer("forward"));
      same(naive.version(row, OpKind::Backward), row.integer("backward"));
      same(naive.version(row, OpKind::Backward) - naive.version(row, OpKind::Forward), row.integer("staleness"));
      same(paper.horizon(row, OpKind::Forward), row.integer("paper_horizon"));
      same(exact.horizon(row, OpKind::Forward), row.integer("exact_horizon"));
      same(spectrain.horizon(row, OpKind::Forward), row.integer("spectrain_forward"));
      same(spectrain.horizon(row, OpKind::Backward), row.integer("spectrain_backward"));
      same(vertical.version(row, OpKind::Forward), row.integer("vertical"));
      CHECK(vertical.version(row, OpKind::Backward) == row.integer("vertical"));
      ++rows;
      if (row.text("two_bw").empty()) continue;  // 2BW needs as many micro-batches as stages.
      REQUIRE(allowed);
      same(two_bw.version(row, OpKind::Forward), row.integer("two_bw"));
      CHECK(two_bw.version(row, OpKind::Backward) == row.integer("two_bw"));
      CHECK(row.integer("two_bw") >= row.integer("backward") - 1);  // one of two at the backward
    }
  }
  CHECK(rows >= 160);
  CHECK(cells >= rows * 8 + 80);
  MESSAGE(rows << " rows, " << cells << " cells");
}

}  // namespace stagecraft::weights_test
