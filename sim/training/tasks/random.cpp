// The task `random`: random inputs and targets, which fit every model with an input and at most one loss and mean
// nothing: for measuring time.

#include <fmt/core.h>

#include <cmath>

#include "sim/training/random.hpp"
#include "sim/training/rows.hpp"

namespace stagecraft::tasks {
namespace {

class Random final : public Dataset {
 public:
  Random(const TaskShape& shape, std::uint64_t seed) : shape_(shape), seed_(seed) {}

  void input(int input, int iteration, std::int64_t sample, std::span<double> out) const override {
    Rng rng = stream(seed_, "random input", {input, iteration, sample});
    fill(rng, shape_.inputs.at(input).inner, out);
  }

  void target(int iteration, std::int64_t sample, std::span<double> out) const override {
    Rng rng = stream(seed_, "random target", {iteration, sample});
    const Operation& loss = one_loss(shape_, "random");
    fill(rng, loss.kind == OperationKind::CrossEntropy ? loss.columns : 0, out);
  }

 private:
  /// Whole numbers below `words`, or, for 0, numbers with variance 1.
  static void fill(Rng& rng, int words, std::span<double> out) {
    const double edge = std::sqrt(3.0);
    for (double& number : out) number = words > 0 ? rng.integer(0, words - 1) : rng.uniform(-edge, edge);
  }

  TaskShape shape_;
  std::uint64_t seed_;
};

// Without a loss the model only computes, and no target is needed.
std::unique_ptr<Dataset> make_random(const TaskShape& shape, std::uint64_t seed) {
  if (shape.inputs.empty()) refuse("random", "it has no input", "let it start with an input");
  if (!shape.losses.empty()) one_loss(shape, "random");
  return std::make_unique<Random>(shape, seed);
}

}  // namespace

extern const TaskDef random{
    .name = "random",
    .summary = "Random inputs and targets of any shape, never twice the same; nothing can be learnt from them",
    .source = "no particular paper",
    .make = make_random,
};

}  // namespace stagecraft::tasks
