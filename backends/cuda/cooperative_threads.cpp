// Host threads of which one runs at a time: devices that exchange arrays inside of an instruction pause there until the
// others have come.

#include "backends/cuda/cooperative_threads.hpp"

#include <utility>

#include "backends/cuda/driver.hpp"
#include "backends/real/clocks.hpp"
#include "sim/core/diagnostic.hpp"
#include "sim/core/threads.hpp"

namespace stagecraft::cuda {
namespace {

struct ThreadCancelled {};

/// Makes the GPU that is current here current again in the end: other threads choose theirs meanwhile.
class SameGpu {
 public:
  SameGpu() { check(cudaGetDevice(&gpu_), "cudaGetDevice"); }
  SameGpu(const SameGpu&) = delete;
  SameGpu& operator=(const SameGpu&) = delete;
  ~SameGpu() { cudaSetDevice(gpu_); }

 private:
  int gpu_ = 0;
};

}  // namespace

thread_local CooperativeThreads::Member* CooperativeThreads::current_ = nullptr;

CooperativeThreads::~CooperativeThreads() {
  for (const auto& [device, member] : members_) {
    {
      const std::lock_guard lock(mutex_);
      member->ends = true;
    }
    member->wake.notify_one();
    member->thread.join();
  }
}

void CooperativeThreads::run(int device, std::function<void()> work) {
  auto it = members_.find(device);
  if (it == members_.end()) {
    auto member = std::make_unique<Member>();
    member->device = device;
    it = members_.emplace(device, std::move(member)).first;
    try {
      it->second->thread = start_thread(members_.size() - 1, members_.size(), [this, &m = *it->second] { loop(m); });
    } catch (...) {
      members_.erase(it);
      throw;
    }
  }
  Member& member = *it->second;
  STAGECRAFT_CHECK(!member.work);
  member.work = std::move(work);
  give_turn(member);
}

bool CooperativeThreads::resume() {
  if (released_.empty()) return false;
  const int device = released_.front();
  released_.pop_front();
  give_turn(*members_.at(device));
  return true;
}

void CooperativeThreads::give_turn(Member& member) {
  const SameGpu same;
  std::unique_lock lock(mutex_);
  is_back_ = false;
  member.has_turn = true;
  member.wake.notify_one();
  back_.wait(lock, [this] { return is_back_; });
  if (member.failure) std::rethrow_exception(std::exchange(member.failure, nullptr));
}

bool CooperativeThreads::wait_for_turn(Member& member, std::unique_lock<std::mutex>& lock) {
  member.wake.wait(lock, [&] { return member.has_turn || member.ends; });
  return !member.ends;
}

bool CooperativeThreads::hand_back(Member& member) {
  std::unique_lock lock(mutex_);
  member.has_turn = false;
  is_back_ = true;
  back_.notify_one();
  return wait_for_turn(member, lock);
}

void CooperativeThreads::pause() {
  const SameGpu same;
  if (!hand_back(*current_)) throw ThreadCancelled();
}

void CooperativeThreads::give_way() {
  if (!gives_way_ || !current_) return;
  const double begin = real::steady_seconds();
  release(current_->device);
  pause();
  skip_seconds(real::steady_seconds() - begin);
}

void CooperativeThreads::loop(Member& member) {
  const LimitedLaunches limited(&launch_limit_);
  current_ = &member;
  {
    std::unique_lock lock(mutex_);
    if (!wait_for_turn(member, lock)) return;
  }
  do {
    try {
      member.work();
    } catch (const ThreadCancelled&) {
      return;
    } catch (...) {
      member.failure = std::current_exception();
    }
    member.work = nullptr;
  } while (hand_back(member));
}

}  // namespace stagecraft::cuda
