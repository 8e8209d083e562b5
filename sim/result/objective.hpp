#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/config/columns.hpp"
#include "sim/config/fields.hpp"
#include "sim/core/json.hpp"

namespace stagecraft {

/// What a search makes as small as it can.
enum class Objective { Time, Cost, Energy };

/// Their names on the command line, in the order of the values.
const std::vector<std::string>& objective_names();

/// The objective of a search, with what its amounts are printed in. An amount is that of one iteration, in seconds,
/// dollars or joules. It is printed for tokens, or for samples where these have no tokens.
struct ObjectiveUnit {
  Objective objective = Objective::Time;
  double samples = 1;  ///< Number in an iteration.
  double tokens = 0;   ///< Number in an iteration; zero where samples have none.

  bool is_time() const { return objective == Objective::Time; }
  /// The amount in the unit of column(): dollars for 10^9 tokens, joules for one.
  double in_unit(double amount) const;
  /// "dollars_per_billion_tokens"; for time "period_s".
  std::string column() const;
  /// "$0.52 for 10^9 tokens", "1.3 J a token", "13.4 ms".
  std::string text(double amount) const;
  /// text() without the words of the unit: "$0.52", "1.3 J".
  std::string number_text(double amount) const;
  /// "dollars for 10^9 tokens", "joules a token", "seconds".
  std::string unit() const;
};

/// The columns that tables of a search may have besides the period.
std::vector<FileColumn> objective_columns();

/// The member `objective` of files of a search: null where it is time. `bound` and `configured`: amounts of an
/// iteration, zero where they are not known.
Json objective_json(const ObjectiveUnit&, double bound, double configured);
config::Field objective_field();

}  // namespace stagecraft
