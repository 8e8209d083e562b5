// Weight versions and horizons of asynchronous pipelines against the golden file: every column of every row, from the
// policies' reads on a 1F1B order without a flush of D stages with an update every T micro-batches.

#include <doctest/doctest.h>

#include <array>
#include <map>

#include "sim/core/file.hpp"
#include "tests/support/checked.hpp"
#include "tests/support/road.hpp"

using namespace stagecraft;

namespace {

enum Column {
  kDepth,
  kEach,
  kMicro,
  kStage,
  kForward,
  kBackward,
  kStaleness,
  kPaperHorizon,
  kExactHorizon,
  kSpectrainForward,
  kSpectrainBackward,
  kVertical,
  kTwoBw,
  kColumns
};
using Row = std::array<int, kColumns>;

/// Rows by (D, T). An empty cell is -1: the file has 2BW for T = D alone.
std::map<std::pair<int, int>, std::vector<Row>> golden(const std::string& file) {
  std::map<std::pair<int, int>, std::vector<Row>> all;
  const auto lines = split(read_file(file), '\n');
  REQUIRE(trim(lines.front()) ==
          "D,T,mb,stage,v_F,v_B,staleness,pipeoptim_s_paper,pipeoptim_s_exact,spectrain_sF,spectrain_sB,vsync_version,"
          "2bw_version");
  for (std::size_t i = 1; i < lines.size(); ++i) {
    if (trim(lines[i]).empty()) continue;
    const auto cells = split(std::string(trim(lines[i])), ',');
    REQUIRE(cells.size() == kColumns);
    Row row{};
    for (std::size_t c = 0; c < cells.size(); ++c) row[c] = cells[c].empty() ? -1 : std::stoi(cells[c]);
    all[{row[kDepth], row[kEach]}].push_back(row);
  }
  return all;
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
  int version(const Row& row, OpKind kind) const { return at(row, kind).version; }
  int horizon(const Row& row, OpKind kind) const { return std::max(0, at(row, kind).horizon); }

 private:
  const WeightRead& at(const Row& row, OpKind kind) const {
    return found_.at({StageId{row[kStage]}, kind, row[kMicro]});
  }
  std::map<std::tuple<StageId, OpKind, int>, WeightRead> found_;
};

}  // namespace

TEST_CASE("versions and horizons of every policy equal the reference, cell by cell") {
  const std::string folder = test::reference_data();
  if (folder.empty()) return;
  int rows = 0, cells = 0;
  const auto same = [&](int found, int expected) {
    CHECK(found == expected);
    ++cells;
  };
  for (const auto& [key, list] : golden(folder + "/weights/golden_versions.csv")) {
    const int depth = key.first, each = key.second;
    int last = 0;
    for (const Row& row : list) last = std::max(last, row[kMicro]);
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
    for (const Row& row : list) {
      CAPTURE(depth);
      CAPTURE(each);
      CAPTURE(row[kMicro]);
      CAPTURE(row[kStage]);
      same(stash.version(row, OpKind::Forward), row[kForward]);
      CHECK(stash.version(row, OpKind::Backward) == row[kForward]);
      same(naive.version(row, OpKind::Backward), row[kBackward]);
      same(naive.version(row, OpKind::Backward) - naive.version(row, OpKind::Forward), row[kStaleness]);
      same(paper.horizon(row, OpKind::Forward), row[kPaperHorizon]);
      same(exact.horizon(row, OpKind::Forward), row[kExactHorizon]);
      same(spectrain.horizon(row, OpKind::Forward), row[kSpectrainForward]);
      same(spectrain.horizon(row, OpKind::Backward), row[kSpectrainBackward]);
      same(vertical.version(row, OpKind::Forward), row[kVertical]);
      CHECK(vertical.version(row, OpKind::Backward) == row[kVertical]);
      ++rows;
      if (row[kTwoBw] < 0) continue;
      REQUIRE(allowed);
      same(two_bw.version(row, OpKind::Forward), row[kTwoBw]);
      CHECK(two_bw.version(row, OpKind::Backward) == row[kTwoBw]);
      CHECK(row[kTwoBw] >= row[kBackward] - 1);  // one of two at the backward
    }
  }
  CHECK(rows >= 160);
  CHECK(cells >= rows * 8 + 80);
  MESSAGE(rows << " rows, " << cells << " cells");
}
