#pragma once

#include <optional>
#include <string>

#include "sim/report/html_sweep.hpp"
#include "sim/sweep/table.hpp"

namespace stagecraft {

/// Whether a command is given a sweep: a file of results, a sweep file, or the name of one.
bool is_sweep_results(const std::string& given);
bool is_sweep_file(const std::string& given);

/// The page of a sweep, to be written to `out`. `base`: its scenario; empty where it has to be found by the sweep's
/// name, beside the results or among those that have names.
SweepPage sweep_page(const SweepTable&, const std::string& results, const std::string& base, const std::string& out);

}  // namespace stagecraft
