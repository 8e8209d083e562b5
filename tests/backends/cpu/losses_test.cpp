#include <cmath>

#include <doctest/doctest.h>

#include "sim/core/diagnostic.hpp"
#include "tests/backends/cpu/trial.hpp"
#include "tests/support/checked.hpp"

namespace stagecraft::losses_test {
using namespace stagecraft::test;

namespace {

Trial loss(OperationKind kind, int rows, int columns, std::int64_t samples, double scale) {
  Trial t{std::string(to_text(kind)), {}, samples, {columns, kind == OperationKind::CrossEntropy ? 1 : columns}, scale};
  t.op.kind = kind;
  t.op.rows = rows;
  t.op.columns = columns;
  return t;
}

struct LossAndGradient {
  double loss;
  std::vector<double> gradient;
};

LossAndGradient run(const Trial& t, std::vector<double> computed, std::vector<double> targets, std::size_t width = 8) {
  const auto kernels = cpu::make_kernels(width);
  const std::size_t count = computed.size();
  ComputedTrial device(*kernels, t, {width, {std::move(computed), std::move(targets)}, {}, std::vector<double>(count)});
  REQUIRE(device.output.size() == 1);
  CHECK(device.input_gradient()[0] == device.saved());
  return {device.output[0], device.input_gradient()[0]};
}

std::string embed(double word) {
  Trial t{"embedding", {}, 1, {1}};
  t.op.kind = OperationKind::Embedding;
  t.op.columns = 2;
  t.op.inner = 3;
  const auto kernels = cpu::make_kernels(8);
  return input_error_of([&] { ComputedTrial(*kernels, t, {8, {{word}}, std::vector<double>(16), {0, 0}}); });
}

}  // namespace

TEST_CASE("cross entropy by hand") {
  // softmax(0, ln 3) = 1/4, 3/4: the losses are ln 4 and ln 4/3. One sample of two rows, then two samples of one.
  const double third = std::log(3.0);
  for (const auto& [rows, samples] : {std::pair{2, 1}, std::pair{1, 2}}) {
    const LossAndGradient result =
        run(loss(OperationKind::CrossEntropy, rows, 2, samples, 0.5), {0, third, 0, third}, {0, 1});
    CHECK(result.loss == doctest::Approx(0.5 / rows * std::log(16.0 / 3)).epsilon(1e-15));
    const double unit = 0.5 / rows / 4;
    const double expected[] = {-3 * unit, 3 * unit, unit, -unit};
    for (std::size_t i = 0; i < 4; ++i) CHECK(result.gradient[i] == doctest::Approx(expected[i]).epsilon(1e-15));
  }
}

TEST_CASE("cross entropy of large numbers does not overflow") {
  for (const std::size_t width : kWidths) {
    const LossAndGradient result = run(loss(OperationKind::CrossEntropy, 1, 3, 1, 1), {1000, 0, -1000}, {1}, width);
    CHECK(result.loss == 1000);
    CHECK(result.gradient == std::vector<double>{1, -1, 0});
  }
}

namespace {

/// Scores of rows of which ranks have some columns each, and the weights, `width` columns of each word, that made them.
struct DividedScores {
  std::vector<int> words;  ///< By rank.
  std::vector<std::vector<double>> scores;
  std::vector<double> targets, weights;
  std::int64_t width = 2;

