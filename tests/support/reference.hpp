#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/core.h>

#include "sim/core/file.hpp"
#include "sim/core/text.hpp"

namespace stagecraft::test {

/// The text of a file in tests/reference/data. Test programs run in the root of the project.
inline std::string reference_text(const std::string& file) { return read_file("tests/reference/data/" + file); }

/// A row of a table, by the names of its columns.
struct ReferenceRow {
  std::string line;
  std::map<std::string, std::string> cells;

  const std::string& text(const std::string& column) const { return cells.at(column); }
  double number(const std::string& column) const { return std::stod(text(column)); }
  int integer(const std::string& column) const { return std::stoi(text(column)); }
};

/// The rows of a table of tests/reference/data. Lines that begin with # name its sources; no cell holds a comma.
inline std::vector<ReferenceRow> reference_rows(const std::string& file) {
  std::vector<std::string> names;
  std::vector<ReferenceRow> rows;
  for (const std::string& line : split(reference_text(file), '\n')) {
    if (line.empty() || line.front() == '#') continue;
    const std::vector<std::string> cells = split(line, ',');
    if (names.empty()) {
      names = cells;
      continue;
    }
    ReferenceRow& row = rows.emplace_back(ReferenceRow{line, {}});
    for (std::size_t c = 0; c < names.size(); ++c) row.cells[names[c]] = cells.at(c);
  }
  return rows;
}

/// 64-bit FNV-1a, which make_reference_data.py computes for texts that are too long to restate.
inline std::string digest(std::string_view text) {
  std::uint64_t value = 0xcbf29ce484222325;
  for (const char c : text) value = (value ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return fmt::format("{:016x}", value);
}

}  // namespace stagecraft::test
