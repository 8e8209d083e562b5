// The eight steps of DualPipe on one rank, for `dualpipe` and `dualpipev`.

#include "sim/schedule/dual_pipe.hpp"

#include <deque>

namespace stagecraft {
namespace {

/// Runs the micro-batches of each chunk in their order; weight gradients wait in one queue.
class DualPipeRow {
 public:
  DualPipeRow(const std::array<int, 2>& chunk, const std::array<int, 2>& first, RankOps& ops)
      : ops_(&ops), chunk_(chunk), forward_(first), backward_(first) {}

  void forward(int c) { ops_->forward(chunk_[c], forward_[c]++); }
  void backward(int c, bool split) {
    const int micro = backward_[c]++;
    if (!split) return ops_->backward(chunk_[c], micro);
    ops_->input_gradient(chunk_[c], micro);
    weights_.push_back({c, micro});
  }
  void weight() {
    const auto [c, micro] = weights_.front();
    weights_.pop_front();
    ops_->weight_gradient(chunk_[c], micro);
  }
  /// Forward of one chunk and backward of the other as one op.
  void together(int forward_chunk, int backward_chunk) {
    forward(forward_chunk);
    ops_->join_next();
    backward(backward_chunk, false);
  }

 private:
  struct Weight {
    int chunk, micro;
  };

  RankOps* ops_;
  std::array<int, 2> chunk_, forward_, backward_;
  std::deque<Weight> weights_;
};

/// Steps 6 to 8: the gradients drain, and from halfway on weight gradients are delayed to fill the gaps.
void drain(int rank, int later_ranks, DualPipeRow& row) {
  bool split = false;
  for (int i = 0; i <= rank; ++i) {
    const bool half = i == (rank + 1) / 2;
    split |= half && rank % 2 == 1;
    row.backward(1, split);
    split |= half;
    row.backward(0, split);
  }
  for (int i = 0; i < later_ranks; ++i) {
    row.weight();
    row.backward(0, true);
  }
  for (int i = 0; i <= rank; ++i) row.weight();
}

}  // namespace

void dual_pipe(int rank, int ranks, int micro_batches, const std::array<int, 2>& chunk, const std::array<int, 2>& first,
               RankOps& ops) {
  DualPipeRow row(chunk, first, ops);
  const int later_ranks = ranks - rank - 1;
  for (int i = 0; i < 2 * later_ranks; ++i) row.forward(0);
  for (int i = 0; i <= rank; ++i) row.forward(0), row.forward(1);
  for (int i = 0; i < later_ranks; ++i) {
    row.backward(1, true);
    row.weight();
    row.forward(1);
  }
  for (int i = 0; i < micro_batches - 2 * ranks + rank + 1; ++i) {
    if (i == 0 && later_ranks == 0)
      row.forward(0), row.backward(1, false);  // On one device each would wait for the other.
    else
      row.together(0, 1);
    row.together(1, 0);
  }
  for (int i = 0; i < later_ranks; ++i) {
    row.backward(1, false);
    row.together(1, 0);
  }
  drain(rank, later_ranks, row);
}

}  // namespace stagecraft
