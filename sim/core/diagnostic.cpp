// Renders problems for people, with the source line and a caret, and makes the errors InputError and Infeasible of
// them.

#include "sim/core/diagnostic.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <string_view>
#include <tuple>
#include <utility>

#include <fmt/core.h>

#include "sim/core/text.hpp"

namespace stagecraft {
namespace {

constexpr std::size_t kMostShown = 20;
constexpr int kWidestLine = 160, kBeforeCaret = 60;
constexpr std::string_view kHelp = "      = help: ";

struct Snippet {
  std::string line;
  int column;
};

bool continues_character(char c) { return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U; }

int characters(const std::string& text) {
  return static_cast<int>(text.size() - std::count_if(text.begin(), text.end(), continues_character));
}

// A place such as "<--set a=b>" is its own source; its columns start after the option's name.
std::optional<Snippet> snippet_of(const Where& where) {
  if (where.line < 1) return {};
  Snippet snippet{{}, where.column};
  if (where.file.size() > 2 && where.file.front() == '<' && where.file.back() == '>') {
    std::istringstream in(where.file.substr(1, where.file.size() - 2));
    for (int i = 0; i < where.line; ++i)
      if (!std::getline(in, snippet.line)) return {};
    const std::size_t space = snippet.line.find(' ');
    if (where.line == 1 && snippet.line.starts_with("--") && space != std::string::npos) {
      snippet.column += static_cast<int>(space) + 1;
    }
    if (snippet.column > characters(snippet.line) + 1) return {};  // A very long source is cut.
    return snippet;
  }
  std::error_code none;
  if (!std::filesystem::is_regular_file(where.file, none)) return {};  // A pipe would be waited for.
  std::ifstream in(where.file);
  for (int i = 0; i < where.line; ++i)
    if (!std::getline(in, snippet.line)) return {};
  return snippet;
}

void narrow(Snippet& snippet) {
  std::vector<std::size_t> starts;  // Byte offset of each character.
  for (std::size_t i = 0; i < snippet.line.size(); ++i)
    if (!continues_character(snippet.line[i])) starts.push_back(i);
  const int length = static_cast<int>(starts.size());
  if (length <= kWidestLine) return;
  const int first = std::clamp(snippet.column - 1 - kBeforeCaret, 0, length - kWidestLine), last = first + kWidestLine;
  starts.push_back(snippet.line.size());
  const std::size_t from = starts[first], to = starts[last];
  snippet.line = (first > 0 ? "..." : "") + snippet.line.substr(from, to - from) + (last < length ? "..." : "");
  snippet.column += (first > 0 ? 3 : 0) - first;
}

// The space before the caret has one column for every character of the line, and its tabs.
std::string caret_line(const Snippet& snippet) {
  std::string text;
  int column = 1;
  for (const char c : snippet.line) {
    if (column >= snippet.column) break;
    if (continues_character(c)) continue;
    text += c == '\t' ? '\t' : ' ';
    ++column;
  }
  text.append(std::max(0, snippet.column - column), ' ');
  return text + '^';
}

std::string place_of(const Where& where) {
  const std::string file = printable(where.file);
  if (where.line > 0) return fmt::format("{}:{}:{}: ", file, where.line, where.column);
  return file.empty() ? "" : file + ": ";
}

Diagnostic without_place(std::string message, std::string help) {
  Diagnostic problem;
  problem.message = std::move(message);
  problem.help = std::move(help);
  return problem;
}

}  // namespace

namespace {

/// A word of a hostile file may have megabytes. The begin and the end of a long message say enough.
std::string elided(const std::string& message) {
  constexpr std::size_t kMost = 4000, kBegin = 3000, kEnd = 500;
  if (message.size() <= kMost) return message;
  const std::size_t omitted = message.size() - kBegin - kEnd;
  return fmt::format("{} [{} bytes are not shown] {}", message.substr(0, kBegin), omitted,
                     message.substr(message.size() - kEnd));
}

}  // namespace

std::string full_message(const Diagnostic& problem) {
  return problem.detail.empty() ? problem.message : problem.message + ": " + problem.detail;
}

std::string render(const Diagnostic& problem) {
  std::string text = place_of(problem.where) + "error: ";
  if (!problem.path.empty()) text += printable(problem.path) + ": ";
  text += printable(elided(full_message(problem)));
  if (problem.more > 0) text += fmt::format("; and {} more like these", problem.more);
  if (auto snippet = snippet_of(problem.where)) {
    if (!snippet->line.empty() && snippet->line.back() == '\r') snippet->line.pop_back();
    narrow(*snippet);
    text += fmt::format("\n{:>5} | {}\n      | {}", problem.where.line, replace_unprintable(snippet->line),
                        caret_line(*snippet));
  }
  if (!problem.help.empty()) text += fmt::format("\n{}{}", kHelp, printable(problem.help));
  return text;
}

std::string render(std::vector<Diagnostic> problems) {
  const auto place = [](const Diagnostic& d) { return std::tie(d.where.file, d.where.line, d.where.column); };
  std::stable_sort(problems.begin(), problems.end(),
                   [&](const Diagnostic& a, const Diagnostic& b) { return place(a) < place(b); });
  std::string text;
  for (std::size_t i = 0; i < std::min(problems.size(), kMostShown); ++i) text += render(problems[i]) + '\n';
  std::size_t count = problems.size();
  for (const Diagnostic& d : problems) count += d.more;
  if (count == 1) {
    text.pop_back();
  } else {
    text += fmt::format("{} problems found", count);
    if (problems.size() > kMostShown) text += fmt::format(", the first {} are shown", kMostShown);
  }
  return text;
}

InputError::InputError(std::vector<Diagnostic> problems)
    : std::runtime_error(render(problems)), problems_(std::move(problems)) {}

InputError::InputError(std::string message, std::string help)
    : InputError(std::vector<Diagnostic>{without_place(std::move(message), std::move(help))}) {}

Infeasible::Infeasible(std::string code, const std::string& message, const std::string& help, const std::string& detail)
    : Infeasible(Diagnostic{{}, {}, message, help, std::move(code), 0, detail}) {}

Infeasible::Infeasible(Diagnostic problem)
    : std::runtime_error(printable(full_message(problem)) +
                         (problem.help.empty() ? "" : fmt::format("\n{}{}", kHelp, printable(problem.help)))),
      problem_(std::move(problem)) {}

}  // namespace stagecraft
