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

/// Throws InputError for an option that would change nothing beside the others that are given.
void refuse_idle(const Arguments&);
/// The same for one that this order makes idle; and for slices that its micro-batches are not.
void refuse_idle(const Arguments&, const CsvFile&, const FileCheckOptions&);

}  // namespace stagecraft
