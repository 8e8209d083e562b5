#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "sim/training/random.hpp"
#include "sim/training/task.hpp"

namespace stagecraft {

/// Which row of a fixed table each sample of each iteration is: every epoch is all of them in a new order.
class Epochs {
 public:
  Epochs(std::uint64_t seed, std::int64_t rows, std::int64_t mini_batch);
  std::int64_t row(int iteration, std::int64_t sample) const;

 private:
  std::shared_ptr<const Shuffle> order(std::int64_t epoch) const;

  std::uint64_t seed_;
  std::int64_t rows_, mini_batch_;
  mutable std::mutex lock_;  ///< Stages ask from their own threads.
  mutable std::int64_t last_epoch_ = -1;
  mutable std::shared_ptr<const Shuffle> last_order_;
};

/// A table whose rows are computed when they are first asked for, and kept where that takes little memory. Samples for
/// evaluation are the first rows; rows from `kRows` on exist too, and are never trained on.
class Rows : public Dataset {
 public:
  static constexpr std::int64_t kRows = 2048;

  Rows(const TaskShape&, std::uint64_t seed);
  void input(int input, int iteration, std::int64_t sample, std::span<double> out) const final;
  void target(int iteration, std::int64_t sample, std::span<double> out) const final;
  std::int64_t evaluation_samples() const final { return 512; }

 protected:
  /// Numbers of all inputs, one after the other.
  virtual void inputs_of(std::int64_t row, std::span<double> out) const = 0;
  virtual void target_of(std::int64_t row, std::span<double> out) const = 0;

 private:
  struct CachedRow {
    std::mutex lock;
    std::atomic<bool> is_there = false;
    std::vector<double> inputs, target;
  };
  std::int64_t row_of(int iteration, std::int64_t sample) const;
  const CachedRow* cached_row(std::int64_t row) const;

  Epochs epochs_;
  std::vector<std::size_t> starts_;  ///< [input]: its first number among the numbers of a row; then the end of all.
  std::size_t target_numbers_ = 0;
  std::unique_ptr<CachedRow[]> kept_;  ///< The first kRows rows; null where they are too large to keep.
};

/// The number of values in the outputs of some operations.
std::int64_t numbers(const std::vector<Operation>&);

/// What tasks ask of a model; each throws InputError with `task` and what would fit when it is not so.
const Operation& one_loss(const TaskShape&, std::string_view task);
void need_numbers(const TaskShape&, std::string_view task);
[[noreturn]] void refuse(std::string_view task, const std::string& why, const std::string& help);

}  // namespace stagecraft
