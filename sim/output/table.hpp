#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/config/columns.hpp"
#include "sim/core/json.hpp"
#include "sim/core/quantity.hpp"
#include "sim/output/text_layout.hpp"

namespace stagecraft {

/// One value of a table: what files hold, and what people read.
struct TableCell {
  std::optional<Json> value;  ///< Without one the cell is empty in CSV and has no member in JSON.
  std::string text;

  TableCell() = default;
  TableCell(Json in_files, std::string for_people) : value(std::move(in_files)), text(std::move(for_people)) {}
  TableCell(Json in_files) : value(std::move(in_files)) {}
  TableCell(std::string word) : value(word), text(std::move(word)) {}
  TableCell(const char* word) : TableCell(std::string(word)) {}
  TableCell(bool yes) : value(yes) {}
  TableCell(double number) : value(number) {}
  TableCell(std::signed_integral auto number) : value(number), text(std::to_string(number)) {}
  TableCell(Seconds time) : value(time.value), text(to_text(time)) {}
  TableCell(Bytes size) : value(size.value), text(to_text(size)) {}
};

enum class TextAlign { Right, Left };
enum class InFiles { Both, Csv, Json };
enum class InRows { Succeeded, Failed, All };

/// How a column is shown by each printer.
struct TableColumn {
  std::optional<FileColumn> key = {};  ///< The column in CSV and JSON; without one it is not in files.
  std::string heading = {};            ///< Its name in text; without one people do not see it.
  int width = 0;                       ///< Least width in text. A wider cell moves the rest of its row.
  TextAlign align = TextAlign::Right;
  bool widens = false;              ///< In text, as wide as its widest cell.
  int gap = 2;                      ///< Spaces before it in text.
  int drop_order = 0;               ///< Text leaves out the highest first where columns do not fit; 0: never left out.
  bool wraps = false;               ///< Text may continue the cells on the next line. For the last column.
  InFiles files = InFiles::Both;    ///< Which files have it.
  InRows rows = InRows::Succeeded;  ///< Which rows have it.
  bool quoted = false;              ///< In CSV in quotes even where they are not needed.
};

struct TableRow {
  std::vector<TableCell> cells;  ///< One for each column; cells of columns that the row does not have are ignored.
  std::string failure = {};      ///< Why there are no results. In text it stands in place of the columns of results.
  std::string note = {};         ///< In text, what follows the last column.
};

struct Table {
  std::vector<TableColumn> columns;
  std::vector<TableRow> rows;
  std::string more = {};  ///< In text, a line after the last row: "... and 16 more".
};

/// A column together with the function that computes its cells.
template <class Row>
struct TableColumnOf {
  TableColumn column;
  std::function<TableCell(const Row&)> cell;
};
template <class Row>
using TableColumns = std::vector<TableColumnOf<Row>>;

/// The columns of the parts one after the other.
template <class Row>
TableColumns<Row> joined_columns(std::initializer_list<TableColumns<Row>> parts) {
  TableColumns<Row> columns;
  for (const TableColumns<Row>& part : parts) columns.insert(columns.end(), part.begin(), part.end());
  return columns;
}

/// `failure` returns why a row has no results, or an empty string. The cells of results are not computed then.
template <class Row>
Table make_table(const TableColumns<Row>& columns, const std::vector<Row>& rows,
                 const std::function<std::string(const Row&)>& failure = {}) {
  Table table;
  for (const auto& c : columns) table.columns.push_back(c.column);
  for (const Row& row : rows) {
    TableRow& table_row = table.rows.emplace_back();
    if (failure) table_row.failure = failure(row);
    const InRows absent = table_row.failure.empty() ? InRows::Failed : InRows::Succeeded;
    for (const auto& c : columns) table_row.cells.push_back(c.column.rows == absent ? TableCell() : c.cell(row));
  }
  return table;
}

/// Whether the row has a cell in this column.
bool has(const TableRow&, const TableColumn&);

/// The line of headings and one line for each row, each with a line break at its end. If they are longer than the
/// layout permits, columns are left out by their `drop_order` and a line below names them.
std::string to_text(const Table&, const TextLayout& = {});
std::string headings_text(const Table&, const TextLayout& = {});
std::string rows_text(const Table&, const TextLayout& = {});

/// The columns of text as a table of Markdown.
std::string to_markdown(const Table&);
/// A tabular of LaTeX with the rules of the package booktabs.
std::string to_latex(const Table&);

/// The table with these columns in this order: headings of text, names in files, or the last word of a path that no
/// other column ends in. InputError for an unknown name. An empty list changes nothing.
Table select_columns(Table, const std::vector<std::string>& names);

/// The tables side by side, each with the first `repeated` columns, so that no line is longer than the layout permits
/// where that is possible.
std::vector<Table> split_columns(const Table&, std::size_t repeated, const TextLayout&);

/// The value of a cell without quotes around numbers, in base units.
std::string csv_text(const TableColumn&, const TableCell&);

/// A line of keys and one for each row.
std::string to_csv(const Table&);

/// An object for each row.
JsonArray to_json(const Table&);

/// The columns of to_csv().
std::vector<FileColumn> csv_columns(const Table&);
/// The members of an object of to_json(). Those that not every row has are optional.
config::MapSpec json_row(const Table&, std::string title);

}  // namespace stagecraft
