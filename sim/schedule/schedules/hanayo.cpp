#include <algorithm>
#include <queue>
#include <set>
#include <tuple>
#include <vector>

#include "sim/schedule/builder.hpp"

// The paper gives the placement and pictures, not an order, so the order is a list schedule: a rank that is idle takes
// a backward that is ready, else the forward that is ready and nearest to the end. O(ops log ops).

namespace stagecraft::schedules {
namespace {

const config::MapSpec fields{.title = "Waves: the stages go to and fro over the devices.", .fields = {chunks_field()}};

struct Ready {
  bool forward;
  int distance;  ///< Of a forward to the end, of a backward to the beginning.
  int micro, stage;
  bool operator<(const Ready& o) const {
    return std::tie(forward, distance, micro) < std::tie(o.forward, o.distance, o.micro);
  }
};

struct Event {
  int time, rank;
  Ready op;       ///< Ready on the rank, unless
  bool finished;  ///< it has just run there.
  bool operator>(const Event& o) const { return std::tie(time, rank) > std::tie(o.time, o.rank); }
};

class List {
 public:
  explicit List(const ScheduleInput& in)
      : in_(in), stages_(in.plan.stage_count()), rows_(in.layout.stages.size()), ranks_(in.layout.stages.size()) {}

  /// Rows of ready ops in the order they run.
  std::vector<std::vector<Ready>> run() {
    for (int m = 0; m < in_.plan.micro_batches(StageId{0}); ++m) arrive(0, true, 0, m);
    while (!events_.empty()) {
      const int now = events_.top().time;
      std::set<int> touched;
      while (!events_.empty() && events_.top().time == now) {
        const Event event = events_.top();
        events_.pop();
        touched.insert(event.rank);
        take(event);
      }
      for (const int r : touched) start(r, now);
    }
    return std::move(rows_);
  }

 private:
  struct Rank {
    std::set<Ready> ready;
    bool busy = false;
  };

  void arrive(int time, bool forward, int stage, int micro) {
    const int rank = rank_of(Placement::Wave, stage, in_.layout.ranks());
    events_.push({time, rank, {forward, forward ? stages_ - 1 - stage : stage, micro, stage}, false});
  }

  void take(const Event& e) {
    Rank& rank = ranks_[e.rank];
    if (!e.finished) {
      rank.ready.insert(e.op);
      return;
    }
    rank.busy = false;
    const auto [forward, distance, micro, stage] = e.op;
    if (forward)
      arrive(e.time, stage + 1 < stages_, std::min(stage + 1, stages_ - 1), micro);
    else if (stage > 0)
      arrive(e.time, false, stage - 1, micro);
  }

  void start(int r, int now) {
    Rank& rank = ranks_[r];
    if (rank.busy || rank.ready.empty()) return;
    const Ready op = *rank.ready.begin();
    rank.ready.erase(rank.ready.begin());
    rank.busy = true;
    rows_[r].push_back(op);
    events_.push({now + (op.forward ? 1 : 2), r, op, true});
  }

  const ScheduleInput& in_;
  int stages_;
  std::vector<std::vector<Ready>> rows_;
  std::vector<Rank> ranks_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
};

Schedule whole(const ScheduleInput& in) {
  const auto rows = List(in).run();
  return by_rank(in, in.plan.micro_batches(StageId{0}), [&](const RankInput& r, RankOps& ops) {
    for (const Ready& op : rows[r.rank])
      ops.add(op.forward ? OpKind::Forward : OpKind::Backward, op.stage / r.ranks, op.micro);
  });
}

}  // namespace

extern const ScheduleDef hanayo{
    .name = "hanayo",
    .summary = "Waves: stages go to and fro over the devices, with a list schedule, backward first",
    .source = "Liu et al., Hanayo, SC 2023 (placement; the order is ours)",
    .placement = Placement::Wave,
    .chunks = {2, kManyChunks, 2},
    .fields = &fields,
    .whole = whole,
};

}  // namespace stagecraft::schedules
