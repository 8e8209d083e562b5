#pragma once

#include <optional>
#include <string>

#include "sim/cluster/cluster.hpp"
#include "sim/program/program.hpp"
#include "sim/report/report.hpp"
#include "sim/report/validation.hpp"
#include "sim/schedule/schedule.hpp"
#include "sim/timeline/timeline.hpp"

namespace stagecraft {

/// results.json of a run: every number of the report with its unit in the name, and where it comes from; and how its
/// order was found, where it was searched for.
std::string results_json(const std::string& title, const Program&, const Timeline&, const Report&, const Cluster&,
                         const std::optional<Search>& search = {});

/// What `stagecraft validate` writes: each pair of a simulated and a measured number, and where both come from.
std::string validation_json(const std::string& title, const Validation&, const Timeline& simulated,
                            const Timeline& measured, double tolerance);

/// What `stagecraft schedule --format json` prints: times in the user's own unit.
std::string schedule_json(const std::string& name, const Program&, const Report&);

}  // namespace stagecraft
