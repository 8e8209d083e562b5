// Writes a Table as CSV and as JSON rows, and lists the columns and fields that describe them; table_text.cpp writes it
// for people.

#include "sim/output/table.hpp"

#include "sim/core/text.hpp"

namespace stagecraft {
namespace {

/// The columns that files of one kind have: InFiles::Csv or InFiles::Json.
std::vector<std::size_t> columns_in(InFiles kind, const Table& table) {
  std::vector<std::size_t> list;
  for (std::size_t c = 0; c < table.columns.size(); ++c)
    if (table.columns[c].key && (table.columns[c].files == InFiles::Both || table.columns[c].files == kind))
      list.push_back(c);
  return list;
}

}  // namespace

bool has(const TableRow& row, const TableColumn& column) {
  return column.rows == InRows::All || (column.rows == InRows::Failed) == !row.failure.empty();
}

std::string csv_text(const TableColumn& column, const TableCell& cell) {
  if (!cell.value || cell.value->is_null()) return {};
  const Json& value = *cell.value;
  if (value.is_string()) return csv_cell(value.text(), column.quoted);
  if (value.is_number()) return value.is_whole() ? value.dump() : shortest(value.number());
  if (value.is_bool()) return value == Json(true) ? "1" : "0";
  return csv_cell(value.dump());
}

std::string to_csv(const Table& table) {
  const std::vector<std::size_t> shown = columns_in(InFiles::Csv, table);
  std::string text = csv_header(csv_columns(table));
  std::vector<std::string> words;
  for (const TableRow& row : table.rows) {
    words.clear();
    for (const std::size_t c : shown)
      words.push_back(has(row, table.columns[c]) ? csv_text(table.columns[c], row.cells[c]) : std::string());
    text += join(words, ",") + '\n';
  }
  return text;
}

JsonArray to_json(const Table& table) {
  const std::vector<std::size_t> shown = columns_in(InFiles::Json, table);
  JsonArray rows;
  for (const TableRow& row : table.rows) {
    JsonObject object;
    for (const std::size_t c : shown)
      if (has(row, table.columns[c]) && row.cells[c].value)
        object.push_back({table.columns[c].key->name(), *row.cells[c].value});
    rows.emplace_back(std::move(object));
  }
  return rows;
}

std::vector<FileColumn> csv_columns(const Table& table) {
  std::vector<FileColumn> columns;
  for (const std::size_t c : columns_in(InFiles::Csv, table)) columns.push_back(*table.columns[c].key);
  return columns;
}

config::MapSpec json_row(const Table& table, std::string title) {
  config::MapSpec spec{std::move(title), {}};
  for (const std::size_t c : columns_in(InFiles::Json, table)) {
    spec.fields.push_back(table.columns[c].key->field);
    if (table.columns[c].rows != InRows::All) spec.fields.back().optional();
  }
  return spec;
}

}  // namespace stagecraft
