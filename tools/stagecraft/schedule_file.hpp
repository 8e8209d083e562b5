#pragma once

#include <string>
#include <vector>

#include "sim/schedule_file/check_file.hpp"
#include "tools/stagecraft/command.hpp"

namespace stagecraft {

/// What `schedule` looks for in an order, from a file or made by name, and the arguments that ask for it.
std::vector<Argument> check_arguments();
FileCheckOptions check_options(const Arguments&);
/// Whether any of the levels that are not always looked at is asked for.
bool asks_for_checks(const Arguments&);

/// Throws InputError for an option that would change nothing together with the other given options.
void refuse_idle(const Arguments&);
/// Throws InputError for an option that this order makes idle, and for slices if its micro-batches are not slices.
void refuse_idle(const Arguments&, const CsvFile&, const FileCheckOptions&);

/// Level 9: every backward uses the weights of its forward when the stages are updated every `update_every`
/// micro-batches without a drain, under a policy of the catalog. Predictions are taken as right.
std::vector<ScheduleProblem> check_versions(const CheckedFile&, const std::string& policy, int update_every);

/// Checks an order in PyTorch's text as the arguments ask, level 9 included; InputError where they do not fit it.
CheckedFile checked_order(const Arguments&, const std::string& text, const std::string& name, const FileCheckOptions&);
/// checked_order() for the file that --file names.
CheckedFile checked_file(const Arguments&);
/// Throws InputError or Infeasible if the file has errors.
void throw_if_bad(const CheckedFile&, const std::string& file);
/// The JSON text `report` with two more members, `problems` and `warnings`, whose entries have file, code, level,
/// rank, column, op and message.
std::string with_findings(const std::string& report, const CheckedFile&, const std::string& file);
/// 0, 2 or 3.
int exit_code(const CheckedFile&);

}  // namespace stagecraft
