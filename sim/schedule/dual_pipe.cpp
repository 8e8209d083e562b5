#include "sim/schedule/dual_pipe.hpp"

#include <deque>

namespace stagecraft {
namespace {

/// Takes the micro-batches of each chunk in their order; weight gradients wait in one queue.
class Steps {
 public:
  Steps(const std::array<int, 2>& chunk, const std::array<int, 2>& first, RankOps& ops)
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

/// Steps 6 to 8: the gradients drain, and halfway the weight gradients are put off to fill the gaps.
void drain(int rank, int behind, Steps& steps) {
  bool split = false;
  for (int i = 0; i <= rank; ++i) {
    const bool half = i == (rank + 1) / 2;
    split |= half && rank % 2 == 1;
    steps.backward(1, split);
    split |= half;
    steps.backward(0, split);
  }
  for (int i = 0; i < behind; ++i) {
    steps.weight();
    steps.backward(0, true);
  }
  for (int i = 0; i <= rank; ++i) steps.weight();
}

}  // namespace

void dual_pipe(int rank, int ranks, int micro_batches, const std::array<int, 2>& chunk, const std::array<int, 2>& first,
               RankOps& ops) {
  Steps steps(chunk, first, ops);
  const int behind = ranks - rank - 1;
  for (int i = 0; i < 2 * behind; ++i) steps.forward(0);
  for (int i = 0; i <= rank; ++i) steps.forward(0), steps.forward(1);
  for (int i = 0; i < behind; ++i) {
    steps.backward(1, true);
    steps.weight();
    steps.forward(1);
  }
  for (int i = 0; i < micro_batches - 2 * ranks + rank + 1; ++i) {
    if (i == 0 && behind == 0)
      steps.forward(0), steps.backward(1, false);  // On one device each would wait for the other.
    else
      steps.together(0, 1);
    steps.together(1, 0);
  }
  for (int i = 0; i < behind; ++i) {
    steps.backward(1, false);
    steps.together(1, 0);
  }
  drain(rank, behind, steps);
}

}  // namespace stagecraft