  std::int64_t rows() const { return std::ssize(scores); }
  int total_words() const { return static_cast<int>(scores.front().size()); }
  real::Tensor tensor(std::vector<double>& numbers) const {
    return {numbers.data(), rows(), static_cast<std::int64_t>(numbers.size()) / rows(), false};
  }
  /// Calls use(call, rank) with the loss of each rank.
  template <class Use>
  void for_each_rank(const Use& use) {
    for (std::size_t rank = 0, first = 0; rank < words.size(); first += words[rank++]) {
      std::vector<double> part;
      for (const auto& row : scores) part.insert(part.end(), row.begin() + first, row.begin() + first + words[rank]);
      const Operation op = loss(OperationKind::CrossEntropy, static_cast<int>(rows()), words[rank], 1, 1).op;
      const real::Tensor inputs[] = {tensor(part), tensor(targets)};
      real::Call call;
      call.operation = &op, call.inputs = inputs, call.weights = weights.data() + first * width;
      call.first_word = static_cast<int>(first), call.words = total_words();
      use(call, rank);
    }
  }
};

struct JointScores {
  double loss = 0;
  std::vector<double> gradient, d_input;  ///< Gradients of the scores, row by row, and of their input, from records.
};

JointScores join_parts(DividedScores s) {
  const auto kernels = cpu::make_kernels(8);
  const std::int64_t columns = real::ScoreRecords::columns(s.width);
  std::vector<double> joint;
  std::vector<std::vector<double>> records, saved;
  s.for_each_rank([&](real::Call& call, std::size_t rank) {
    std::vector<double>& here = records.emplace_back(s.rows() * columns);
    std::vector<double>& exponentials = saved.emplace_back(s.rows() * s.words[rank]);
    call.saved = s.tensor(exponentials);
    kernels->divided_scores(real::ScoreStep::Record, call, {s.tensor(here), {}, s.width});
    for (std::size_t n = 0; n < exponentials.size(); ++n)
      for (std::int64_t i = 0; i < s.width; ++i)
        here[n / s.words[rank] * columns + real::ScoreRecords::kStatistics + i] +=
            exponentials[n] * static_cast<const double*>(call.weights)[n % s.words[rank] * s.width + i];
    if (rank == 0) joint = here;
    if (rank > 0) kernels->divided_scores(real::ScoreStep::Join, {}, {s.tensor(here), s.tensor(joint), s.width});
  });
  JointScores result{0, std::vector<double>(s.rows() * s.total_words()), std::vector<double>(s.rows() * s.width)};
  s.for_each_rank([&](real::Call& call, std::size_t rank) {
    call.saved = s.tensor(saved[rank]), call.output = {&result.loss, 1, 1, false};
    const real::ScoreRecords both{s.tensor(records[rank]), s.tensor(joint), s.width};
    kernels->divided_scores(real::ScoreStep::Gradient, call, both);
    for (std::int64_t row = 0; row < s.rows(); ++row)
      std::copy_n(saved[rank].begin() + row * s.words[rank], s.words[rank],
                  result.gradient.begin() + row * s.total_words() + call.first_word);
    call.output = s.tensor(result.d_input);
    kernels->divided_scores(real::ScoreStep::InputGradient, call, both);
  });
  return result;
}

}  // namespace

TEST_CASE("records of parts of the words give the loss and the gradients of all words") {
  const std::vector<std::vector<double>> scores{{0.5, -1, 2, 0.25, 3}, {1e4, -1e4, 0, 1e4, 2}, {-1e4, 1e4, 7, 0, -3}};
  const std::vector<double> weights{1, -2, 0.5, 3, 0.25, -1, 2, 0, -0.75, 1.5};  // Two of each word.
  std::vector<double> flat;
  for (const auto& row : scores) flat.insert(flat.end(), row.begin(), row.end());
  for (const std::vector<double>& targets : {std::vector<double>{0, 1, 4}, std::vector<double>{2, 3, 1}}) {
    const LossAndGradient whole = run(loss(OperationKind::CrossEntropy, 3, 5, 1, 1), flat, targets);
    for (const std::vector<int>& words : {std::vector<int>{5}, std::vector<int>{2, 3}, std::vector<int>{1, 1, 3}}) {
      const JointScores joint = join_parts({words, scores, targets, weights});
      CHECK(joint.loss == doctest::Approx(whole.loss).epsilon(1e-14));
      for (std::size_t i = 0; i < flat.size(); ++i) CHECK(std::abs(joint.gradient[i] - whole.gradient[i]) < 1e-15);
      for (int row = 0; row < 3; ++row)
        for (int i = 0; i < 2; ++i) {
          double sum = 0;
          for (int word = 0; word < 5; ++word) sum += whole.gradient[row * 5 + word] * weights[word * 2 + i];
          CHECK(std::abs(joint.d_input[row * 2 + i] - sum) < 1e-14);
        }
    }
  }
}

TEST_CASE("mean and sum of squares by hand") {
  // Differences 1, -2, 3, 0: squares 1, 4, 9, 0.
  const std::vector<double> y = {1, 0, 5, 7}, t = {0, 2, 2, 7};
  for (const std::size_t width : kWidths) {
    const LossAndGradient mean = run(loss(OperationKind::MeanSquare, 2, 1, 2, 0.5), y, t, width);
    CHECK(mean.loss == 0.5 * (5.0 / 2 + 9.0 / 2));
    CHECK(mean.gradient == std::vector<double>{0.5, -1, 1.5, 0});
    const LossAndGradient sum = run(loss(OperationKind::SumSquare, 2, 1, 2, 1), y, t, width);
    CHECK(sum.loss == 14);
    CHECK(sum.gradient == std::vector<double>{2, -4, 6, 0});
  }
}

TEST_CASE("words and classes that do not exist are errors of the input") {
  CHECK(embed(0) == "nothing");
  CHECK(embed(2) == "nothing");
  CHECK(embed(3) == "0: : embedding 1x2 of 3 words: word 3 is not known. [Use whole numbers from 0 to 2.]\n");
  CHECK(embed(-1).find("word -1 is not known") != std::string::npos);
  CHECK(embed(0.5).find("word 0.5 is not known") != std::string::npos);
  CHECK(embed(std::nan("")).find("word nan is not known") != std::string::npos);
  CHECK_THROWS_AS(run(loss(OperationKind::CrossEntropy, 1, 3, 1, 1), {0, 0, 0}, {3}), InputError);
  CHECK_THROWS_AS(run(loss(OperationKind::CrossEntropy, 1, 3, 1, 1), {0, 0, 0}, {-1}), InputError);
}

}  // namespace stagecraft::losses_test
