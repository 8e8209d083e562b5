#pragma once

#include <string>
#include <utility>
#include <vector>

#include "sim/config/fields.hpp"

namespace stagecraft {

/// A column of a CSV file, which is also a member of each row in JSON. `stagecraft schema` prints it, and writers take
/// their header from it, so that no column is without a type and a meaning.
struct FileColumn {
  config::Field field;        ///< Name, type and meaning.
  std::string unit = {};      ///< "s" or "bytes"; empty for counts, shares and words.
  std::string presence = {};  ///< When the file has the column, or how many like it; empty: always once.

  const std::string& name() const { return field.name; }
};

FileColumn word_column(std::string name, std::string doc);
FileColumn whole_column(std::string name, std::string doc);
FileColumn number_column(std::string name, std::string unit, std::string doc);
FileColumn yes_column(std::string name, std::string doc);
/// An object or a list, for rows in JSON only.
FileColumn nested_column(config::Field field, std::string doc);
/// A copy of the column for a file that has it only sometimes.
FileColumn only(FileColumn, std::string presence);
/// A copy of the column whose value in JSON may be null.
FileColumn or_null(FileColumn);

/// A column together with the function that appends its cell, for files with too many rows for a
/// Table in memory.
template <class Row>
struct CsvColumn {
  FileColumn column;
  void (*append)(std::string& text, const Row&);
};
template <class Row>
using CsvColumns = std::vector<CsvColumn<Row>>;

template <class Row>
std::vector<FileColumn> file_columns(const CsvColumns<Row>& columns) {
  std::vector<FileColumn> list;
  for (const auto& c : columns) list.push_back(c.column);
  return list;
}

/// The line of names, with its line break.
std::string csv_header(const std::vector<FileColumn>&);

template <class Row>
void append_csv_row(std::string& text, const CsvColumns<Row>& columns, const Row& row) {
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (i > 0) text += ',';
    columns[i].append(text, row);
  }
  text += '\n';
}

/// The columns of a CSV file as a JSON Table Schema (Frictionless Data), with `unit` and `presence` of each column.
std::string table_schema(const std::string& title, const std::string& description, const std::vector<FileColumn>&);

}  // namespace stagecraft
