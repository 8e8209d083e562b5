#pragma once

#include <string>
#include <vector>

#include "sim/config/value.hpp"

// Clusters whose file is a platform of SimGrid: replaces them by what SimGrid makes of the file. The generator
// simgrid_xml declares their fields; topologies/simgrid_xml writes such files.

namespace stagecraft {

/// Replaces a checked `cluster` of the generator simgrid_xml by what is in its file: every device, link and route
/// written out, so that a resolved scenario stands alone and needs no SimGrid. Others stay as they are.
void expand_platform(config::Value& cluster, config::Problems&);

/// A platform file as a cluster file, with more fields of the generator; or InputError.
config::Value platform_cluster(const std::string& file, std::vector<config::Member> fields);

}  // namespace stagecraft
