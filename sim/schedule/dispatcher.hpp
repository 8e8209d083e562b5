#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace stagecraft {

/// The rows that try in this pass and in the next, smallest first.
class TurnQueue {
 public:
  explicit TurnQueue(std::size_t rows) : now_(rows), next_(rows) {
    for (std::size_t row = 0; row < rows; ++row) next_.add(row);
  }
  void later(int row) { next_.add(row); }
  /// The row tries in this pass when it comes after the current one, else in the next.
  void wake(int row, int current) { (row > current ? now_ : next_).add(row); }
  /// Calls step(row) for every row of one pass; returns whether there was any.
  template <class Step>
  bool pass(Step&& step) {
    std::swap(now_, next_);
    bool any = false;
    for (std::size_t b = 0; b < now_.blocks.size(); ++b) {
      for (std::uint64_t& block = now_.blocks[b]; block != 0;) {
        const std::size_t w = b * 64 + std::countr_zero(block);
        for (std::uint64_t& word = now_.words[w]; word != 0;) {
          const int row = static_cast<int>(w * 64) + std::countr_zero(word);
          word &= word - 1;
          any = true;
          step(row);
        }
        block &= ~(1ULL << (w % 64));
      }
    }
    return any;
  }

 private:
  /// A two-level bit set of rows: one bit per row, and one bit per non-empty word, so a pass of few rows reads few
  /// words.
  struct RowSet {
    std::vector<std::uint64_t> words, blocks;
    explicit RowSet(std::size_t rows) : words(rows / 64 + 1, 0), blocks(words.size() / 64 + 1, 0) {}
    void add(std::size_t row) {
      words[row / 64] |= 1ULL << (row % 64);
      blocks[row / 4096] |= 1ULL << (row / 64 % 64);
    }
  };

  RowSet now_, next_;
};

/// Advances rows of items against each other: in each pass every row that can go on takes one item, or one group of
/// items that run as one (Item::fused), rows ascending. A row that cannot go on is blocked and costs nothing until it
/// is woken. The policy has
///   bool ready(int row, std::size_t index) const   whether the item can run,
///   void arrive(int row, const Item&)              called when a row tries its next item, before ready(),
///   void take(int row, std::size_t first, std::size_t end)   runs the items; it wakes the rows that they make ready.
template <class Item, class Policy>
class Dispatcher {
 public:
  /// The rows are looked at, not copied.
  Dispatcher(std::vector<std::span<const Item>> rows, Policy& policy)
      : rows_(std::move(rows)),
        policy_(policy),
        head_(rows_.size(), 0),
        blocked_(rows_.size(), false),
        turns_(rows_.size()) {}
  Dispatcher(const std::vector<std::vector<Item>>& rows, Policy& policy)
      : Dispatcher(std::vector<std::span<const Item>>(rows.begin(), rows.end()), policy) {}

  /// Runs until no row can go on; returns whether all rows ended.
  bool run() {
    while (turns_.pass([&](int row) { try_turn(row); })) {
    }
    for (int row = 0; row < std::ssize(rows_); ++row)
      if (!ended(row)) return false;
    return true;
  }

  /// Lets a blocked row try again when it can go on now. For the policy, from within arrive() and take().
  void wake(int row) {
    if (!blocked_[row] || !can_run(row)) return;
    blocked_[row] = false;
    turns_.wake(row, current_);
  }

  std::size_t head(int row) const { return head_[row]; }  ///< Index of the next item.
  bool ended(int row) const { return head_[row] == rows_[row].size(); }
  bool blocked(int row) const { return blocked_[row]; }

 private:
  std::size_t group_end(int row) const {
    std::size_t last = head_[row];
    while (rows_[row][last].fused && last + 1 < rows_[row].size()) ++last;
    return last + 1;
  }

  bool can_run(int row) const {
    const std::size_t end = group_end(row);
    for (std::size_t i = head_[row]; i < end; ++i)
      if (!policy_.ready(row, i)) return false;
    return true;
  }

  void try_turn(int row) {
    if (ended(row)) return;
    current_ = row;
    policy_.arrive(row, rows_[row][head_[row]]);
    if (!can_run(row)) {
      blocked_[row] = true;
      return;
    }
    const std::size_t first = head_[row];
    head_[row] = group_end(row);
    policy_.take(row, first, head_[row]);
    turns_.later(row);
  }

  std::vector<std::span<const Item>> rows_;
  Policy& policy_;
  std::vector<std::size_t> head_;
  std::vector<bool> blocked_;
  TurnQueue turns_;
  int current_ = 0;
};

}  // namespace stagecraft
