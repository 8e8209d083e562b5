#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/config/columns.hpp"
#include "sim/result/metrics.hpp"

namespace stagecraft {

/// A column of sweep results, in files and in the database, by name.
FileColumn point_column(std::string_view name);

/// A table, or the view, of the database that a sweep writes.
struct DatabaseTable {
  std::string name, description;
  std::vector<FileColumn> columns;
};

/// The tables sweep, point, scenario and result, in this order. Store creates them from this list.
const std::vector<DatabaseTable>& database_tables();
/// The view `results`.
const DatabaseTable& results_view();

/// The tables and the view as JSON, each with a JSON Table Schema.
std::string database_schema();

}  // namespace stagecraft
