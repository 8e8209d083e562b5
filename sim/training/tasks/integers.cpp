// The task `integers`: whole numbers for a network that stays in whole numbers. Target j is x[j] + x[j + 1], indices
// modulo the inputs.

#include "sim/training/random.hpp"
#include "sim/training/rows.hpp"

namespace stagecraft::tasks {
namespace {

class Integers final : public Rows {
 public:
  Integers(const TaskShape& shape, std::uint64_t seed)
      : Rows(shape, seed), seed_(seed), inputs_(numbers(shape.inputs)) {}

 protected:
  void inputs_of(std::int64_t row, std::span<double> out) const override {
    Rng rng = stream(seed_, "integers", {row});
    for (double& number : out) number = rng.integer(-2, 2);
  }

  void target_of(std::int64_t row, std::span<double> out) const override {
    std::vector<double> x(inputs_);
    inputs_of(row, x);
    for (std::size_t j = 0; j < out.size(); ++j) out[j] = x[j % inputs_] + x[(j + 1) % inputs_];
  }

 private:
  std::uint64_t seed_;
  std::size_t inputs_;
};

std::unique_ptr<Dataset> make_integers(const TaskShape& shape, std::uint64_t seed) {
  need_numbers(shape, "integers");
  if (one_loss(shape, "integers").kind != OperationKind::SumSquare)
    refuse("integers", "a mean divides, and whole numbers would not stay whole", "give it the loss sum_square");
  return std::make_unique<Integers>(shape, seed);
}

}  // namespace

extern const TaskDef integers{
    .name = "integers",
    .summary = "Sums of two whole numbers from -2 to 2, for arithmetic without rounding; 2048 samples",
    .source = "no particular paper",
    .make = make_integers,
};

}  // namespace stagecraft::tasks
