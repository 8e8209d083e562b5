#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "backends/real/group_communicator.hpp"
#include "backends/real/remote_members.hpp"

namespace stagecraft::real {

/// What all communicators of a run share: how many threads wait for others, and whether they have to give up.
struct GroupWaits {
  /// Whether every thread of the run has a core, so that one may look for the others a while before it sleeps.
  bool spins = false;
  std::atomic<int> waiting{0};
  std::atomic<bool> interrupted{false};
};

/// A group of devices that have a thread each. Some of them may be in other processes.
class ThreadCommunicator final : public GroupCommunicator {
 public:
  ThreadCommunicator(int size, GroupWaits& waits, std::unique_ptr<RemoteMembers> remote = nullptr);

  int size() const override { return size_; }
  /// Returns when every use() of a member in this process has ended. Throws BackendError when the run is interrupted
  /// meanwhile.
  void exchange(int rank, const Tensor& array, std::size_t width,
                const std::function<void(std::span<const Tensor>)>& use) override;
  /// To be called after GroupWaits::interrupted was set.
  void interrupt() override;

 private:
  /// Waits for all members of this process. The last one calls last_step() before any goes on.
  void barrier(const std::function<void()>& last_step = {});
  void exchange_with_others(std::size_t width, bool is_wide);

  int size_, here_;  ///< Members of all processes, and of this one.
  GroupWaits* waits_;
  std::unique_ptr<RemoteMembers> remote_;  ///< Null where all members are here.
  std::vector<Tensor> arrays_;
  std::mutex mutex_;
  std::condition_variable next_generation_;
  int arrived_ = 0;  ///< Under mutex_, as are changes of generation_.
  std::atomic<std::uint32_t> generation_{0};
};

}  // namespace stagecraft::real
