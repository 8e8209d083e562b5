#pragma once

#include <optional>
#include <string>

#include "sim/cluster/cluster.hpp"
#include "sim/config/fields.hpp"
#include "sim/core/json.hpp"
#include "sim/output/validation.hpp"
#include "sim/program/program.hpp"
#include "sim/program/timeline.hpp"
#include "sim/result/report.hpp"
#include "sim/schedule/schedule.hpp"

namespace stagecraft {

/// What a run executes, in the words of its scenario.
struct RunSetup {
  std::string scenario_file, model, cluster, schedule, planner, weights;
  std::string plan;  ///< plan_line() of the plan.
  int stages = 0, devices = 0, micro_batches = 0;
};

/// How a schedule was found, where it was searched for.
Json search_json(const ScheduleSearch&);

/// results.json of a run: every number of the report with its unit in the name, its provenance, and how its order was
/// found where it was searched for.
std::string results_json(const std::string& title, const Program&, const Timeline&, const Report&, const Cluster&,
                         const std::optional<ScheduleSearch>& search = {}, const std::optional<RunSetup>& setup = {});
/// Its fields, schema results/1. `stagecraft schema results` prints them as a JSON Schema.
const config::MapSpec& results_fields();
/// Reads results.json of a run. Throws InputError with the line and the field where the text is anything else than what
/// results_json() writes, such as an edited file.
Json read_results(const std::string& text, const std::string& file);

/// Where the numbers come from, and how a schedule was found: parts of several files.
const config::MapSpec& provenance_fields();
const config::MapSpec& search_fields();

/// What `stagecraft validate` writes: each pair of a simulated and a measured number, the provenance of both, and the
/// network that was built for the run, if any.
std::string validation_json(const std::string& title, const Validation&, const Timeline& simulated,
                            const Timeline& measured, double tolerance, const std::optional<Json>& network = {});
const config::MapSpec& validation_fields();  ///< Schema validation/1.
Json pairs_json(const std::vector<Pair>&);

/// What `stagecraft schedule --format json` prints: times in the user's own unit, and each rank's peak in stashes of a
/// stage.
std::string schedule_json(const std::string& name, const Program&, const Report&, const std::vector<double>& peaks,
                          const std::optional<ScheduleSearch>& search = {});
/// The fields of that, and of the findings of its checks.
const config::MapSpec& order_fields();

/// trace.json: what chrome_trace() writes.
const config::MapSpec& trace_fields();

}  // namespace stagecraft
