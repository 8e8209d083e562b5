// Evaluates what stands in `$((...))`: whole numbers up to 1e15 with + - * / % and parentheses, otherwise nothing;
// shell_words.cpp calls it.

#include "sim/interchange/imports/shell_arithmetic.hpp"

#include <cmath>
#include <cstdlib>

namespace stagecraft {
namespace {

constexpr std::int64_t kLargest = 1'000'000'000'000'000;  // Counts of tokens have such numbers; sums of two fit.
constexpr int kDeepestArithmetic = 100;

class ArithmeticReader {
 public:
  explicit ArithmeticReader(std::string_view text) : text_(text) {}

  std::optional<std::int64_t> value() {
    const std::int64_t result = sum();
    if (peek() != '\0') valid_ = false;
    return valid_ ? std::optional(result) : std::nullopt;
  }

 private:
  char peek() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t')) ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }

  std::int64_t checked(std::int64_t value) {
    if (value > kLargest || value < -kLargest) valid_ = false;
    return valid_ ? value : 0;
  }

  std::int64_t sum() {
    std::int64_t result = product();
    while (valid_ && (peek() == '+' || peek() == '-')) {
      const bool adds = text_[at_++] == '+';
      const std::int64_t other = product();
      result = checked(result + (adds ? other : -other));
    }
    return result;
  }

  std::int64_t product() {
    std::int64_t result = term();
    while (valid_ && (peek() == '*' || peek() == '/' || peek() == '%')) {
      const char sign = text_[at_++];
      const std::int64_t other = term();
      if (sign == '*') {
        if (std::abs(static_cast<double>(result) * static_cast<double>(other)) > kLargest) valid_ = false;
        result = valid_ ? result * other : 0;
      } else if (other == 0) {
        valid_ = false;
      } else {
        result = sign == '/' ? result / other : result % other;
      }
    }
    return result;
  }

  std::int64_t term() {
    const char c = peek();
    if (++depth_ > kDeepestArithmetic) valid_ = false;
    std::int64_t result = 0;
    if (valid_ && (c == '-' || c == '+')) {
      ++at_;
      result = c == '-' ? -term() : term();
    } else if (valid_ && c == '(') {
      ++at_;
      result = sum();
      if (peek() != ')') valid_ = false;
      ++at_;
    } else {
      result = number();
    }
    --depth_;
    return result;
  }

  std::int64_t number() {
    const std::size_t start = at_;
    std::int64_t result = 0;
    while (valid_ && at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9')
      result = checked(10 * result + (text_[at_++] - '0'));
    if (at_ == start) valid_ = false;
    return valid_ ? result : 0;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  int depth_ = 0;
  bool valid_ = true;
};

}  // namespace

std::optional<std::int64_t> shell_arithmetic(std::string_view text) { return ArithmeticReader(text).value(); }

}  // namespace stagecraft
