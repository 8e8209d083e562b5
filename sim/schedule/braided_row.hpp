#pragma once

#include <array>
#include <deque>
#include <utility>

#include "sim/schedule/layout.hpp"

namespace stagecraft {

/// The ops of a rank with two chunks, some of which run as one with the next. It counts the micro-batches of each
/// chunk; weight gradients wait in one queue.
class BraidedRow {
 public:
  /// Calls `chunk[c]` of the rank chunk c, and its first micro-batch is `first[c]`.
  explicit BraidedRow(RankOps& ops, const std::array<int, 2>& chunk = {0, 1}, const std::array<int, 2>& first = {0, 0})
      : ops_(ops), chunk_(chunk), forward_(first), backward_(first) {}

  void forward(int c) { ops_.forward(chunk_[c], forward_[c]++); }
  void backward(int c) { ops_.backward(chunk_[c], backward_[c]++); }
  void input_gradient(int c) {
    ops_.input_gradient(chunk_[c], backward_[c]);
    weights_.emplace_back(chunk_[c], backward_[c]++);
  }
  void weight_gradient() {
    ops_.weight_gradient(weights_.front().first, weights_.front().second);
    weights_.pop_front();
  }
  /// The next op runs as one with the last.
  void braid() { ops_.join_next(); }

 private:
  RankOps& ops_;
  std::array<int, 2> chunk_, forward_, backward_;
  std::deque<std::pair<int, int>> weights_;  ///< Chunk of the rank, and micro-batch.
};

}  // namespace stagecraft
