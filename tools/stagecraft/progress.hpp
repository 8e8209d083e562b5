#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace stagecraft {

/// While it lasts, says on stderr how far the Activity of this process is, from two seconds on: one line on a terminal,
/// which the next replaces; elsewhere a line every five seconds. Nothing if `quiet`, or if STAGECRAFT_QUIET is set.
class Progress {
 public:
  explicit Progress(bool quiet);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

 private:
  void watch();

  bool terminal_;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  std::mutex mutex_;
  std::condition_variable ended_condition_;
  bool ended_ = false;
  std::jthread thread_;
};

/// Removes the line of progress from the terminal, so that other text can be printed.
void hide_progress();

}  // namespace stagecraft
