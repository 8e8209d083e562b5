#include "sim/experiment/imports/shell_words.hpp"

#include <cctype>
#include <map>

#include <fmt/core.h>

#include "sim/core/diagnostic.hpp"

namespace stagecraft {
namespace {

bool is_name_character(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

/// Words and variables of a script, and bytes that the values of its variables add to it. Values that contain each
/// other grow without end, so they are counted before they are written.
constexpr std::size_t kMostWords = 1 << 16, kMostAdded = 1 << 20;

class ShellReader {
 public:
  ShellReader(std::string_view text, const std::string& file) : text_(text), file_(file) {}

  std::vector<ShellWord> words() {
    while (at_ < text_.size()) step(text_[at_]);
    end_word();
    return std::move(words_);
  }

 private:
  void step(char c) {
    if (c == '\\' && at_ + 1 < text_.size()) {
      if (text_[at_ + 1] == '\n')
        end_word(), ++line_;
      else
        add(text_[at_ + 1]);
      at_ += 2;
    } else if (c == '\'' || c == '"') {
      quoted(c);
    } else if (c == '$') {
      variable(true);
    } else if (c == '#' && !in_word_) {
      while (at_ < text_.size() && text_[at_] != '\n') ++at_;
    } else if (std::isspace(static_cast<unsigned char>(c)) || c == '(' || c == ')' || c == ';' || c == '&' ||
               c == '|') {
      end_word();
      line_ += c == '\n';
      ++at_;
    } else {
      add(c);
      ++at_;
    }
  }

  void add(char c) { word_ += c, in_word_ = true; }

  void quoted(char quote) {
    in_word_ = true;
    for (++at_; at_ < text_.size() && text_[at_] != quote;) {
      line_ += text_[at_] == '\n';
      if (quote == '"' && text_[at_] == '$') {
        variable(false);
      } else {
        if (quote == '"' && text_[at_] == '\\' && at_ + 1 < text_.size()) line_ += text_[++at_] == '\n';
        add(text_[at_++]);
      }
    }
    if (at_ < text_.size()) ++at_;
  }

  /// $NAME, ${NAME}, ${NAME:-default}, and ${NAME[@]}, whose words stand where the array was written. `splits`: white
  /// space in the value ends words, as it does outside of quotes.
  void variable(bool splits) {
    const std::size_t start = at_++;
    const bool braces = at_ < text_.size() && text_[at_] == '{';
    if (braces) ++at_;
    const std::size_t name_start = at_;
    while (at_ < text_.size() && is_name_character(text_[at_])) ++at_;
    const std::string name(text_.substr(name_start, at_ - name_start));
    std::string rest;
    if (braces) {
      const std::size_t close = text_.find('}', at_);
      const std::size_t stop = close == std::string_view::npos ? text_.size() : close;
      rest = text_.substr(at_, stop - at_);
      at_ = stop == text_.size() ? stop : stop + 1;
    }
    in_word_ = true;
    if (rest == "[@]" || rest == "[*]") return;
    const auto entry = values_.find(name);
    std::string value(text_.substr(start, at_ - start));
    if (entry != values_.end() && rest.find('[') == std::string::npos)
      value = entry->second;
    else if (rest.starts_with(":-"))
      value = rest.substr(2);
    added_ += value.size();
    if (added_ > kMostAdded) refuse(fmt::format("the values of variables add more than {} bytes", kMostAdded));
    for (const char c : value)
      if (splits && std::isspace(static_cast<unsigned char>(c)) != 0)
        end_word();
      else
        add(c);
  }

  void end_word() {
    if (in_word_) {
      const std::size_t equals = word_.find('=');
      const bool assigns = equals != std::string::npos && equals > 0 && !word_.starts_with("-") &&
                           is_name_character(word_[0]) && word_.find_first_of("-. /") > equals;
      if (words_.size() + values_.size() >= kMostWords)
        refuse(fmt::format("there are more than {} words and variables", kMostWords));
      if (assigns)
        values_[word_.substr(0, equals)] = word_.substr(equals + 1);
      else if (!word_.empty())
        words_.push_back({std::move(word_), line_});
    }
    word_.clear();
    in_word_ = false;
  }

  [[noreturn]] void refuse(std::string message) const {
    throw InputError({{{file_, line_, 1}, {}, std::move(message), "write the arguments out", "import"}});
  }

  std::string_view text_;
  const std::string& file_;
  std::size_t at_ = 0, added_ = 0;
  int line_ = 1;
  bool in_word_ = false;
  std::string word_;
  std::vector<ShellWord> words_;
  std::map<std::string, std::string> values_;
};

}  // namespace

std::vector<ShellWord> shell_words(std::string_view script, const std::string& file) {
  return ShellReader(script, file).words();
}

}  // namespace stagecraft
