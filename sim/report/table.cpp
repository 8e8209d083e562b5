#include "sim/report/table.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "sim/core/text.hpp"

namespace stagecraft {
namespace {

bool has(const TableRow& row, const TableColumn& column) {
  return column.rows == InRows::All || (column.rows == InRows::Failed) == !row.failure.empty();
}

std::string padded(const TableColumn& column, const std::string& text) {
  const std::string gap(column.gap, ' ');
  return gap + (column.align == TextAlign::Left ? fmt::format("{:<{}}", text, column.width)
                                                : fmt::format("{:>{}}", text, column.width));
}

/// The columns for people, where those that widen have the width of their widest cell.
std::vector<std::pair<std::size_t, TableColumn>> text_columns(const Table& table) {
  std::vector<std::pair<std::size_t, TableColumn>> columns;
  for (std::size_t c = 0; c < table.columns.size(); ++c) {
    TableColumn column = table.columns[c];
    if (column.heading.empty()) continue;
    if (column.widens)
      for (const TableRow& row : table.rows)
        column.width = std::max(column.width, static_cast<int>(printable(row.cells[c].text).size()));
    columns.emplace_back(c, std::move(column));
  }
  return columns;
}

std::string csv_text(const TableColumn& column, const TableCell& cell) {
  if (!cell.value || cell.value->is_null()) return {};
  const Json& value = *cell.value;
  if (value.is_string()) return csv_cell(value.text(), column.quoted);
  if (value.is_number()) return value.is_whole() ? value.dump() : shortest(value.number());
  if (value.is_bool()) return value == Json(true) ? "1" : "0";
  return csv_cell(value.dump());
}

}  // namespace

std::string headings_text(const Table& table) {
  std::string text;
  for (const auto& [c, column] : text_columns(table)) text += padded(column, column.heading);
  return text + '\n';
}

std::string rows_text(const Table& table) {
  const auto columns = text_columns(table);
  std::string text;
  for (const TableRow& row : table.rows) {
    for (const auto& [c, column] : columns)
      if (has(row, column)) text += padded(column, printable(row.cells[c].text));
    if (!row.failure.empty()) text += "  " + printable(row.failure);
    text += row.note + '\n';
  }
  return text;
}

std::string to_text(const Table& table) { return headings_text(table) + rows_text(table); }

std::string to_csv(const Table& table) {
  std::vector<std::size_t> shown;
  std::vector<std::string> words;
  for (std::size_t c = 0; c < table.columns.size(); ++c) {
    const TableColumn& column = table.columns[c];
    if (column.key.empty() || column.files == InFiles::Json) continue;
    shown.push_back(c);
    words.push_back(csv_cell(column.key));
  }
  std::string text = join(words, ",") + '\n';
  for (const TableRow& row : table.rows) {
    words.clear();
    for (const std::size_t c : shown)
      words.push_back(has(row, table.columns[c]) ? csv_text(table.columns[c], row.cells[c]) : std::string());
    text += join(words, ",") + '\n';
  }
  return text;
}

JsonArray to_json(const Table& table) {
  JsonArray rows;
  for (const TableRow& row : table.rows) {
    JsonObject object;
    for (std::size_t c = 0; c < table.columns.size(); ++c) {
      const TableColumn& column = table.columns[c];
      if (column.key.empty() || column.files == InFiles::Csv || !has(row, column) || !row.cells[c].value) continue;
      object.push_back({column.key, *row.cells[c].value});
    }
    rows.emplace_back(std::move(object));
  }
  return rows;
}

}  // namespace stagecraft
