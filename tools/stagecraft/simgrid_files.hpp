#pragma once

#include "tools/stagecraft/command.hpp"

namespace stagecraft {

/// `stagecraft export simgrid-xml` and `stagecraft import simgrid-xml`.
int export_simgrid(const Arguments&);
std::string import_simgrid(const Arguments&);

}  // namespace stagecraft
