#pragma once

#include <string>
#include <vector>

#include "backends/box/network.hpp"

// Measures each link of a network that was just built, alone and shared by two transfers: is it as fast as it should
// be? `cluster up` and `validate --network` print the readings.

namespace stagecraft::box {

/// How far a reading may be from its nominal rate.
inline constexpr double kRateTolerance = 0.02;

/// What a transfer of the check got: alone on a link, or next to another one on a link that both cross.
struct RateReading {
  std::string what;                  ///< "link up3, a to b", or "pair a > b with c > b on link up3".
  double nominal = 0, measured = 0;  ///< Bytes in a second, as max-min sharing gives them and as they came.

  double error() const { return measured / nominal - 1; }
};

/// Measures one transfer in each direction of each link, then two at once on each link that several pairs of devices
/// share. `namespaces` has the file of each space. The calling thread is in some of them afterwards.
std::vector<RateReading> check_links(const Network&, const std::vector<int>& namespaces);

}  // namespace stagecraft::box
