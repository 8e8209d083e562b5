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
struct MatchRule {
  enum class Bound { None, AtLeast, AtMost };

  std::optional<int> decimals = {};      ///< Both figures are equal when rounded to this many decimals.
  std::optional<double> tolerance = {};  ///< Largest relative difference.
  std::optional<double> side = {};       ///< Both figures are above this, or both below.
  Bound bound = Bound::None;             ///< Ours is no less, or no more, than the published figure.
  bool order = false;                    ///< Ours of a row rise and fall as the published ones do.

  bool gated() const { return decimals || tolerance || side || bound != Bound::None || order; }
  /// Whether every rule holds except `order`, which needs the whole row.
  bool holds(double published, double ours) const;
};

/// What a figure that comes out as published proves.
enum class Claim { Identity, Direction, Prediction };
/// Identity: equal to the last published digit, so a closed form, a count or a definition. Direction: a bound, a side
/// or an order. Prediction: within a tolerance.
Claim claim_of(const MatchRule&);

/// How several figures become one.
enum class Aggregate { Mean, Largest, Smallest };

/// Figures of one kind: each row is a setting, each column what is changed in it.
struct PublishedTable {
  struct Column {
    std::string name;
    Setting setting;
  };
  struct Row {
    std::string name;
    Setting setting;
    std::vector<std::optional<double>> values;  ///< [column]; no value where nothing is published.
    std::string why;                            ///< Why our figures differ, where they do.
    std::vector<Setting> only = {};             ///< [column]: a setting for this row alone.
    Setting over = {};                          ///< What the cells are ratios to, on top of the table's `over`.
    double scale = 1;                           ///< Factor of our figures, on top of the table's `scale`.
    bool calibrated = false;                    ///< A parameter was set for this row, so it is not judged.
    std::vector<std::optional<double>> missed;  ///< [column]: our deviation in per cent, for columns that are missed.
  };
  std::string name, figure, backend;
  std::string why;               ///< The reason for rows that give none themselves.
  Setting setting;               ///< The setting of all cells.
  std::vector<Setting> best_of;  ///< A cell is the best of these, when there are any.
  std::optional<Setting> over;   ///< A cell is the ratio to this one of its row.
  std::vector<Setting> all_of;   ///< A cell is made of all of these, when there are any.
  Aggregate take = Aggregate::Mean;
  double scale = 1, offset = 0;  ///< Ours times the one, and then the other added: another unit, per cent of gain.
  MatchRule match_rule;
  std::vector<Column> columns;
  std::vector<Row> rows;

  const std::string& why_of(std::size_t row) const { return rows[row].why.empty() ? why : rows[row].why; }
};

/// What a publication says, and scenarios that say it again: a file `published.yaml`.
struct Published {
  std::string file, name;  ///< `name`: of the folder.
  std::string title, source;
  std::vector<std::string> assumed;  ///< What had to be, because it is not published or not modeled.
  std::vector<PublishedTable> tables;
};

/// The field table of such a file.
const config::MapSpec& published_fields();

/// Reads one: a file, or the name of its folder in scenarios/papers. InputError with all problems.
Published load_published(const std::string& given);

}  // namespace stagecraft
