#pragma once

#include <algorithm>

namespace stagecraft {

/// Memory for messages of a run: how many of each edge of the plan and direction a device holds. 0: any number.
struct MessageBuffers {
  int received = 0;  ///< By a device that reads them: each from the start of its transfer to the end of the op.
  int outgoing = 0;  ///< By a device that makes them: each from the start of the op to the end of its transfer.

  bool is_limited() const { return received > 0 || outgoing > 0; }
};

/// `run.buffers`. A sender holds two even where its receiver holds one: an op makes a message while the last one is
/// sent.
inline MessageBuffers message_buffers(int each) { return {each, std::max(each, 2)}; }

}  // namespace stagecraft
