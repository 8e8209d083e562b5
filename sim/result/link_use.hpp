#pragma once

#include <string>
#include <vector>

#include "sim/result/report.hpp"

namespace stagecraft {

/// [index in Report::links][part]: use of a link in each of `parts` equal parts of the run, which is bytes / (bandwidth
/// * length of a part); 0 where the link is not shared. The bytes of a message are spread evenly over its send, and the
/// traffic of an op over the op.
std::vector<std::vector<double>> link_use(const Program&, const Timeline&, const Cluster&, const Report&, int parts);

/// [index in Program::routes]: bytes of the whole run, in messages and in phases of collectives.
std::vector<double> bytes_on_routes(const Program&);

/// What the traffic of links leaves out: collectives that have a cost but no messages, so that no link carries them.
/// Empty where every collective is messages.
std::string unrouted_collectives_text(const Program&);

/// The link of memory that an instruction shares with other devices, and what it reads and writes there, as bytes of
/// copies, because a copy reads and writes each byte and the bandwidth of such a link is the bandwidth of copies.
struct MemoryUse {
  LinkId link;  ///< Not valid: none.
  double bytes = 0;
};
MemoryUse memory_use(const Program&, const Cluster&, InstructionId);

}  // namespace stagecraft
