// Writes out the layouts of Megatron-LM (--pipeline-model-parallel-layout), with a letter for each part: E for the
// embedding, t for a layer, m for a module of the token after next, L for scores and loss; | between stages; *N repeats
// a letter or a group in parentheses; commas mean nothing. "Et*3|(tt|)*29,m|L" has 32 stages.

#include "sim/plan/layout_letters.hpp"

#include <string_view>

#include <fmt/core.h>

#include "sim/core/text.hpp"

namespace stagecraft {
namespace {

class LayoutReader {
 public:
  LayoutReader(const std::string& text, const std::function<void(std::size_t, const std::string&)>& refuse)
      : text_(text), refuse_(refuse) {}

  std::string letters() { return sequence(false); }

 private:
  static constexpr int kDeepest = 100;

  std::string sequence(bool inside) {
    constexpr std::size_t kMostLetters = 1 << 20;
    std::string letters;
    while (at_ < text_.size() && text_[at_] != ')') {
      const char c = text_[at_++];
      if (c == ',' || c == ' ') continue;
      std::string one(1, c);
      if (c == '(') {
        if (++depth_ > kDeepest) refuse_(at_ - 1, "parentheses are nested too deep");
        one = sequence(true);
        --depth_;
        ++at_;
      } else if (std::string_view("EtmL|").find(c) == std::string_view::npos) {
        refuse_(at_ - 1, fmt::format("'{}' is no part of a layout", c));
      }
      const int times = repetition();
      if (one.size() * times + letters.size() > kMostLetters) refuse_(at_ - 1, "there are too many letters");
      for (int i = 0; i < times; ++i) letters += one;
    }
    if (inside && at_ >= text_.size()) refuse_(text_.size() - 1, "a parenthesis is not closed");
    if (!inside && at_ < text_.size()) refuse_(at_, "a parenthesis was not opened");
    return letters;
  }

  int repetition() {
    if (at_ >= text_.size() || text_[at_] != '*') return 1;
    const std::size_t star = at_++;
    std::string digits;
    while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9') digits += text_[at_++];
    if (digits.empty() || digits.size() > 6 || std::stoi(digits) == 0)
      refuse_(star, "a number from 1 on has to follow");
    return std::stoi(digits);
  }

  const std::string& text_;
  const std::function<void(std::size_t, const std::string&)>& refuse_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

std::vector<std::string> stages_of_layout(const std::string& text,
                                          const std::function<void(std::size_t, const std::string&)>& refuse) {
  return split(LayoutReader(text, refuse).letters(), '|');
}

}  // namespace stagecraft
