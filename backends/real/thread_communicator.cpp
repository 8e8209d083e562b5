// A group of devices with a thread each: members wait for each other and read each other's arrays; RemoteMembers brings
// the arrays of other processes.

#include "backends/real/thread_communicator.hpp"

#include <utility>

#include "backends/real/clocks.hpp"
#include "sim/core/diagnostic.hpp"

namespace stagecraft::real {

ThreadCommunicator::ThreadCommunicator(int size, GroupWaits& waits, std::unique_ptr<RemoteMembers> remote)
    : size_(size), here_(size), waits_(&waits), remote_(std::move(remote)), arrays_(size) {
  for (int rank = 0; remote_ && rank < size; ++rank) here_ -= !remote_->here(rank);
}

/// As long as it takes to be woken on a virtual machine. Who sleeps comes late to the next exchange, where others sleep
/// then: with shorter spins runs were seen to go on so, three times as slowly.
constexpr double kSpin = 5e-5;

/// std::atomic::wait() yields the core several times before it sleeps, and with more threads than cores each yield
/// lasts until all other threads had their turn. A condition variable sleeps at once.
void ThreadCommunicator::barrier(const std::function<void()>& last_step) {
  const std::uint32_t generation = generation_.load();
  if (std::unique_lock lock(mutex_); ++arrived_ == here_) {
    arrived_ = 0;
    if (last_step) {
      lock.unlock();
      last_step();
      lock.lock();
    }
    generation_.fetch_add(1);
    lock.unlock();
    next_generation_.notify_all();
  } else {
    lock.unlock();
    ++waits_->waiting;
    const auto is_over = [&] { return generation_.load() != generation || waits_->interrupted; };
    for (Spin spin(kSpin); waits_->spins && !is_over() && spin();) continue;
    lock.lock();
    next_generation_.wait(lock, is_over);
    lock.unlock();
    --waits_->waiting;
  }
  if (waits_->interrupted) throw BackendError("another device of the group has failed");
}

void ThreadCommunicator::exchange_with_others(std::size_t width, bool is_wide) {
  ++waits_->waiting;
  const bool came = remote_->exchange(arrays_, width, waits_->interrupted);
  --waits_->waiting;
  if (!came) throw BackendError("another device of the group has failed");
  for (Tensor& array : arrays_) array.is_wide = is_wide;
}

void ThreadCommunicator::exchange(int rank, const Tensor& array, std::size_t width,
                                  const std::function<void(std::span<const Tensor>)>& use) {
  arrays_[rank] = array;
  const bool is_wide = array.is_wide;
  barrier(remote_ ? [this, width, is_wide] { exchange_with_others(width, is_wide); } : std::function<void()>{});
  use(arrays_);
  barrier();
}

void ThreadCommunicator::interrupt() {
  { const std::lock_guard lock(mutex_); }  // A member between its check and its sleep is waited for.
  next_generation_.notify_all();
}

}  // namespace stagecraft::real
