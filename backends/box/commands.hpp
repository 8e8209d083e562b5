#pragma once

#include <string>
#include <utility>
#include <vector>

#include "backends/box/network.hpp"

namespace stagecraft::box {

// What builds a network, in the words of iproute2 (the inputs of `ip -batch` and `tc -batch` of each space), and its
// settings of the kernel.

/// Bytes that a connection may have under way where queues are fair: enough for its rate, and less than a queue holds,
/// so that nothing is lost. After a loss TCP gives a message to its receiver only when the lost packet has come again.
double window(const Network&);

/// The settings of the kernel in a space: paths below /proc/sys, and what to write there.
std::vector<std::pair<std::string, std::string>> kernel_settings(const Network&, const Space&);

/// Makes the cables that begin in a space. `namespaces` has the path of a file for each space that stands for its
/// namespace. Cables with a latency are no business of `ip`: see relay.hpp.
std::string cable_commands(const Network&, int space, const std::vector<std::string>& namespaces);

/// Gives a space its addresses and routes; its cards exist by now.
std::string address_commands(const Network&, int space);

/// Queues and rates of a space's cards.
std::string queue_commands(const Network&, int space);
/// Gives the queue of a card, which exists, another rate.
std::string rate_commands(const Network&, const SharedQueue&, Bandwidth rate);

/// Whether a cable has, at some time, a latency that is built.
bool has_latency(const Network&, const Cable&);

/// Latencies below this are not built: the queues and wake-ups of one machine add about as much.
inline constexpr Seconds kLeastLatency{0.2e-3};

/// What each packet carries of a message, and what a rate of `tc` counts of it: Ethernet, IP and TCP with time stamps
/// take 66 bytes. The rates of a network count what messages have, so that its queues get 1514 / 1448 of them.
inline constexpr double kPacketPayload = 1448, kPacketOnWire = 1514, kHeaders = 66;

}  // namespace stagecraft::box
