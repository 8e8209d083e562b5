#pragma once

#include <string>

#include "sim/cluster/cluster.hpp"
#include "sim/config/value.hpp"
#include "sim/cost/profile.hpp"

namespace stagecraft {

/// Puts what a profile's name or file stands for in its place, checked, so that a resolved scenario stands alone.
void expand_profile(config::Value& profile, config::Problems&);

/// A profile file on its own, checked.
config::Value load_profile_file(const std::string& file);

/// Gives the measured figures of messages to the links of a cluster whose devices are all of the profile's type;
/// InputError at `where`, the place of the type in the profile, when none is.
void apply(const Profile&, const Where&, Cluster&);

/// InputError where a cluster of parts of a GPU (its checked tree) is divided otherwise than the one measured.
void require_same_parts(const Profile&, const config::Value& cluster);

}  // namespace stagecraft
