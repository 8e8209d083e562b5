// The options --wide, --columns, --color, --details and --label of commands that print tables, the width and color of
// the terminal, and tables in the format that --format names.

#include "tools/stagecraft/table_options.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include <fmt/core.h>

#include "sim/core/diagnostic.hpp"
#include "sim/core/from_chars.hpp"
#include "sim/core/text.hpp"

namespace stagecraft {
namespace {

constexpr int kNarrowest = 40, kWidest = 10000;

/// COLUMNS of the environment; 0 if it is not set, or is not a width.
int columns_of_environment() {
  const char* word = std::getenv("COLUMNS");
  if (word == nullptr) return 0;
  int columns = 0;
  const auto [end, error] = from_chars(word, word + std::strlen(word), columns);
  return error == std::errc{} && *end == '\0' && columns > 0 ? std::clamp(columns, kNarrowest, kWidest) : 0;
}

int columns_of_terminal() {
  winsize size{};
  if (isatty(STDOUT_FILENO) == 0 || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 0;
  return std::max<int>(size.ws_col, kNarrowest);
}

/// A terminal that has color, unless NO_COLOR (no-color.org) is set to anything but the empty string.
bool color_is_usual() {
  const char *no_color = std::getenv("NO_COLOR"), *terminal = std::getenv("TERM");
  if (no_color != nullptr && *no_color != '\0') return false;
  return isatty(STDOUT_FILENO) != 0 && terminal != nullptr && std::strcmp(terminal, "dumb") != 0;
}

bool color_of(const std::string& word) {
  const std::vector<std::string> words{"auto", "always", "never"};
  if (std::find(words.begin(), words.end(), word) == words.end())
    throw InputError(fmt::format("--color: '{}' is not known here", word), suggest(word, words));
  return word == "always" || (word == "auto" && color_is_usual());
}

Argument wide_argument() {
  return {"--wide", Argument::Kind::Flag,
          "Print all columns (default: what fits in COLUMNS or the terminal, and all where the output is no terminal)"};
}

Argument columns_argument() {
  return {"--columns", Argument::Kind::Text,
          "Columns of the table with commas between, in this order: headings, or names of the CSV"};
}

Argument color_argument() {
  return {"--color", Argument::Kind::Text, "auto, always or never; auto: on a terminal, if NO_COLOR is not set",
          "auto"};
}

}  // namespace

std::vector<Argument> table_arguments() { return {wide_argument(), columns_argument(), color_argument()}; }

std::vector<Argument> with_table_arguments(std::vector<Argument> arguments) {
  for (Argument& a : table_arguments()) arguments.push_back(std::move(a));
  return arguments;
}

std::vector<Argument> with_width_arguments(std::vector<Argument> arguments) {
  arguments.push_back(wide_argument());
  arguments.push_back(color_argument());
  return arguments;
}

Argument details_argument(const std::string& what) {
  return {"--details", Argument::Kind::Flag, "Print " + what + " too"};
}

std::map<std::string, std::string> labels_of(const Arguments& a, const std::string& example) {
  std::map<std::string, std::string> labels;
  for (const std::string& given : a.list("label")) {
    const std::size_t at = given.find('=');
    if (at == std::string::npos || at == 0)
      throw InputError(fmt::format("--label: '{}' names no path", given), "--label " + example);
    labels[given.substr(0, at)] = given.substr(at + 1);
  }
  return labels;
}

TextLayout layout_of(const Arguments& a) {
  TextLayout layout{.color = color_of(a.text("color"))};
  if (a.has("columns"))
    for (const std::string& word : split(a.text("columns"), ',')) layout.columns.emplace_back(trim(word));
  if (a.flag("wide")) return layout;
  layout.width = text_width();
  return layout;
}

int text_width() {
  const int asked = columns_of_environment();
  return asked > 0 ? asked : columns_of_terminal();
}

void check_table_format(const Arguments& a, const std::vector<std::string>& formats) {
  std::vector<std::string> all_formats = formats;
  all_formats.emplace_back("latex");
  check_format(a.text("format"), all_formats);
  if (a.has("columns") && a.text("format") == "json")
    throw InputError("--columns chooses columns of a table, and json has objects with all members",
                     std::find(formats.begin(), formats.end(), "csv") == formats.end()
                         ? "leave out --columns"
                         : "--format csv, or leave out --columns");
}

std::string table_in_format(const Table& table, const std::string& format, const TextLayout& layout) {
  const Table selected = select_columns(table, layout.columns);
  return format == "csv" ? to_csv(selected) : format == "latex" ? to_latex(selected) : to_markdown(selected);
}

void print_text(std::string_view text, const TextLayout& layout) {
  if (!layout.color) return print(text);
  print_with(text, {text_color::kBold, text_color::kDim, text_color::kRed, text_color::kReset});
}

}  // namespace stagecraft
