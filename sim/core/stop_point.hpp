#pragma once

#include <functional>

namespace stagecraft {

/// Thrown by stop_point(). It is no std::exception, so that what handles errors does not take it for one.
struct Stopped {};

/// While it lasts, computations of this thread end at their next stop_point() once `asked` returns true. The innermost
/// scope of a thread counts.
class StopScope {
 public:
  explicit StopScope(std::function<bool()> asked);
  ~StopScope();
  StopScope(const StopScope&) = delete;
  StopScope& operator=(const StopScope&) = delete;

 private:
  friend void stop_point();
  std::function<bool()> asked_;
  const StopScope* outer_;
};

/// Throws Stopped if a scope of this thread asks for the end. Loops that may take long pass through it every few
/// milliseconds; without a scope it costs nothing to speak of.
void stop_point();

/// A stop_point() at every 1,024th pass, for loops whose body is shorter than a look at the clock.
class StopCounter {
 public:
  void pass() {
    if (++passes_ % 1024 == 0) stop_point();
  }

 private:
  unsigned passes_ = 0;
};

}  // namespace stagecraft
