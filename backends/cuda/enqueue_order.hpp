#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <queue>
#include <span>
#include <vector>

#include "sim/program/program.hpp"

namespace stagecraft::cuda {

/// In which order instructions can be enqueued where some of them pause in the middle, until devices of their group
/// have come there too: the smallest number of those whose inputs are enqueued. Both ends of a rendezvous, and all
/// members of a collective, are enqueued with the first of them.
class EnqueueOrder {
 public:
  /// All other instructions that these wait for have been enqueued.
  EnqueueOrder(const Program&, std::span<const InstructionId>);

  std::optional<InstructionId> next();  ///< Nothing until more are done, or at the end.
  void done(InstructionId);
  bool is_over() const { return left_ == 0; }

 private:
  struct Entry {
    bool is_here = false;
    int unmet = 0;  ///< Entries that it waits for.
    std::vector<InstructionId> readers;
  };
  InstructionId first_of(InstructionId) const;
  Entry* entry(InstructionId);
  void wait_for(InstructionId reader, InstructionId input);

  const Program& p_;
  std::int64_t begin_ = 0;
  std::vector<Entry> entries_;  ///< From instruction `begin_` on.
  std::priority_queue<InstructionId, std::vector<InstructionId>, std::greater<>> ready_;
  std::size_t left_ = 0;
};

}  // namespace stagecraft::cuda
