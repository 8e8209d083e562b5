#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <thread>

#include "backends/cuda/launch_limit.hpp"

namespace stagecraft::cuda {

/// Coroutines made of host threads: one for each device that meets others inside of its instructions. One runs at a
/// time, or the thread that made them; pause() yields, and resume() goes on with one that was released.
class CooperativeThreads {
 public:
  /// `limit` counts the work that the threads enqueue.
  explicit CooperativeThreads(LaunchLimit& limit) : launch_limit_(limit) {}
  CooperativeThreads(const CooperativeThreads&) = delete;
  CooperativeThreads& operator=(const CooperativeThreads&) = delete;
  /// Unwinds what pauses.
  ~CooperativeThreads();

  /// Runs work on the thread of a device, which has none yet, until it pauses or ends. Throws what it throws.
  void run(int device, std::function<void()> work);
  /// Called by work: returns when release() has named its device and resume() has come to it.
  void pause();
  void release(int device) { released_.push_back(device); }
  /// Called again and again where work waits for its GPU: the others go on meanwhile. A GPU whose queue has room only
  /// after another process has come to an exchange must not hold up the devices that this process waits for.
  void give_way();
  /// From now on give_way() does that. Before, it does nothing, so work is enqueued in the same order in every run.
  void let_others_go_on() { gives_way_ = true; }
  /// Goes on with the device that was released first, as run() does; false: there is none.
  bool resume();

 private:
  struct Member {
    int device = 0;
    std::function<void()> work;  ///< Null when there is none.
    std::exception_ptr failure;
    bool has_turn = false, ends = false;
    std::condition_variable wake;
    std::jthread thread;
  };
  void loop(Member&);
  void give_turn(Member&);
  /// False when the thread is to end.
  bool hand_back(Member&);
  bool wait_for_turn(Member&, std::unique_lock<std::mutex>&);

  static thread_local Member* current_;  ///< The member whose thread it is.

  LaunchLimit& launch_limit_;
  std::mutex mutex_;
  std::condition_variable back_;
  bool is_back_ = true;  ///< The turn is with the thread that calls run().
  std::map<int, std::unique_ptr<Member>> members_;
  std::deque<int> released_;
  bool gives_way_ = false;
};

}  // namespace stagecraft::cuda
