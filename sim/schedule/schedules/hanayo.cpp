// The schedule `hanayo`: stages zigzag over the ranks in waves.

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "sim/schedule/builder.hpp"
#include "sim/schedule/rank_clock.hpp"

// The paper gives the placement and pictures, not an order, so the order is a list schedule: a rank that is idle takes
// a backward that is ready, else the forward that is ready and nearest to the end. O(ops log ops).

namespace stagecraft::schedules {
namespace {

const config::MapSpec hanayo_fields{.title = "Waves: the stages zigzag over the devices.", .fields = {chunks_field()}};

struct WaveOp {
  bool forward;
  int distance;  ///< Stages from a forward to the last stage, from a backward to the first.
  int micro, stage;
  bool operator<(const WaveOp& o) const {
    return std::tie(forward, distance, micro) < std::tie(o.forward, o.distance, o.micro);
  }
};

class WaveScheduler {
 public:
  explicit WaveScheduler(const ScheduleInput& in)
      : in_(in), stages_(in.plan.stage_count()), ranks_(in.layout.stages.size()), clock_(in.layout.stages.size()) {}

  /// The ops of each rank in the order in which they run.
  std::vector<std::vector<WaveOp>> run() {
    for (int m = 0; m < in_.plan.micro_batches(StageId{0}); ++m) arrive(0, true, 0, m);
    clock_.run([&](int rank, int now) { start_next(rank, now); });
    std::vector<std::vector<WaveOp>> rows;
    for (Rank& rank : ranks_) rows.push_back(std::move(rank.row));
    return rows;
  }

 private:
  struct Rank {
    std::set<std::pair<int, WaveOp>> coming;  ///< Ops with the time at which they become ready.
    std::set<WaveOp> ready;
    std::vector<WaveOp> row;
  };

  void arrive(int time, bool forward, int stage, int micro) {
    const int rank = rank_of(Placement::Wave, stage, in_.layout.ranks());
    ranks_[rank].coming.insert({time, {forward, forward ? stages_ - 1 - stage : stage, micro, stage}});
    clock_.wake(rank, time);
  }

  void start_next(int r, int now) {
    Rank& rank = ranks_[r];
    for (; !rank.coming.empty() && rank.coming.begin()->first <= now; rank.coming.erase(rank.coming.begin()))
      rank.ready.insert(rank.coming.begin()->second);
    if (rank.ready.empty()) return;
    const WaveOp op = *rank.ready.begin();
    rank.ready.erase(rank.ready.begin());
    rank.row.push_back(op);
    const int end = now + (op.forward ? 1 : 2);
    clock_.occupy(r, end);
    if (op.forward)
      arrive(end, op.stage + 1 < stages_, std::min(op.stage + 1, stages_ - 1), op.micro);
    else if (op.stage > 0)
      arrive(end, false, op.stage - 1, op.micro);
  }

  const ScheduleInput& in_;
  int stages_;
  std::vector<Rank> ranks_;
  RankClock<int> clock_;
};

Schedule hanayo_whole(const ScheduleInput& in) {
  const auto rows = WaveScheduler(in).run();
  return by_rank(in, in.plan.micro_batches(StageId{0}), [&](const RankInput& r, RankOps& ops) {
    for (const WaveOp& op : rows[r.rank])
      ops.add(op.forward ? OpKind::Forward : OpKind::Backward, op.stage / r.ranks, op.micro);
  });
}

}  // namespace

extern const ScheduleDef hanayo{
    .name = "hanayo",
    .summary = "Waves: stages zigzag over the devices, with a list schedule, backward first",
    .source = "Liu et al., Hanayo, SC 2023 (placement; the order is ours)",
    .placement = Placement::Wave,
    .chunks = {2, kManyChunks, 2},
    .fields = &hanayo_fields,
    .whole = hanayo_whole,
};

}  // namespace stagecraft::schedules
