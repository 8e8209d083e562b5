#include <algorithm>

#include "sim/schedule/builder.hpp"

namespace stagecraft::schedules {
namespace {

int gems_turn(int, int) { return 1; }

// Pairs of micro-batches: one forward each way, then both back, so that no more than two are ever alive.
void gems_order(const RankInput& r, RankOps& ops) {
  for (int first = 0; first < r.micro_batches; first += 2) {
    const int last = std::min(first + 1, r.micro_batches - 1);
    for (int m = first; m <= last; ++m) ops.forward(m - first, m);
    for (int m = first; m <= last; ++m) ops.backward(m - first, m);
  }
}

}  // namespace

extern const ScheduleDef gems{
    .name = "gems",
    .summary =
        "Two copies of the model in opposite directions, one micro-batch in flight in each: least memory, large bubble",
    .source = "Jain et al., GEMS, SC 2020",
    .placement = Placement::Bidirectional,
    .chunks = {2, 2},
    .turn = gems_turn,
    .rank = gems_order,
};

}  // namespace stagecraft::schedules
