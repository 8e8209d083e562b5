#pragma once

#include <string_view>

#include "sim/config/columns.hpp"

namespace stagecraft {

/// The columns of tables of many runs (schedules, plans, choices), by name. A name means the same in all of them.
FileColumn result_column(std::string_view name);

}  // namespace stagecraft
