#pragma once

#include <string>
#include <string_view>

namespace stagecraft::sg {

/// Hosts that the clusters of a platform file may have together. SimGrid takes about 7 us for each, and Fugaku, the
/// largest machine by nodes so far, has 158,976 (Top500, June 2020).
inline constexpr double kMostClusterHosts = 200'000;

/// The text of a platform file, written again from what was understood of it, with every element on its line.
///
/// SimGrid opens files that a platform names: settings of its tracing truncate them, traces of speeds are read. So only
/// elements and attributes on a list are taken, none of which names a file, and SimGrid never sees the original text.
/// InputError with line and column for anything else, where the radicals name more than kMostClusterHosts, and where a
/// zone has too many hosts for a table of all pairs.
std::string checked_platform_xml(const std::string& file, std::string_view text);

}  // namespace stagecraft::sg
