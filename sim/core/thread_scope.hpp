#pragma once

#include <cstddef>
#include <functional>

namespace stagecraft {

/// While it lasts, a large computation of this thread may use `count` threads, itself included. The innermost scope of
/// a thread counts. Without one it works alone: the workers of searches and sweeps have a thread for each core already.
class ThreadScope {
 public:
  explicit ThreadScope(int count);
  ~ThreadScope();
  ThreadScope(const ThreadScope&) = delete;
  ThreadScope& operator=(const ThreadScope&) = delete;

 private:
  int outer_;
};

/// Threads for work on this number of instructions: all that the scope allows, or one where the work is done before
/// another has started.
int threads_for(std::size_t instructions);

/// run_tasks() on threads_for() the instructions. Each part works alone.
void run_parts(std::size_t instructions, int count, const std::function<void(int)>& task);

}  // namespace stagecraft
