#pragma once

#include <functional>
#include <string>
#include <vector>

namespace stagecraft {

/// The processors that this process may use.
struct UsableCores {
  /// Logical processors of the affinity mask: one of each physical core first, then the second ones, and so on.
  std::vector<int> order;
  int physical = 1;  ///< Physical cores among them.
  double quota = 0;  ///< Processors that the control group gets on average; infinite without a limit.

  /// Threads that run at full speed at the same time: processors of the mask, at most the whole ones of the quota.
  int count() const;
};

/// As this process found them when it first asked.
UsableCores usable_cores();

/// Quota in a file cpu.max of a control group, "max 100000" or "150000 100000"; infinite without a limit.
double quota_of(const std::string& cpu_max);

/// Orders processors so that no two share a physical core before each core has one. `core_of` names the core of a
/// processor; `physical` gets the number of cores.
std::vector<int> one_per_core_first(const std::vector<int>& processors, const std::function<std::string(int)>& core_of,
                                    int& physical);

/// Threads of this machine that run or wait for a processor now, without the caller; 0 where the system does not say.
int other_runnable_threads();

}  // namespace stagecraft
