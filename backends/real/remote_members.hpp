#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <vector>

#include "backends/real/kernels.hpp"

namespace stagecraft::real {

/// The members of a group that are in other processes.
class RemoteMembers {
 public:
  virtual ~RemoteMembers() = default;
  virtual bool here(int rank) const = 0;
  /// Sends the arrays of the members that are here, in host memory, to every other process of the group, and replaces
  /// the arrays of other members by theirs, which stay until the next call. Numbers have `width` bytes. False when it
  /// was interrupted.
  virtual bool exchange(std::vector<Tensor>& arrays, std::size_t width, const std::atomic<bool>& interrupted) = 0;
};

/// `owners` has the process of each member. From `first` on each member of a run has its own number, the same one in
/// all processes. BackendError where MPI is used and has too few numbers.
std::unique_ptr<RemoteMembers> remote_members(int first, std::vector<int> owners);

}  // namespace stagecraft::real
