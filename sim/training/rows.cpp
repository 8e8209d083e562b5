// What tasks share: rows of a fixed data set, their order in each epoch, and checks of the model.

#include "sim/training/rows.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "sim/core/text.hpp"

namespace stagecraft {
namespace {

constexpr std::size_t kMostKept = std::size_t{1} << 22;  // Numbers.

}  // namespace

Epochs::Epochs(std::uint64_t seed, std::int64_t rows, std::int64_t mini_batch)
    : seed_(seed), rows_(rows), mini_batch_(mini_batch) {}

std::int64_t Epochs::row(int iteration, std::int64_t sample) const {
  const std::int64_t drawn = iteration * mini_batch_ + sample;
  return (*order(drawn / rows_))(drawn % rows_);
}

std::shared_ptr<const Shuffle> Epochs::order(std::int64_t epoch) const {
  const std::lock_guard hold(lock_);
  if (epoch != last_epoch_) {
    last_order_ = std::make_shared<const Shuffle>(rows_, stream(seed_, "epoch", {epoch}).next());
    last_epoch_ = epoch;
  }
  return last_order_;
}

Rows::Rows(const TaskShape& shape, std::uint64_t seed) : epochs_(seed, kRows, shape.mini_batch), starts_{0} {
  for (const Operation& op : shape.inputs) starts_.push_back(starts_.back() + numbers({op}));
  for (const Operation& op : shape.losses)
    target_numbers_ += op.kind == OperationKind::CrossEntropy ? op.rows : numbers({op});
  if (starts_.back() + target_numbers_ <= kMostKept / kRows) kept_ = std::make_unique<CachedRow[]>(kRows);
}

const Rows::CachedRow* Rows::cached_row(std::int64_t row) const {
  if (!kept_ || row >= kRows) return nullptr;
  CachedRow& k = kept_[row];
  if (k.is_there.load(std::memory_order_acquire)) return &k;
  // Not std::call_once: where memory is short, an exception that passes through it may end the process.
  const std::lock_guard hold(k.lock);
  if (k.is_there.load(std::memory_order_relaxed)) return &k;
  k.inputs.resize(starts_.back());
  k.target.resize(target_numbers_);
  inputs_of(row, k.inputs);
  target_of(row, k.target);
  k.is_there.store(true, std::memory_order_release);
  return &k;
}

std::int64_t Rows::row_of(int iteration, std::int64_t sample) const {
  return iteration < 0 ? sample : epochs_.row(iteration, sample);
}

void Rows::input(int input, int iteration, std::int64_t sample, std::span<double> out) const {
  const std::int64_t row = row_of(iteration, sample);
  std::vector<double> fresh;
  const CachedRow* const entry = cached_row(row);
  if (!entry) {
    fresh.resize(starts_.back());
    inputs_of(row, fresh);
  }
  const std::vector<double>& values = entry ? entry->inputs : fresh;
  STAGECRAFT_CHECK(out.size() == starts_.at(input + 1) - starts_[input]);
  std::copy_n(values.begin() + static_cast<std::ptrdiff_t>(starts_[input]), out.size(), out.begin());
}

void Rows::target(int iteration, std::int64_t sample, std::span<double> out) const {
  const std::int64_t row = row_of(iteration, sample);
  if (const CachedRow* const entry = cached_row(row))
    std::copy_n(entry->target.begin(), out.size(), out.begin());
  else
    target_of(row, out);
}

std::int64_t numbers(const std::vector<Operation>& operations) {
  std::int64_t sum = 0;
  for (const Operation& op : operations) sum += static_cast<std::int64_t>(op.rows) * op.columns;
  return sum;
}

void refuse(std::string_view task, const std::string& why, const std::string& help) {
  throw InputError(fmt::format("the task {} does not fit the model: {}", task, why), help);
}

const Operation& one_loss(const TaskShape& shape, std::string_view task) {
  if (shape.losses.size() != 1)
    refuse(task, fmt::format("it has {}", pluralize(std::ssize(shape.losses), "loss", "es")),
           "give it one loss, at its end");
  return shape.losses.front();
}

void need_numbers(const TaskShape& shape, std::string_view task) {
  if (shape.inputs.empty()) refuse(task, "it has no input", "let it start with an input");
  for (const Operation& op : shape.inputs)
    if (op.inner > 0)
      refuse(task, fmt::format("its inputs are {}, not numbers", pluralize(std::int64_t{op.rows} * op.columns, "word")),
             "take the task charlm, or random");
}

}  // namespace stagecraft
