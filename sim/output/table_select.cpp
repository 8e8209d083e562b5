// Selects and orders columns of a Table by their headings or their names in files, for `--columns`.

#include <algorithm>
#include <cctype>

#include <fmt/core.h>

#include "sim/core/diagnostic.hpp"
#include "sim/core/text.hpp"
#include "sim/output/table.hpp"

namespace stagecraft {
namespace {

/// Lower case, with spaces for hyphens and underscores.
std::string comparable(std::string_view name) {
  std::string text(trim(name));
  for (char& c : text) c = c == '-' || c == '_' ? ' ' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

/// The place of the column with this heading, else with this name in files.
std::optional<std::size_t> find_column(const Table& table, const std::string& name) {
  const std::string wanted = comparable(name);
  for (std::size_t c = 0; c < table.columns.size(); ++c)
    if (comparable(table.columns[c].heading) == wanted && !wanted.empty()) return c;
  std::optional<std::size_t> match;
  for (std::size_t c = 0; c < table.columns.size(); ++c)
    if (table.columns[c].key && comparable(table.columns[c].key->name()) == wanted)
      if (!match || table.columns[c].files != InFiles::Json) match = c;
  if (match) return match;
  const auto ends_so = [&](const TableColumn& c) { return c.key && comparable(c.key->name()).ends_with("." + wanted); };
  const auto first = std::find_if(table.columns.begin(), table.columns.end(), ends_so);
  if (first == table.columns.end() || std::any_of(first + 1, table.columns.end(), ends_so)) return {};
  return first - table.columns.begin();
}

/// A value of a file for people, with its unit and four digits.
std::string rounded_text(const TableColumn& column, const TableCell& cell) {
  if (!cell.value || !cell.value->is_number() || cell.value->is_whole()) return csv_text(column, cell);
  const double value = cell.value->number();
  if (column.key->unit == "s") return to_text(Seconds{value});
  if (column.key->unit == "bytes") return to_text(Bytes{value});
  return fmt::format("{:.4g}", value);
}

/// Names that select_columns() accepts.
std::vector<std::string> column_names(const Table& table) {
  std::vector<std::string> names;
  const auto add = [&](const std::string& name) {
    if (!trim(name).empty() && std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  };
  for (const TableColumn& c : table.columns) add(c.heading);
  for (const TableColumn& c : table.columns)
    if (c.key) add(c.key->name());
  return names;
}

}  // namespace

Table select_columns(Table table, const std::vector<std::string>& names) {
  if (names.empty()) return table;
  Table selected;
  selected.more = table.more;
  std::vector<std::size_t> places;
  for (const std::string& name : names) {
    const std::optional<std::size_t> place = find_column(table, name);
    if (!place)
      throw InputError(fmt::format("--columns: the table has no column '{}'", name),
                       closest(name, column_names(table)) ? suggest(name, column_names(table))
                                                          : "it has " + join(column_names(table)));
    places.push_back(*place);
    TableColumn column = table.columns[*place];
    if (column.heading.empty()) {  // It is in files only.
      column.heading = column.key->name();
      column.widens = true;
      for (TableRow& row : table.rows)
        if (row.cells[*place].text.empty()) row.cells[*place].text = rounded_text(column, row.cells[*place]);
    }
    if (!column.key) column.key = word_column(column.heading, "A column of the text.");
    column.files = InFiles::Both;
    column.drop_order = 0;
    selected.columns.push_back(std::move(column));
  }
  for (TableRow& row : table.rows) {
    TableRow& chosen = selected.rows.emplace_back(TableRow{{}, row.failure, row.note});
    for (const std::size_t place : places) chosen.cells.push_back(row.cells[place]);
  }
  return selected;
}

}  // namespace stagecraft
