#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <utility>
#include <vector>

namespace stagecraft {

/// What a rank does in one step, as far as memory is concerned: it takes an activation, frees one, or runs an input
/// gradient after which a weight gradient is due.
enum class StepState : std::int8_t { Free, Busy, Takes, Frees, Due };

/// Activations over a stretch of steps: how many more there are after it, and the most after any of its steps.
struct Activations {
  int change = 0, highest = 0;
  static Activations from_step(StepState step) {
    const int change = step == StepState::Takes ? 1 : step == StepState::Frees ? -1 : 0;
    return {change, change};
  }
  static Activations joined(const Activations& a, const Activations& b) {
    return {a.change + b.change, std::max(a.highest, a.change + b.highest)};
  }
};

/// Activations where a free step runs a weight gradient that is due, which frees an activation. Activations without a
/// gradient grow by `change`; d weight gradients that are due before the stretch become max(d + due, least) after it.
/// The most of both in between is what there was without a gradient, plus max(d + most, most_of_least).
struct ActivationsAndDue {
  int change = 0, due = 0, lowest = 0, highest = 0, highest_after_lowest = 0;
  static ActivationsAndDue from_step(StepState);
  static ActivationsAndDue joined(const ActivationsAndDue& a, const ActivationsAndDue& b) {
    return {a.change + b.change, a.due + b.due, std::max(a.lowest + b.due, b.lowest),
            std::max(a.highest, a.change + a.due + b.highest),
            std::max(a.highest_after_lowest, a.change + std::max(a.lowest + b.highest, b.highest_after_lowest))};
  }
  int peak() const { return std::max(highest, highest_after_lowest); }
};

/// The steps of a rank under a binary tree of stretches. O(log steps) for each change and query.
template <class Stretch>
class StepTree {
 public:
  explicit StepTree(std::vector<StepState> steps) : steps_(std::move(steps)) {
    const std::size_t blocks = (steps_.size() + kBlock - 1) / kBlock;
    while (leaves_ < blocks) leaves_ *= 2;
    tree_.resize(2 * leaves_);
    for (std::size_t i = 0; i < blocks; ++i) tree_[leaves_ + i] = leaf(i);
    for (std::size_t i = leaves_; i-- > 1;) tree_[i] = Stretch::joined(tree_[2 * i], tree_[2 * i + 1]);
  }

  bool free(int step) const { return steps_[step] == StepState::Free; }
  const Stretch& whole() const { return tree_[1]; }

  /// Replaces the steps from `step` on.
  void set(int step, std::initializer_list<StepState> what) {
    const std::size_t first = step, last = first + what.size() - 1;
    std::copy(what.begin(), what.end(), steps_.begin() + step);
    renew(first / kBlock);
    if (last / kBlock != first / kBlock) renew(last / kBlock);
  }

  /// The last step before `end` after which there are `activations` or more; -1 for none.
  int last_with(int activations, int end) const {
    return last_in(1, 0, static_cast<int>(leaves_ * kBlock), activations, end);
  }

 private:
  static constexpr std::size_t kBlock = 8;

  Stretch leaf(std::size_t block) const {
    const std::size_t first = block * kBlock, end = std::min(first + kBlock, steps_.size());
    Stretch total = Stretch::from_step(steps_[first]);
    for (std::size_t i = first + 1; i < end; ++i) total = Stretch::joined(total, Stretch::from_step(steps_[i]));
    return total;
  }

  void renew(std::size_t block) {
    std::size_t i = leaves_ + block;
    for (tree_[i] = leaf(block), i /= 2; i > 0; i /= 2) tree_[i] = Stretch::joined(tree_[2 * i], tree_[2 * i + 1]);
  }

  int last_in(std::size_t node, int first, int size, int activations, int end) const {
    if (first >= end || tree_[node].highest < activations) return -1;
    if (node < leaves_) {
      const int half = size / 2, left = tree_[2 * node].change;
      const int later = last_in(2 * node + 1, first + half, half, activations - left, end);
      return later >= 0 ? later : last_in(2 * node, first, half, activations, end);
    }
    int last = -1;
    const int stop = std::min({end, first + size, static_cast<int>(steps_.size())});
    for (int i = first; i < stop; ++i)
      if ((activations -= Stretch::from_step(steps_[i]).change) <= 0) last = i;
    return last;
  }

  std::vector<StepState> steps_;
  std::size_t leaves_ = 1;
  std::vector<Stretch> tree_;  ///< The root is 1.
};

/// The indices of ops sorted by time, stable. O(ops + the last time).
std::vector<int> in_order(const std::vector<int>& times);

}  // namespace stagecraft
