#pragma once

#include <string>
#include <vector>

#include "sim/config/fields.hpp"
#include "sim/core/json.hpp"
#include "sim/output/table.hpp"

namespace stagecraft {

/// results.json of a run, and where it is.
struct NamedResults {
  std::string name;
  Json results;
};

/// The numbers of runs: a row for each number, a column for each run. Text has changes against the first run.
Table run_table(const std::vector<NamedResults>& runs);

/// A line that says so where the runs use different numbers of devices; otherwise empty.
std::string devices_note(const std::vector<NamedResults>& runs);

/// A line that warns where iterations have different numbers of samples; otherwise empty.
std::string batches_note(const std::vector<NamedResults>& runs);

/// The schedule and the plan of each run whose results have them, a line each.
std::string plans_text(const std::vector<NamedResults>&);

/// The first finding of each run's diagnosis, a line each.
std::string limits_text(const std::vector<NamedResults>& runs);

/// JSON of the runs in SI units, with times for a sample and a token, and what limits each.
std::string runs_json(const std::vector<NamedResults>& runs);
const config::MapSpec& runs_fields();

/// The columns of its CSV. `<RUN> (<clock>)` stands for one column for each run.
std::vector<FileColumn> run_columns();

/// The fields that differ between the resolved scenarios in these folders, one line for each: the path, then the value
/// in each run. Empty where a folder has no scenario.yaml, or nothing differs.
std::string scenario_changes_text(const std::vector<std::string>& folders);

}  // namespace stagecraft
