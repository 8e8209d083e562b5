// The functions of the SimGrid module that the program calls, in the one symbol that library.cpp looks up.

#include "backends/simgrid/engine/tasks.hpp"

const stagecraft::sg::Tasks stagecraft_simgrid_tasks{
    .version = stagecraft::sg::engine::version,
    .simulate = stagecraft::sg::engine::simulate,
    .list_platform = stagecraft::sg::engine::list_platform,
};
