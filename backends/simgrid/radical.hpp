#pragma once

#include <string>
#include <string_view>

namespace stagecraft::sg {

/// Hosts that the clusters of a platform file may have together. SimGrid takes about 7 us for each, and Fugaku, the
/// largest machine by nodes so far, has 158,976 (Top500, June 2020).
inline constexpr double kMostClusterHosts = 200'000;

/// InputError with the place when the radicals in the text of a platform file, such as radical="0-15,20", name more.
void check_radicals(const std::string& file, std::string_view text);

}  // namespace stagecraft::sg
