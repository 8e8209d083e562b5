#pragma once

#include <vector>

namespace stagecraft::spp {

/// Bandwidth between every two devices; symmetric, the diagonal is not read.
using Bandwidths = std::vector<std::vector<double>>;

/// The devices on the two sides of a least cut (Stoer and Wagner, J. ACM 44, 1997). O(n^3). Needs two devices or more.
std::pair<std::vector<int>, std::vector<int>> least_cut(const Bandwidths&, const std::vector<int>& devices);

/// Devices in a line that crosses each slow cut once: both sides of a least cut, each in such an order itself, the way
/// round that has the fastest junction (Luo et al., INFOCOM 2022, recursive device ordering).
std::vector<int> order_devices(const Bandwidths&);

}  // namespace stagecraft::spp
