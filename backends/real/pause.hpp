#pragma once

#include <algorithm>
#include <chrono>
#include <thread>

namespace stagecraft::real {

inline double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Between two looks at something: at first only others get the core, then it sleeps, longer each time.
class Pause {
 public:
  explicit Pause(std::chrono::microseconds longest) : longest_(longest) {}

  void reset() { rounds_ = 0; }
  void operator()() {
    constexpr int kYields = 200;
    if (++rounds_ <= kYields) return std::this_thread::yield();
    std::this_thread::sleep_for(std::min(longest_, std::chrono::microseconds(rounds_ - kYields)));
  }

 private:
  std::chrono::microseconds longest_;
  int rounds_ = 0;
};

}  // namespace stagecraft::real
