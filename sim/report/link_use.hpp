#pragma once

#include <vector>

#include "sim/report/report.hpp"

namespace stagecraft {

/// How much of each of Report::links is in use in each of so many equal parts of the run: bytes over what its bandwidth
/// carries in that time; 0 where the link is not shared. A message counts as sent evenly while its send lasts, the
/// traffic of an op as evenly spread over it.
std::vector<std::vector<double>> link_use(const Program&, const Timeline&, const Cluster&, const Report&, int parts);

/// The link of memory that an instruction shares with other devices, and what it reads and writes there, as bytes of
/// copies, which do both with each: the bandwidth of such a link is that of copies.
struct MemoryUse {
  LinkId link;  ///< Not valid: none.
  double bytes = 0;
};
MemoryUse memory_use(const Program&, const Cluster&, InstructionId);

}  // namespace stagecraft
