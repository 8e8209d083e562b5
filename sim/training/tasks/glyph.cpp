// The task `glyph`: ten digits of 5 x 7 pixels, somewhere in 8 x 8, brighter or darker, in noise. With these constants
// eight dense tanh layers of width 32, trained with momentum 0.9 at a rate of 0.01, come to a loss of about 0.5 after
// 600 updates of 32 samples: far enough to tell what stale weights cost.

#include <fmt/core.h>

#include <array>

#include "sim/training/random.hpp"
#include "sim/training/rows.hpp"

namespace stagecraft::tasks {
namespace {

constexpr int kSide = 8, kWidth = 5, kHeight = 7, kClasses = 10;
constexpr double kDarkest = 0.7, kBrightest = 1.3, kPixelNoise = 0.35;

constexpr std::array<std::string_view, kClasses> kDigits = {
    ".###."
    "#...#"
    "#...#"
    "#...#"
    "#...#"
    "#...#"
    ".###.",

    "..#.."
    ".##.."
    "#.#.."
    "..#.."
    "..#.."
    "..#.."
    "#####",

    "####."
    "....#"
    "....#"
    "..##."
    ".#..."
    "#...."
    "#####",

    "####."
    "....#"
    "....#"
    ".###."
    "....#"
    "....#"
    "####.",

    "...#."
    "..##."
    ".#.#."
    "#..#."
    "#####"
    "...#."
    "...#.",

    "#####"
    "#...."
    "#...."
    "####."
    "....#"
    "....#"
    "####.",

    "..##."
    ".#..."
    "#...."
    "####."
    "#...#"
    "#...#"
    ".###.",

    "#####"
    "....#"
    "...#."
    "...#."
    "..#.."
    "..#.."
    "..#..",

    ".###."
    "#...#"
    "#...#"
    ".###."
    "#...#"
    "#...#"
    ".###.",

    ".###."
    "#...#"
    "#...#"
    ".####"
    "....#"
    "...#."
    ".##..",
};

class Glyph final : public Rows {
 public:
  Glyph(const TaskShape& shape, std::uint64_t seed) : Rows(shape, seed), seed_(seed) {}

 protected:
  void inputs_of(std::int64_t row, std::span<double> out) const override {
    const std::string_view digit = kDigits[class_of(row)];
    Rng rng = stream(seed_, "glyph", {row});
    const int right = rng.integer(0, kSide - kWidth), down = rng.integer(0, kSide - kHeight);
    const double brightness = rng.uniform(kDarkest, kBrightest);
    for (double& pixel : out) pixel = kPixelNoise * normal(rng);
    for (int y = 0; y < kHeight; ++y)
      for (int x = 0; x < kWidth; ++x)
        if (digit[y * kWidth + x] == '#') out[(y + down) * kSide + x + right] += brightness;
  }

  void target_of(std::int64_t row, std::span<double> out) const override { out[0] = class_of(row); }

 private:
  int class_of(std::int64_t row) const { return stream(seed_, "glyph class", {row}).integer(0, kClasses - 1); }

  std::uint64_t seed_;
};

std::unique_ptr<Dataset> make_glyph(const TaskShape& shape, std::uint64_t seed) {
  constexpr const char* help = "such as {builder: mlp, widths: [64, 32, 10]}; or take the task random";
  need_numbers(shape, "glyph");
  const Operation& loss = one_loss(shape, "glyph");
  if (numbers(shape.inputs) != kSide * kSide)
    refuse("glyph", fmt::format("a picture has {} numbers, its input {}", kSide * kSide, numbers(shape.inputs)), help);
  if (loss.kind != OperationKind::CrossEntropy || loss.rows != 1 || loss.columns != kClasses)
    refuse("glyph", fmt::format("there are {} classes, its loss is {}", kClasses, to_text(loss)), help);
  return std::make_unique<Glyph>(shape, seed);
}

}  // namespace

extern const TaskDef glyph{
    .name = "glyph",
    .summary = "Ten digits in pictures of 8 x 8, moved, dimmed and in noise; 2048 samples",
    .source = "drawn for this project",
    .make = make_glyph,
};

}  // namespace stagecraft::tasks
