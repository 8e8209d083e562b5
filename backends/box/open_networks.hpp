#pragma once

#include <string>
#include <vector>

#include "backends/box/running_network.hpp"

namespace stagecraft::box {

/// A BuiltNetwork under a name, which stays when the command that built it has ended: `cluster up` opens it and
/// `cluster down` closes it.
struct OpenNetwork {
  std::string name;
  BuiltNetwork opened;
};

/// The networks of this user that are up. What a process that was killed left is no network: its file is removed.
std::vector<OpenNetwork> open_networks();

/// Builds a network in a new process and returns when it is up. InputError if a network with that name is up
/// already.
OpenNetwork open_network(const std::string& name, const Network&, bool check);

/// Ends the processes in the network, then the network. They get SIGTERM, and SIGKILL after `patience`.
void close_network(const OpenNetwork&, Seconds patience);

}  // namespace stagecraft::box
