#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "tests/sim/training/shapes.hpp"
#include "tests/support/checked.hpp"

namespace stagecraft::tasks_test {
using namespace stagecraft::test;
using enum OperationKind;

namespace {

/// Inputs and target of one sample.
using Sample = std::vector<std::vector<double>>;

Sample sample_of(const Dataset& data, const TaskShape& s, int iteration, std::int64_t sample) {
  Sample result;
  for (int i = 0; i < static_cast<int>(s.inputs.size()); ++i) result.push_back(input_of(data, s, i, iteration, sample));
  result.push_back(target_of(data, s, iteration, sample));
  return result;
}

std::string refusal(std::string_view task, const TaskShape& s) {
  return input_error_of([&] { get_from(tasks::catalog(), "task", task).make(s, 1); });
}

bool says(const std::string& text, std::string_view what) { return text.find(what) != std::string::npos; }

}  // namespace

TEST_CASE("samples depend on the seed and their number, and not on the order of requests") {
  for (const TaskDef* task : tasks::catalog()) {
    CAPTURE(task->name);
    const TaskShape s = fitting(task->name);
    const auto one = task->make(s, 7), other = task->make(s, 7), changed = task->make(s, 8);
    std::vector<Sample> forward, backward;
    int differ = 0;
    for (int at = 0; at < 96; ++at) {
      forward.push_back(sample_of(*one, s, at / 32 - 1, at % 32));
      backward.push_back(sample_of(*other, s, (95 - at) / 32 - 1, (95 - at) % 32));
      differ += forward.back() != sample_of(*changed, s, at / 32 - 1, at % 32);
    }
    std::reverse(backward.begin(), backward.end());
    CHECK(forward == backward);
    CHECK(differ > 48);
  }
}

TEST_CASE("an epoch has every row once, each epoch in another order") {
  for (const std::string_view task : {"teacher", "glyph", "integers", "charlm"}) {
    CAPTURE(task);
    TaskShape s = fitting(task);
    s.mini_batch = task == "charlm" ? 26 : 64;
    const int iterations = task == "charlm" ? 100 : 32;
    const auto data = get_from(tasks::catalog(), "task", task).make(s, 3);
    std::vector<Sample> epochs[2];
    for (int i = 0; i < 2 * iterations; ++i)
      for (int k = 0; k < s.mini_batch; ++k) epochs[i / iterations].push_back(sample_of(*data, s, i, k));
    CHECK(epochs[0] != epochs[1]);
    for (auto& epoch : epochs) std::sort(epoch.begin(), epoch.end());
    CHECK(epochs[0] == epochs[1]);
    if (task == "charlm") continue;
    std::vector<Sample> rows;
    for (int row = 0; row < 2048; ++row) rows.push_back(sample_of(*data, s, -1, row));
    std::sort(rows.begin(), rows.end());
    CHECK(rows == epochs[0]);
    CHECK(data->evaluation_samples() == 512);
  }
}

TEST_CASE("inputs and targets are in the range of the model") {
  for (const TaskDef* task : tasks::catalog()) {
    CAPTURE(task->name);
    const TaskShape s = fitting(task->name);
    const auto data = task->make(s, 2);
    const auto check_whole = [](double x, int low, int high) { CHECK((x == std::floor(x) && x >= low && x <= high)); };
    for (int at = 0; at < 640; ++at) {
      const Sample sample = sample_of(*data, s, at / 32 - 1, at % 32);
      for (std::size_t i = 0; i < s.inputs.size(); ++i)
        for (const double x : sample[i]) {
          CHECK(std::isfinite(x));
          if (s.inputs[i].inner > 0) check_whole(x, 0, s.inputs[i].inner - 1);
          if (task->name == "integers") check_whole(x, -2, 2);
        }
      for (const double x : sample.back()) {
        CHECK(std::isfinite(x));
        if (s.losses[0].kind == CrossEntropy) check_whole(x, 0, s.losses[0].columns - 1);
        if (task->name == "integers") check_whole(x, -4, 4);
      }
    }
  }
}

TEST_CASE("models that do not fit a task are refused with the reason") {
  const Operation pixels = operation(Input, 1, 64), words = operation(Input, 24, 1, 32);
  const Operation classes = operation(CrossEntropy, 1, 10), square = operation(MeanSquare, 1, 4);
  CHECK(
      says(refusal("teacher", shape({words}, {square})), "its inputs are 24 words, not numbers [take the task charlm"));
  CHECK(says(refusal("teacher", shape({pixels}, {classes})), "its loss tells classes apart"));
  CHECK(says(refusal("teacher", shape({pixels}, {})), "it has 0 losses"));
  CHECK(says(refusal("teacher", shape({pixels}, {square, square})), "it has 2 losses"));
  CHECK(says(refusal("teacher", shape({}, {square})), "it has no input"));
  CHECK(says(refusal("teacher", shape({operation(Input, 512, 1024)}, {square})), "524288 numbers are more than 16384"));
  CHECK(says(refusal("glyph", shape({operation(Input, 1, 16)}, {classes})), "a picture has 64 numbers, its input 16"));
  CHECK(says(refusal("glyph", shape({pixels}, {operation(CrossEntropy, 1, 12)})),
             "there are 10 classes, its loss is cross_entropy 1x12"));
  CHECK(says(refusal("glyph", shape({pixels}, {square})), "its loss is mean_square 1x4"));
  CHECK(says(refusal("charlm", shape({pixels}, {classes})), "it needs one input, of one word a row"));
  CHECK(says(refusal("charlm", shape({words}, {classes})), "not a class for each word"));
  CHECK(says(refusal("charlm", shape({operation(Input, 24, 1, 20)}, {operation(CrossEntropy, 24, 32)})),
             "it knows 20 words and tells 32 apart, but there are 29 characters"));
  CHECK(says(refusal("integers", shape({pixels}, {square})), "[give it the loss sum_square]"));
  CHECK(says(refusal("random", shape({words}, {classes, classes})), "it has 2 losses"));
  CHECK(refusal("random", shape({words, pixels}, {})) == "nothing");
}

TEST_CASE("several inputs share one row") {
  const TaskShape whole = fitting("teacher");
  const TaskShape parts = shape({operation(Input, 1, 6), operation(Input, 2, 5)}, whole.losses);
  const auto data = get_from(tasks::catalog(), "task", "teacher").make(whole, 5);
  const auto cut = get_from(tasks::catalog(), "task", "teacher").make(parts, 5);
  std::vector<double> joined = input_of(*cut, parts, 0, 3, 4);
  const std::vector<double> rest = input_of(*cut, parts, 1, 3, 4);
  joined.insert(joined.end(), rest.begin(), rest.end());
  CHECK(joined == input_of(*data, whole, 0, 3, 4));
  CHECK(target_of(*cut, parts, 3, 4) == target_of(*data, whole, 3, 4));
}

// The clean answers of the first 512 rows are scaled to a mean square of 2.08^2 = 4.3264. Noise of 0.1 adds 0.01, and
// 2 * 0.1 * 2.08 / sqrt(2048) = 0.0092 a standard deviation of it; five of them are allowed.
TEST_CASE("the teacher's outputs have the same size for every seed and model") {
  for (const int width : {1, 16, 300}) {
    for (const std::uint64_t seed : {1U, 2U, 3U}) {
      const TaskShape s = shape({operation(Input, 1, width)}, {operation(MeanSquare, 1, 4)});
      const auto data = get_from(tasks::catalog(), "task", "teacher").make(s, seed);
      double squares = 0;
      for (int row = 0; row < 512; ++row)
        for (const double y : target_of(*data, s, -1, row)) squares += y * y;
      CHECK(std::abs(squares / 2048 - 4.3364) < 5 * 0.0092);
    }
  }
}

// Each class is drawn with probability 1/10: 204.8 +- 13.6 of 2048. The sum of a picture is its dark pixels times a
// brightness of mean 1 and variance 0.6^2 / 12, plus noise of variance 64 * 0.35^2: at most 4.1 +- 0.35 for 136 of
// them.
TEST_CASE("every class of glyphs is drawn, with its share of dark pixels") {
  const int dark[] = {16, 13, 15, 15, 14, 17, 15, 11, 17, 15};
  const TaskShape s = fitting("glyph");
  const auto data = get_from(tasks::catalog(), "task", "glyph").make(s, 1);
  std::vector<int> counts(10, 0);
  std::vector<double> sums(10, 0);
  for (int row = 0; row < 2048; ++row) {
    const auto digit = static_cast<std::size_t>(target_of(*data, s, -1, row)[0]);
    ++counts[digit];
    for (const double pixel : input_of(*data, s, 0, -1, row)) sums[digit] += pixel;
  }
  for (std::size_t digit = 0; digit < 10; ++digit) {
    CHECK(std::abs(counts[digit] - 204.8) < 5 * 13.6);
    CHECK(std::abs(sums[digit] / counts[digit] - dark[digit]) < 5 * 0.35);
  }
}

TEST_CASE("charlm predicts the next character, and wraps around at the end of the text") {
  const TaskShape s = fitting("charlm");
  const auto data = get_from(tasks::catalog(), "task", "charlm").make(s, 1);
  for (int at = 0; at < 200; ++at) {
    const std::vector<double> text = input_of(*data, s, 0, at / 32, at % 32),
                              next = target_of(*data, s, at / 32, at % 32);
    CHECK(std::equal(text.begin() + 1, text.end(), next.begin()));
  }
  const std::int64_t last = data->evaluation_samples() - 1;
  CHECK(last == 108);  // 109 samples of 24 cover 2600 characters and 16 of the beginning again.
  const std::vector<double> end = target_of(*data, s, -1, last), start = input_of(*data, s, 0, -1, 0);
  CHECK(std::equal(end.end() - 17, end.end(), start.begin()));

  // Sentences have at most 33 characters for each "the", and of the words with a q "quick" and "quiet" are all.
  std::vector<double> characters;
  for (std::int64_t k = 0; k <= last; ++k)
    for (const double c : input_of(*data, s, 0, -1, k)) characters.push_back(c);
  const auto letter = [](char c) { return c == ' ' ? 0.0 : c - 'a' + 3.0; };
  int the = 0, q = 0, qu = 0;
  for (std::size_t i = 0; i + 3 < characters.size(); ++i) {
    the += characters[i] == letter(' ') && characters[i + 1] == letter('t') && characters[i + 2] == letter('h') &&
           characters[i + 3] == letter('e');
    q += characters[i] == letter('q');
    qu += characters[i] == letter('q') && characters[i + 1] == letter('u');
  }
  CHECK(the > 70);
  CHECK(q > 0);
  CHECK(q == qu);
}

TEST_CASE("every task has a name, a description and a source") {
  std::set<std::string_view> names;
  for (const TaskDef* task : tasks::catalog()) {
    CHECK(names.insert(task->name).second);
    CHECK_FALSE(task->summary.empty());
    CHECK_FALSE(task->source.empty());
  }
  CHECK(names == std::set<std::string_view>{"charlm", "glyph", "integers", "random", "teacher"});
}

}  // namespace stagecraft::tasks_test
