#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/config/fields.hpp"

namespace stagecraft {

/// A scenario and what is changed in it: paths and values, as --set takes them.
struct Setting {
  std::string scenario;  ///< File; empty: as the table or the row says.
  std::vector<config::Member> set;
};

/// When a figure of ours counts as the published one.
struct Closeness {
  std::optional<int> decimals;      ///< Equal when both are rounded to so many.
  std::optional<double> tolerance;  ///< Relative difference.

  bool gated() const { return decimals || tolerance; }
  bool holds(double published, double ours) const;
};

/// Figures of one kind: each row is a setting, each column what is changed in it.
struct PublishedTable {
  struct Column {
    std::string name;
    Setting setting;
  };
  struct Row {
    std::string name;
    Setting setting;
    std::vector<std::optional<double>> values;  ///< Of each column; nothing where nothing is published.
    std::string why;                            ///< Why ours are others, where they are.
  };
  std::string name, figure, backend;
  Setting setting;               ///< Of all cells.
  std::vector<Setting> best_of;  ///< A cell is the best of these, when there are any.
  std::optional<Setting> over;   ///< A cell is the ratio to this one of its row.
  Closeness closeness;
  std::vector<Column> columns;
  std::vector<Row> rows;
};

/// What a publication says, and scenarios that say it again: a file `published.yaml`.
struct Published {
  std::string file, name;  ///< `name`: of the folder.
  std::string title, source;
  std::vector<std::string> assumed;  ///< What had to be, because it is not published or not modelled.
  std::vector<PublishedTable> tables;
};

/// The field table of such a file.
const config::MapSpec& published_fields();

/// Reads one: a file, or the name of its folder in scenarios/papers. InputError with all problems.
Published load_published(const std::string& given);

}  // namespace stagecraft
