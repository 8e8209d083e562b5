#pragma once

#include <string>
#include <vector>

#include "backends/box/running_network.hpp"

namespace stagecraft::box {

/// A network that `cluster up` built, which stays when the command has ended.
struct OpenNetwork {
  std::string name;
  Opened opened;
};

/// The networks of this user that are up. What a process that was killed left is no network: its file is removed.
std::vector<OpenNetwork> open_networks();

/// Builds a network in a process of its own and returns when it is up. InputError if a network with that name is up
/// already.
OpenNetwork open_network(const std::string& name, const Network&, bool check);

/// Ends the processes in the network, then the network. They get SIGTERM, and SIGKILL after `patience`.
void close_network(const OpenNetwork&, Seconds patience);

}  // namespace stagecraft::box
