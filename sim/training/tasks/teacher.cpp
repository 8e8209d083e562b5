// The task `teacher`: what a small network of fixed random weights computes (tanh, tanh, linear), with noise. With
// these constants eight dense tanh layers of width 32 start at a mean square of about 4.3 and, trained with momentum
// 0.9 at a rate of 0.002, come to about 0.34 after 1000 updates of 32 samples.

#include <fmt/core.h>

#include <cmath>

#include "sim/training/random.hpp"
#include "sim/training/rows.hpp"

namespace stagecraft::tasks {
namespace {

constexpr std::int64_t kHidden = 24, kMostNumbers = 1 << 14;
constexpr double kFirstGain = 1, kSecondGain = 1.15, kDeviation = 2.08, kTargetNoise = 0.1;

/// Rows of weights for `inputs` numbers.
struct Matrix {
  std::int64_t rows, inputs;
  std::vector<double> weights;

  std::vector<double> times(std::span<const double> in) const {
    std::vector<double> out(rows, 0);
    const double* w = weights.data();
    for (double& sum : out)
      for (const double x : in) sum += *w++ * x;
    return out;
  }
};

// Rows of one length, so that their outputs have about one variance.
Matrix random_matrix(std::int64_t rows, std::int64_t inputs, double length, Rng rng) {
  Matrix m{rows, inputs, {}};
  for (std::int64_t r = 0; r < rows; ++r) {
    const std::size_t start = m.weights.size();
    double squares = 0;
    for (std::int64_t i = 0; i < inputs; ++i) {
      m.weights.push_back(normal(rng));
      squares += m.weights.back() * m.weights.back();
    }
    for (std::size_t i = start; i < m.weights.size(); ++i) m.weights[i] *= length / std::sqrt(squares);
  }
  return m;
}

class Teacher final : public Rows {
 public:
  Teacher(const TaskShape& shape, std::uint64_t seed)
      : Rows(shape, seed),
        seed_(seed),
        inputs_(numbers(shape.inputs)),
        first_(random_matrix(kHidden, inputs_, kFirstGain, Rng(seed, "teacher 1"))),
        second_(random_matrix(kHidden, kHidden, kSecondGain, Rng(seed, "teacher 2"))),
        last_(random_matrix(numbers(shape.losses), kHidden, 1, Rng(seed, "teacher 3"))) {
    double squares = 0;
    for (std::int64_t row = 0; row < evaluation_samples(); ++row)
      for (const double number : answer(row)) squares += number * number;
    const double mean = squares / static_cast<double>(evaluation_samples() * last_.rows);
    for (double& weight : last_.weights) weight *= kDeviation / std::sqrt(mean);
  }

 protected:
  void inputs_of(std::int64_t row, std::span<double> out) const override {
    Rng rng = stream(seed_, "teacher input", {row});
    for (double& number : out) number = normal(rng);
  }

  void target_of(std::int64_t row, std::span<double> out) const override {
    const std::vector<double> right = answer(row);
    Rng noise = stream(seed_, "teacher noise", {row});
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = right[i] + kTargetNoise * normal(noise);
  }

 private:
  std::vector<double> answer(std::int64_t row) const {
    std::vector<double> numbers(inputs_);
    inputs_of(row, numbers);
    for (const Matrix* layer : {&first_, &second_}) {
      numbers = layer->times(numbers);
      for (double& number : numbers) number = std::tanh(number);
    }
    return last_.times(numbers);
  }

  std::uint64_t seed_;
  std::int64_t inputs_;
  Matrix first_, second_, last_;
};

std::unique_ptr<Dataset> make_teacher(const TaskShape& shape, std::uint64_t seed) {
  need_numbers(shape, "teacher");
  const Operation& loss = one_loss(shape, "teacher");
  if (loss.kind == OperationKind::CrossEntropy)
    refuse("teacher", "its loss tells classes apart", "give it the loss mean_square, or take the task glyph or random");
  for (const std::int64_t size : {numbers(shape.inputs), numbers(shape.losses)})
    if (size > kMostNumbers)
      refuse("teacher", fmt::format("{} numbers are more than {}", size, kMostNumbers), "take the task random");
  return std::make_unique<Teacher>(shape, seed);
}

}  // namespace

extern const TaskDef teacher{
    .name = "teacher",
    .summary = "What a random tanh network of two layers of 24 computes, from normal numbers; 2048 samples",
    .source = "Saad and Solla, Phys. Rev. Lett. 74 (1995)",
    .make = make_teacher,
};

}  // namespace stagecraft::tasks
