#pragma once

#include <string>

namespace stagecraft {

class Database;

// The schema of a file of sweep results. Its table `result` has a column for each metric of the version that wrote it,
// and columns are read by name: a metric that the file lacks is not known, and one that this version lacks is passed
// over. So a new metric ends no file.

/// The statements that make the tables and the view with the metrics of this version.
std::string tables_and_view();

/// InputError where a table, an index or a trigger that belongs to the results is not as Stagecraft writes it: it could
/// run without end, or change what is read. Other tables in the file are never read.
void require_schema(const Database&);

/// Adds the metrics that the file lacks to its table and its view. The caller has begun a transaction.
void add_missing_metrics(Database&);

/// What the view `results` of this file has. A view in a file is not trusted, so Stagecraft reads with the query
/// itself.
std::string points_with_results(const Database&);

/// ", makespan_s, goodput, ...": the metrics of this version.
std::string metric_names();
/// ", makespan_s, NULL AS goodput, ...": the same, as this schema of the connection has them.
std::string selected_metrics(const Database&, const std::string& schema = "main");

}  // namespace stagecraft
