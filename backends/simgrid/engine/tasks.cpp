// The table of functions that the program finds in this module.

#include "backends/simgrid/engine/tasks.hpp"

const stagecraft::sg::Tasks stagecraft_simgrid_tasks{
    .version = stagecraft::sg::engine::version,
    .simulate = stagecraft::sg::engine::simulate,
    .list_platform = stagecraft::sg::engine::list_platform,
};
