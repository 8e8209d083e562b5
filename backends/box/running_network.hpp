#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "backends/box/link_check.hpp"
#include "backends/box/network.hpp"
#include "sim/core/child_process.hpp"

// Builds a network of namespaces, keeps it, and runs programs in it: for `validate --network` as long as the command
// lasts (RunningNetwork), for `cluster up` until it is closed (open_networks.hpp).

namespace stagecraft::box {

/// What a process needs to know to enter a running network.
struct Entrance {
  pid_t holder = 0;
  std::vector<int> files;              ///< The number of the file that `holder` has open for each space.
  std::vector<std::string> names;      ///< Names of the spaces; the devices come first.
  std::vector<std::string> addresses;  ///< Addresses of the devices.
  std::string cpu_groups;              ///< The folder of the devices' control groups; empty: there are none.

  std::string hosts() const;  ///< Lines of /etc/hosts.
};

/// A network that was built: how to enter it, and what its links were measured to do.
struct BuiltNetwork {
  Entrance entrance;
  std::vector<RateReading> readings;  ///< Empty where links were not checked.
  std::string congestion_control;     ///< How TCP chooses its rates: "cubic"; empty: as this system does.
  std::vector<double> core_shares;    ///< The part of a core that programs of each device get; empty: all of it.
  std::string why_alike;  ///< Why programs of unlike devices are as fast; empty where they are not, or devices alike.
};

/// Builds a network, checks its links if asked, tells `opened`, and keeps it until `stop` can be read. A network
/// belongs to the process that calls this: the kernel removes namespaces, cards and queues when it ends, however it
/// ends, so that nothing has to be cleaned up. BackendError where it cannot be built. Its links change as its cluster
/// says from when `begin` can be read; with -1 they do not.
void hold_network(const Network&, bool check, const std::function<void(const BuiltNetwork&)>& opened, int stop,
                  int begin = -1);

/// A network that lasts as long as this object, and no longer than the thread that made it.
class RunningNetwork {
 public:
  RunningNetwork(const Network&, bool check);
  const BuiltNetwork& opened() const { return opened_; }
  /// The file (eventfd) to write to when a run begins, from which on links change.
  int begin_file() const { return begin_.number(); }

 private:
  OpenFile begin_;
  BuiltNetwork opened_;
  std::unique_ptr<ChildProcess> holder_;
};

/// Starts a program in a space of a network in place of this process, which has one thread. It ends with 127 where that
/// fails, after one sentence on stderr.
[[noreturn]] void start_in_space(const Entrance&, int space, const std::vector<std::string>& words) noexcept;

/// Runs a program in a space of a network as a child, which the kernel ends with this process. Its exit code, or 128
/// and the number of the signal that ended it.
int run_in_space(const Entrance&, int space, const std::vector<std::string>& words);

/// A network as JSON, which read_network() reads.
std::string to_json(const BuiltNetwork&);
BuiltNetwork read_network(const std::string& json);

}  // namespace stagecraft::box
