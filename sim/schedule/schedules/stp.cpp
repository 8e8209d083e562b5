#include <fmt/core.h>

#include "sim/schedule/braided_row.hpp"
#include "sim/schedule/builder.hpp"

namespace stagecraft::schedules {
namespace {

/// Forwards, of which rank + 1 fill the gap before the first gradient, two at a time.
void warm_up(int rank, int later_ranks, BraidedRow& row) {
  for (int i = 0; i < 2 * later_ranks; ++i) row.forward(0);
  for (int i = 0; i <= rank; ++i) row.forward(0), row.forward(1);
  if (rank % 2 == 0) row.forward(0);
  for (int i = 0; i < (rank + 1) / 2; ++i) row.forward(0), row.braid(), row.forward(0);
  for (int i = 0; i < later_ranks; ++i) {
    row.forward(1), row.braid(), row.input_gradient(1);
    row.forward(0), row.braid(), row.weight_gradient();
  }
}

void drain_both_chunks(int rank, int ranks, BraidedRow& row) {
  const int later_ranks = ranks - 1 - rank;
  for (int i = 0; i < 2 * ranks - 2 - rank; ++i) {
    row.backward(0);
    row.forward(1), row.braid(), row.input_gradient(1);
  }
  for (int i = 0; i <= rank; ++i) row.backward(0), row.backward(1);
  row.backward(0);
  for (int i = 0; i < later_ranks; ++i) row.weight_gradient(), row.weight_gradient(), row.backward(0);
  for (int i = 0; i < 2 * rank; ++i) row.weight_gradient();
}

void stp_order(const RankInput& r, RankOps& ops) {
  const int min_micro_batches = 3 * r.ranks - 1;
  require_micro_batches(r.micro_batches >= min_micro_batches, "stp", fmt::format("at least {}", min_micro_batches),
                        r.micro_batches);
  BraidedRow row(ops);
  warm_up(r.rank, r.ranks - 1 - r.rank, row);
  // Then `rank` more pairs, whose weight gradients wait.
  const int whole = 2 * (r.micro_batches - min_micro_batches) + 1 + r.rank;
  for (int i = 0; i < whole + r.rank; ++i) {
    const int chunk = i % 2 == 0 ? 1 : 0;
    row.forward(chunk), row.braid();
    if (i < whole)
      row.backward(chunk);
    else
      row.input_gradient(chunk);
  }
  drain_both_chunks(r.rank, r.ranks, row);
}

}  // namespace

extern const ScheduleDef stp{
    .name = "stp",
    .summary = "A V in which forwards and backwards run as one and hide each other's collectives of tensor groups",
    .source = "Qi et al., Synergistic Tensor and Pipeline Parallelism, arXiv 2510.27257; MICLAB-BUPT/STP, schedule.py",
    .braids = true,
    .placement = Placement::V,
    .chunks = {2, 2},
    .rank = stp_order,
};

}  // namespace stagecraft::schedules
