// The task `charlm`: the next character of a text that a small grammar makes. A sample starts anywhere in the text,
// which is a ring.

#include <fmt/core.h>

#include <array>

#include "sim/core/text.hpp"
#include "sim/training/random.hpp"
#include "sim/training/rows.hpp"

namespace stagecraft::tasks {
namespace {

constexpr std::string_view kAlphabet = " .,abcdefghijklmnopqrstuvwxyz";
constexpr std::size_t kLength = 2600;

using WordList = std::array<std::string_view, 12>;
constexpr WordList kThings = {"pipe",  "valve", "river", "miller", "wheel",  "bucket",
                              "ferry", "crane", "smith", "kettle", "garden", "lantern"};
constexpr WordList kKinds = {"old",   "quick", "heavy", "quiet",  "brown",  "narrow",
                             "empty", "young", "plain", "wooden", "hidden", "bright"};
constexpr WordList kActs = {"fills", "turns", "lifts",  "waits for", "finds",  "carries",
                            "keeps", "opens", "leaves", "mends",     "paints", "follows"};
constexpr WordList kPlaces = {"by the mill",   "at noon",          "in the yard",    "over the hill",
                              "before dawn",   "under the bridge", "near the wall",  "without a word",
                              "every evening", "in the rain",      "with some care", "on the far side"};

std::string_view random_word(const WordList& words, Rng& rng) { return words[rng.integer(0, 11)]; }

std::string noun_phrase(Rng& rng) {
  const bool bare = rng.integer(0, 1) == 0;
  const std::string_view kind = bare ? "" : random_word(kKinds, rng);
  return fmt::format("the {}{}{}", kind, bare ? "" : " ", random_word(kThings, rng));
}

std::string clause(Rng& rng) {
  std::string text = noun_phrase(rng);
  text += fmt::format(" {} ", random_word(kActs, rng));
  return text += noun_phrase(rng);
}

std::string sentence(Rng& rng) {
  const int pattern = rng.integer(0, 2);
  if (pattern == 0) return clause(rng) + ". ";
  std::string text = clause(rng);
  if (pattern == 1) return text += fmt::format(" {}. ", random_word(kPlaces, rng));
  return text += ", and " + clause(rng) + ". ";
}

/// The text as places in the alphabet.
std::vector<double> text_of(std::uint64_t seed) {
  Rng rng(seed, "charlm");
  std::string text;
  while (text.size() < kLength) text += sentence(rng);
  std::vector<double> words;
  for (std::size_t i = 0; i < kLength; ++i) words.push_back(static_cast<double>(kAlphabet.find(text[i])));
  return words;
}

class CharLm final : public Dataset {
 public:
  CharLm(const TaskShape& shape, std::uint64_t seed)
      : text_(text_of(seed)), tokens_(shape.inputs.front().rows), epochs_(seed, kLength, shape.mini_batch) {}

  void input(int, int iteration, std::int64_t sample, std::span<double> out) const override {
    copy(start(iteration, sample), out);
  }
  void target(int iteration, std::int64_t sample, std::span<double> out) const override {
    copy(start(iteration, sample) + 1, out);
  }
  /// The whole text once.
  std::int64_t evaluation_samples() const override {
    return static_cast<std::int64_t>((kLength + tokens_ - 1) / tokens_);
  }

 private:
  std::size_t start(int iteration, std::int64_t sample) const {
    const std::size_t place = sample;
    return iteration < 0 ? place * tokens_ : static_cast<std::size_t>(epochs_.row(iteration, sample));
  }
  void copy(std::size_t start, std::span<double> out) const {
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = text_[(start + i) % kLength];
  }

  std::vector<double> text_;
  std::size_t tokens_;
  Epochs epochs_;
};

std::unique_ptr<Dataset> make_charlm(const TaskShape& shape, std::uint64_t seed) {
  constexpr const char* help = "take a gpt with a vocabulary of at least 29, or the task random";
  constexpr int characters = static_cast<int>(kAlphabet.size());
  const Operation& loss = one_loss(shape, "charlm");
  if (shape.inputs.size() != 1 || shape.inputs[0].inner == 0 || shape.inputs[0].columns != 1)
    refuse("charlm", "it needs one input, of one word a row", help);
  if (loss.kind != OperationKind::CrossEntropy || loss.rows != shape.inputs[0].rows)
    refuse("charlm", fmt::format("its loss is {}, not a class for each word", to_text(loss)), help);
  if (shape.inputs[0].inner < characters || loss.columns < characters)
    refuse("charlm",
           fmt::format("it knows {} and tells {} apart, but there are {} characters",
                       pluralize(shape.inputs[0].inner, "word"), loss.columns, characters),
           help);
  return std::make_unique<CharLm>(shape, seed);
}

}  // namespace

extern const TaskDef charlm{
    .name = "charlm",
    .summary = "The next character of 2600 that a small grammar makes",
    .source = "written for this project",
    .make = make_charlm,
};

}  // namespace stagecraft::tasks
