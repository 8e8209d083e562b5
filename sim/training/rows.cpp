#include "sim/training/rows.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "sim/training/random.hpp"

namespace stagecraft {

std::int64_t Epochs::row(int iteration, std::int64_t sample) const {
  const std::int64_t drawn = iteration * mini_batch + sample;
  return shuffled(drawn % rows, rows, stream(seed, "epoch", {drawn / rows}).next());
}

Rows::Rows(const TaskShape& shape, std::uint64_t seed) : epochs_{seed, kRows, shape.mini_batch}, starts_{0} {
  for (const Operation& op : shape.inputs) starts_.push_back(starts_.back() + static_cast<std::size_t>(numbers({op})));
}

std::int64_t Rows::row_of(int iteration, std::int64_t sample) const {
  return iteration < 0 ? sample : epochs_.row(iteration, sample);
}

void Rows::input(int input, int iteration, std::int64_t sample, std::span<double> out) const {
  std::vector<double> all(starts_.back());
  inputs_of(row_of(iteration, sample), all);
  STAGECRAFT_CHECK(out.size() ==
                   starts_.at(static_cast<std::size_t>(input) + 1) - starts_[static_cast<std::size_t>(input)]);
  std::copy_n(all.begin() + static_cast<std::ptrdiff_t>(starts_[static_cast<std::size_t>(input)]), out.size(),
              out.begin());
}

void Rows::target(int iteration, std::int64_t sample, std::span<double> out) const {
  target_of(row_of(iteration, sample), out);
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
    refuse(task, fmt::format("it has {} losses", shape.losses.size()), "give it one loss, at its end");
  return shape.losses.front();
}

void need_numbers(const TaskShape& shape, std::string_view task) {
  if (shape.inputs.empty()) refuse(task, "it has no input", "let it start with an input");
  for (const Operation& op : shape.inputs)
    if (op.inner > 0)
      refuse(task, fmt::format("its inputs are {} words, not numbers", op.rows * op.columns),
             "take the task charlm, or random");
}

}  // namespace stagecraft
