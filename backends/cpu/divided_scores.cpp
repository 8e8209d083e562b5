// Cross entropy over words that the ranks of a pipeline divide: records of rows, how they are joined, and the gradients
// that joint records give.

#include <cmath>
#include <limits>

#include "backends/cpu/loops.hpp"
#include "backends/cpu/operations.hpp"

namespace stagecraft::cpu {
namespace {

using real::ScoreRecords;

/// The numbers of a record.
template <class T>
struct Record {
  T& largest;
  T& sum;
  T& target;
  T *weighted, *of_target;  ///< Sums of exp(score - largest) W, and W of the target.
};

template <class T>
Record<T> record(const real::Tensor& records, std::int64_t row, std::int64_t width) {
  T* const first = numbers<T>(records) + row * records.columns;
  T* const weighted = first + ScoreRecords::kStatistics;
  return {first[0], first[1], first[2], weighted, weighted + width};
}

/// The target among the words that are here; -1: another rank has it.
template <class T>
std::int64_t target_here(const real::Call& call, std::int64_t row) {
  const Operation& op = *call.operation;
  const std::int64_t target = whole_number(numbers<T>(call.inputs[1])[row], call.words, "class", op) - call.first_word;
  return target < op.columns ? std::max<std::int64_t>(target, -1) : -1;
}

template <class T>
void make_records(const real::Call& call, const ScoreRecords& records) {
  const std::int64_t words = call.operation->columns, width = records.width;
  for (std::int64_t row = 0; row < records.here.rows; ++row) {
    const T* const scores = numbers<T>(call.inputs[0]) + row * words;
    T* const exponentials = numbers<T>(call.saved) + row * words;
    const Record<T> here = record<T>(records.here, row, width);
    const SoftmaxParts<T> parts = softmax_exponentials(words, scores, T{1}, exponentials);
    here.largest = parts.largest, here.sum = parts.sum;
    const std::int64_t target = target_here<T>(call, row);
    here.target = target < 0 ? T{0} : scores[target];
    const T* const weights = static_cast<const T*>(call.weights) + std::max<std::int64_t>(target, 0) * width;
    put(false, width, here.of_target, [=](std::int64_t i) { return target < 0 ? T{0} : weights[i]; });
  }
}

/// Joins the softmaxes of two ranks, which are over different words (Milakov and Gimelshein, 2018).
template <class T>
void join(const ScoreRecords& records) {
  const std::int64_t width = records.width;
  for (std::int64_t row = 0; row < records.joint.rows; ++row) {
    const Record<T> from = record<T>(records.here, row, width), to = record<T>(records.joint, row, width);
    const T largest = std::max(from.largest, to.largest);
    const T of_from = std::exp(from.largest - largest), of_to = std::exp(to.largest - largest);
    to.largest = largest;
    to.sum = to.sum * of_to + from.sum * of_from;
    to.target += from.target;
    put(false, width, to.weighted, [=](std::int64_t i) { return to.weighted[i] * of_to + from.weighted[i] * of_from; });
    put(true, width, to.of_target, [=](std::int64_t i) { return from.of_target[i]; });
  }
}

template <class T>
void make_gradient(const real::Call& call, const ScoreRecords& records) {
  const std::int64_t words = call.operation->columns, width = records.width;
  const double weight = call.scale / call.operation->rows;
  double total = 0;
  for (std::int64_t row = 0; row < records.here.rows; ++row) {
    const Record<T> here = record<T>(records.here, row, width), joint = record<T>(records.joint, row, width);
    total += std::log(static_cast<double>(joint.sum)) + static_cast<double>(joint.largest - joint.target);
    T* const gradient = numbers<T>(call.saved) + row * words;
    const T factor = static_cast<T>(weight * std::exp(static_cast<double>(here.largest - joint.largest)) /
                                    static_cast<double>(joint.sum));
    put(false, words, gradient, [=](std::int64_t i) { return gradient[i] * factor; });
    if (const std::int64_t target = target_here<T>(call, row); target >= 0) gradient[target] -= static_cast<T>(weight);
  }
  *numbers<T>(call.output) = static_cast<T>(weight * total);
}

template <class T>
void make_input_gradient(const real::Call& call, const ScoreRecords& records) {
  const std::int64_t width = records.width;
  const double weight = call.scale / call.operation->rows;
  for (std::int64_t row = 0; row < records.joint.rows; ++row) {
    const Record<T> joint = record<T>(records.joint, row, width);
    const T of_sum = static_cast<T>(weight / static_cast<double>(joint.sum)), of_target = static_cast<T>(weight);
    put(false, width, numbers<T>(call.output) + row * width,
        [=](std::int64_t i) { return joint.weighted[i] * of_sum - joint.of_target[i] * of_target; });
  }
}

}  // namespace

template <class T>
void divided_scores(real::ScoreStep step, const real::Call& call, const ScoreRecords& records) {
  switch (step) {
    case real::ScoreStep::Record:
      return make_records<T>(call, records);
    case real::ScoreStep::Join:
      return join<T>(records);
    case real::ScoreStep::Gradient:
      return make_gradient<T>(call, records);
    case real::ScoreStep::InputGradient:
      return make_input_gradient<T>(call, records);
  }
}
template void divided_scores<float>(real::ScoreStep, const real::Call&, const ScoreRecords&);
template void divided_scores<double>(real::ScoreStep, const real::Call&, const ScoreRecords&);

}  // namespace stagecraft::cpu
