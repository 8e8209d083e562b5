// Recurrent layers over T steps of B samples with i inputs and width h, for each direction:
//   LSTM   T B (8h(i + h) + 30h), as the builder `lstm` counts it; kept: input, output, four gates, cell
//   GRU    T B (6h(i + h) + 20h): six biases, two sigmoids of four operations, tanh, r * h, (1 - z) n + z h
//   RNN    T B (2h(i + h) + 4h): two biases, a sum and tanh
// Input 1 has the weights of the inputs, input 2 the weights of the state, and input 3 the biases.

#include <fmt/core.h>

#include "models/onnx/operator.hpp"

namespace stagecraft::onnx {
namespace {

struct RecurrentCell {
  double gates, work, extra_stash;  ///< `work` (without matrix products) and `extra_stash` are per unit and step.
};

OperatorResult recurrent(const OperatorCall& c, const RecurrentCell& cell) {
  const Shape &x = c.input(0).shape, &state = c.input(2).shape;
  if (x.size() != 3 || state.size() != 3 || c.rank(1) != 3)
    c.fail(fmt::format("an input of {} and weights of {} and {}; each has three dimensions", to_text(x),
                       to_text(c.input(1).shape), to_text(state)));
  const bool samples_first = c.integer("layout", 0) != 0;
  const std::int64_t steps = x[samples_first ? 1 : 0], samples = x[samples_first ? 0 : 1];
  const std::int64_t directions = state[0], width = c.integer("hidden_size", state[2]);
  if (c.input(1).shape[2] != x[2])
    c.fail(fmt::format("weights of {} on an input of {}", to_text(c.input(1).shape), to_text(x)));
  const Type type = c.input(0).type;
  const Shape last = samples_first ? Shape{samples, directions, width} : Shape{directions, samples, width};
  OperatorResult result;
  result.outputs.push_back(sized(
      c, type, samples_first ? Shape{samples, steps, directions, width} : Shape{steps, directions, samples, width}));
  for (std::size_t i = 1; i < c.node.outputs.size(); ++i) result.outputs.push_back(sized(c, type, last));
  const double units = result.outputs.front().numbers(), h = static_cast<double>(width);
  const double inputs = 2 * cell.gates * units * static_cast<double>(x[2]), states = 2 * cell.gates * units * h;
  result.forward = inputs + states + cell.work * units;
  // The backward work of the cells counts once with the gradient of the input and once with that of the state's
  // weights.
  const std::uint32_t reads = reads_input(0) | kReadsOutput;
  result.gradients = {GradientWork{result.forward, reads}, GradientWork{inputs, reads},
                      GradientWork{states + cell.work * units, reads}, GradientWork{}};
  result.extra_stash = cell.extra_stash * units * bytes_of(type);
  return result;
}

OperatorResult lstm(const OperatorCall& c) { return recurrent(c, {4, 30, 5}); }
OperatorResult gru(const OperatorCall& c) { return recurrent(c, {3, 20, 4}); }
OperatorResult rnn(const OperatorCall& c) { return recurrent(c, {1, 4, 0}); }

const Operator recurrent_table[] = {{"LSTM", lstm}, {"GRU", gru}, {"RNN", rnn}};

}  // namespace

Operators recurrent() { return recurrent_table; }

}  // namespace stagecraft::onnx
