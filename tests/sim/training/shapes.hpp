#pragma once

#include "sim/training/task.hpp"

namespace stagecraft::test {

inline Operation operation(OperationKind kind, int rows, int columns, int inner = 0) {
  return {.kind = kind, .rows = rows, .columns = columns, .inner = inner};
}

inline TaskShape shape(std::vector<Operation> inputs, std::vector<Operation> losses, std::int64_t mini_batch = 32) {
  TaskShape s{.inputs = std::move(inputs), .losses = std::move(losses), .mini_batch = mini_batch};
  for (const Operation& op : s.inputs)
    if (op.inner > 0) s.words = s.words == 0 ? op.inner : std::min(s.words, op.inner);
  return s;
}

/// A model shape that fits the task.
inline TaskShape fitting(std::string_view task) {
  using enum OperationKind;
  if (task == "glyph") return shape({operation(Input, 1, 64)}, {operation(CrossEntropy, 1, 10)});
  if (task == "charlm") return shape({operation(Input, 24, 1, 32)}, {operation(CrossEntropy, 24, 32)});
  if (task == "integers") return shape({operation(Input, 1, 6)}, {operation(SumSquare, 1, 3)});
  if (task == "random")
    return shape({operation(Input, 3, 1, 50), operation(Input, 2, 5)}, {operation(CrossEntropy, 4, 7)});
  return shape({operation(Input, 1, 16)}, {operation(MeanSquare, 1, 4)});
}

inline std::size_t numbers(const Operation& op) { return static_cast<std::size_t>(op.rows * op.columns); }

inline std::vector<double> input_of(const Dataset& data, const TaskShape& s, int input, int iteration,
                                    std::int64_t sample) {
  std::vector<double> out(numbers(s.inputs[input]));
  data.input(input, iteration, sample, out);
  return out;
}

inline std::vector<double> target_of(const Dataset& data, const TaskShape& s, int iteration, std::int64_t sample) {
  const Operation& loss = s.losses.front();
  std::vector<double> out(loss.kind == OperationKind::CrossEntropy ? static_cast<std::size_t>(loss.rows)
                                                                   : numbers(loss));
  data.target(iteration, sample, out);
  return out;
}

}  // namespace stagecraft::test
