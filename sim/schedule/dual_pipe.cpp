// The eight steps of DualPipe on one rank, for `dualpipe` and `dualpipev`.

#include "sim/schedule/dual_pipe.hpp"

#include "sim/schedule/braided_row.hpp"

namespace stagecraft {
namespace {

/// Forward of one chunk and backward of the other as one op.
void together(int forward_chunk, int backward_chunk, BraidedRow& row) {
  row.forward(forward_chunk), row.braid(), row.backward(backward_chunk);
}

void backward(int chunk, bool split, BraidedRow& row) { split ? row.input_gradient(chunk) : row.backward(chunk); }

/// Steps 6 to 8: the gradients drain, and from halfway on weight gradients are delayed to fill the gaps.
void drain(int rank, int later_ranks, BraidedRow& row) {
  bool split = false;
  for (int i = 0; i <= rank; ++i) {
    const bool half = i == (rank + 1) / 2;
    split |= half && rank % 2 == 1;
    backward(1, split, row);
    split |= half;
    backward(0, split, row);
  }
  for (int i = 0; i < later_ranks; ++i) {
    row.weight_gradient();
    row.input_gradient(0);
  }
  for (int i = 0; i <= rank; ++i) row.weight_gradient();
}

}  // namespace

void dual_pipe(int rank, int ranks, int micro_batches, const std::array<int, 2>& chunk, const std::array<int, 2>& first,
               RankOps& ops) {
  BraidedRow row(ops, chunk, first);
  const int later_ranks = ranks - rank - 1;
  for (int i = 0; i < 2 * later_ranks; ++i) row.forward(0);
  for (int i = 0; i <= rank; ++i) row.forward(0), row.forward(1);
  for (int i = 0; i < later_ranks; ++i) {
    row.input_gradient(1);
    row.weight_gradient();
    row.forward(1);
  }
  for (int i = 0; i < micro_batches - 2 * ranks + rank + 1; ++i) {
    if (i == 0 && later_ranks == 0)
      row.forward(0), row.backward(1);  // On one device each would wait for the other.
    else
      together(0, 1, row);
    together(1, 0, row);
  }
  for (int i = 0; i < later_ranks; ++i) {
    row.backward(1);
    together(1, 0, row);
  }
  drain(rank, later_ranks, row);
}

}  // namespace stagecraft
