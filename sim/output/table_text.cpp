// Writes a Table as text that fits the terminal, by dropping, shortening and wrapping columns; as Markdown, as LaTeX,
// and as several narrower tables for `compare` and `reproduce`.

#include <algorithm>
#include <utility>

#include <fmt/core.h>

#include "sim/core/text.hpp"
#include "sim/output/table.hpp"

namespace stagecraft {
namespace {

constexpr std::size_t kLeastWrapped = 24, kLeastShortened = 12;

/// A column of text with its place in the table and the width of its widest line.
struct TextColumn {
  std::size_t index = 0;
  TableColumn column;
  std::size_t widest = 0;
};

struct FittedColumns {
  std::vector<TextColumn> columns;
  std::vector<std::string> dropped;  ///< Headings.
};

/// The columns for people, where those that widen have the width of their widest cell.
std::vector<TextColumn> text_columns(const Table& table) {
  std::vector<TextColumn> columns;
  for (std::size_t c = 0; c < table.columns.size(); ++c) {
    TextColumn shown{.index = c, .column = table.columns[c]};
    if (shown.column.heading.empty()) continue;
    std::size_t widest_cell = 0;
    for (const TableRow& row : table.rows)
      if (has(row, shown.column)) widest_cell = std::max(widest_cell, display_width(printable(row.cells[c].text)));
    const auto min_width = static_cast<int>(std::max(widest_cell, display_width(shown.column.heading)));
    if (shown.column.widens) shown.column.width = std::max(shown.column.width, min_width);
    shown.widest =
        std::max({widest_cell, static_cast<std::size_t>(shown.column.width), display_width(shown.column.heading)});
    columns.push_back(std::move(shown));
  }
  return columns;
}

std::size_t needed_width(const TextColumn& c) {
  return c.column.gap + (c.column.wraps ? std::min(c.widest, kLeastWrapped) : c.widest);
}

std::size_t needed_width(const std::vector<TextColumn>& columns) {
  std::size_t width = 0;
  for (const TextColumn& c : columns) width += needed_width(c);
  return width;
}

/// Makes the widest column with words narrower, by as much as is missing.
void shorten_words(std::vector<TextColumn>& columns, std::size_t limit) {
  const std::size_t width = needed_width(columns);
  if (width <= limit) return;
  TextColumn* words = nullptr;
  for (TextColumn& c : columns)
    if (c.column.align == TextAlign::Left && !c.column.wraps && (!words || c.widest > words->widest)) words = &c;
  if (!words) return;
  const std::size_t excess = width - limit,
                    lower_bound = std::max(kLeastShortened, display_width(words->column.heading));
  words->widest = std::max(lower_bound, words->widest - std::min(words->widest, excess));
  words->column.width = std::min(words->column.width, static_cast<int>(words->widest));
}

FittedColumns fit(const Table& table, const TextLayout& layout) {
  FittedColumns fitted{.columns = text_columns(table), .dropped = {}};
  if (layout.width <= 0 || !layout.columns.empty()) return fitted;
  const std::size_t limit = layout.width;
  std::vector<TextColumn>& columns = fitted.columns;
  while (needed_width(columns) > limit) {
    const auto first = std::max_element(columns.begin(), columns.end(), [](const TextColumn& a, const TextColumn& b) {
      return a.column.drop_order < b.column.drop_order;
    });
    if (first == columns.end() || first->column.drop_order == 0) break;
    fitted.dropped.push_back(first->column.heading);
    columns.erase(first);
  }
  shorten_words(columns, limit);
  return fitted;
}

std::string padded(const TextColumn& c, const std::string& text) {
  const std::string gap(c.column.gap, ' ');
  const std::size_t width = display_width(text), min_width = std::max(c.column.width, 0);
  const std::string padding(width < min_width ? min_width - width : 0, ' ');
  return gap + (c.column.align == TextAlign::Left ? text + padding : padding + text);
}

std::string cell_text(const TextColumn& c, const TableRow& row) {
  const std::string text = printable(row.cells[c.index].text);
  return c.column.wraps ? text : shorten(text, c.widest);
}

std::string headings_line(const std::vector<TextColumn>& columns, const TextLayout& layout) {
  std::string text;
  for (const TextColumn& c : columns) text += padded(c, c.column.heading);
  text.erase(text.find_last_not_of(' ') + 1);
  return colored(layout, text_color::kBold, std::move(text)) + '\n';
}

std::string row_lines(const std::vector<TextColumn>& columns, const TableRow& row, const TextLayout& layout) {
  std::string line;
  std::size_t last_begin = 2;
  for (const TextColumn& c : columns)
    if (has(row, c.column)) {
      last_begin = display_width(line) + c.column.gap;
      line += padded(c, cell_text(c, row));
    }
  if (!row.failure.empty()) {
    last_begin = display_width(line) + 4;  // After "  - ".
    line += "  " + colored(layout, text_color::kRed, printable(row.failure));
  }
  const std::size_t note_end = std::min(row.note.find('\n'), row.note.size());
  line += row.note.substr(0, note_end);
  line.erase(line.find_last_not_of(' ') + 1);  // The last cell may be empty.
  // Columns that were chosen may be wider than the terminal; only words that follow them are wrapped.
  const bool fits = row.failure.empty() && row.note.empty() && (columns.empty() || !columns.back().column.wraps);
  const std::size_t limit = std::max(layout.width, 0);
  if (!fits) line = wrap_line(line, limit, std::min(last_begin, limit / 2));
  return line + wrap_lines(row.note.substr(note_end), layout.width) + '\n';
}

std::string rows_lines(const Table& table, const FittedColumns& fitted, const TextLayout& layout) {
  std::string text;
  for (const TableRow& row : table.rows) text += row_lines(fitted.columns, row, layout);
  if (!table.more.empty()) text += "  " + table.more + '\n';
  if (fitted.dropped.empty()) return text;
  const std::string hint = fmt::format("columns not shown: {} (--wide, or --columns)", join(fitted.dropped));
  return text + colored(layout, text_color::kDim, wrap_line(hint, layout.width, 2)) + '\n';
}

std::string markdown_cell(std::string_view text) {
  std::string cell;
  for (const char c : printable(trim(text))) cell += c == '|' ? std::string("\\|") : std::string(1, c);
  return cell;
}

std::string latex_cell(std::string_view text) {
  std::string cell;
  for (const char c : printable(trim(text))) {
    if (c == '\\')
      cell += "\\textbackslash{}";
    else if (c == '~' || c == '^')
      cell += fmt::format("\\{}{{}}", c);
    else if (std::string_view("&%$#_{}").find(c) != std::string_view::npos)
      cell += std::string("\\") + c;
    else
      cell += c;
  }
  // Characters that plain pdfLaTeX lacks or sets badly.
  constexpr std::pair<std::string_view, std::string_view> kCharacters[] = {
      {"\u00b1", "$\\pm$"}, {"\u00b7", "$\\cdot$"}, {"\u00d7", "$\\times$"}, {" x ", " $\\times$ "}};
  for (const auto& [character, command] : kCharacters)
    for (auto at = cell.find(character); at != cell.npos; at = cell.find(character, at + command.size()))
      cell.replace(at, character.size(), command);
  return cell;
}

}  // namespace

std::string headings_text(const Table& table, const TextLayout& layout) {
  return headings_line(fit(table, layout).columns, layout);
}

std::string rows_text(const Table& table, const TextLayout& layout) {
  return rows_lines(table, fit(table, layout), layout);
}

std::string to_text(const Table& table, const TextLayout& layout) {
  const Table selected = select_columns(table, layout.columns);
  const FittedColumns fitted = fit(selected, layout);
  return headings_line(fitted.columns, layout) + rows_lines(selected, fitted, layout);
}

std::string to_markdown(const Table& table) {
  const std::vector<TextColumn> columns = text_columns(table);
  std::string text = "|", rule = "|";
  for (const TextColumn& c : columns) {
    text += fmt::format(" {} |", markdown_cell(c.column.heading));
    rule += c.column.align == TextAlign::Left ? " --- |" : " ---: |";
  }
  text += '\n' + rule + '\n';
  for (const TableRow& row : table.rows) {
    text += '|';
    std::string failure = row.failure;
    for (const TextColumn& c : columns) {
      text += fmt::format(" {} |", markdown_cell(has(row, c.column) ? row.cells[c.index].text : failure));
      if (!has(row, c.column)) failure.clear();  // Written once, in the first column without a result.
    }
    text += '\n';
  }
  return text;
}

std::string to_latex(const Table& table) {
  const std::vector<TextColumn> columns = text_columns(table);
  std::string alignment, head, body;
  for (const TextColumn& c : columns) {
    alignment += c.column.align == TextAlign::Left ? 'l' : 'r';
    head += fmt::format("{}{}", head.empty() ? "" : " & ", latex_cell(c.column.heading));
  }
  for (const TableRow& row : table.rows) {
    std::string line, failure = row.failure;
    for (const TextColumn& c : columns) {
      line += fmt::format("{}{}", &c == &columns.front() ? "" : " & ",
                          latex_cell(has(row, c.column) ? row.cells[c.index].text : failure));
      if (!has(row, c.column)) failure.clear();  // Written once, in the first column without a result.
    }
    body += line + " \\\\\n";
  }
  return fmt::format(
      "% \\usepackage{{booktabs}}\n\\begin{{tabular}}{{{}}}\n\\toprule\n{} "
      "\\\\\n\\midrule\n{}\\bottomrule\n\\end{{tabular}}\n",
      alignment, head, body);
}

std::vector<Table> split_columns(const Table& table, std::size_t repeated, const TextLayout& layout) {
  const std::vector<TextColumn> columns = text_columns(table);
  if (layout.width <= 0 || columns.size() <= repeated) return {table};
  const std::vector<TextColumn> names(columns.begin(), columns.begin() + static_cast<std::ptrdiff_t>(repeated));
  const std::size_t names_width = needed_width(names);
  std::vector<std::vector<std::size_t>> parts;
  std::size_t width = 0;
  for (std::size_t c = repeated; c < columns.size(); ++c) {
    const std::size_t added = needed_width(columns[c]);
    if (parts.empty() || std::cmp_greater(width + added, layout.width)) {
      parts.emplace_back();
      width = names_width;
    }
    parts.back().push_back(columns[c].index);
    width += added;
  }
  std::vector<Table> tables;
  for (const std::vector<std::size_t>& part : parts) {
    std::vector<std::size_t> places;
    for (const TextColumn& c : names) places.push_back(c.index);
    places.insert(places.end(), part.begin(), part.end());
    Table& split = tables.emplace_back();
    for (const std::size_t place : places) split.columns.push_back(table.columns[place]);
    for (const TableRow& row : table.rows) {
      TableRow& copy = split.rows.emplace_back(TableRow{{}, row.failure, &part == &parts.back() ? row.note : ""});
      for (const std::size_t place : places) copy.cells.push_back(row.cells[place]);
    }
  }
  return tables;
}

}  // namespace stagecraft
