#pragma once

#include <algorithm>
#include <chrono>
#include <thread>

namespace stagecraft::real {

inline double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Between two looks at something, by who has nothing else to do: naps that get longer by a microsecond each, so that
/// what happens is seen within a small part of the time that nothing happened.
class Nap {
 public:
  void reset() { length_ = 0; }
  void operator()() {
    length_ = std::min(length_ + 1, kLongest);
    std::this_thread::sleep_for(std::chrono::microseconds(length_));
  }

 private:
  static constexpr int kLongest = 1000;
  int length_ = 0;
};

inline void pause_core() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

/// For checks of a value before a thread sleeps until it changes, by default for ten microseconds, which is less than
/// being woken takes. Only where each thread has a core. A pause takes 40 to 140 cycles, so time decides and not their
/// number.
class Spin {
 public:
  explicit Spin(double seconds = 1e-5) : seconds_(seconds) {}
  /// False when it is time to sleep.
  bool operator()() {
    pause_core();
    if (++count_ % kAtOnce != 0) return true;
    if (count_ == kAtOnce) begin_ = steady_seconds();
    return steady_seconds() - begin_ < seconds_;
  }

 private:
  static constexpr int kAtOnce = 16;
  double seconds_;
  int count_ = 0;
  double begin_ = 0;
};

/// For a busy wait between two checks: yields the core as long as it comes back at once. With more runnable threads
/// than cores a thread that yields queues after all of them, and one that is woken does not, so then sleep instead.
class Yield {
 public:
  void reset() { count_ = 0; }
  /// False when the caller should sleep instead.
  bool operator()() {
    if (crowded_ > 0) return --crowded_, false;
    if (count_ == kMost) return false;
    ++count_;
    const double begin = steady_seconds();
    std::this_thread::yield();
    if (steady_seconds() - begin > kAtOnce) crowded_ = kForget;
    return true;
  }

 private:
  static constexpr int kMost = 2000, kForget = 1000;
  static constexpr double kAtOnce = 1e-3;
  int count_ = 0, crowded_ = 0;
};

/// How the steady clock here relates to that of the first process, at one moment.
struct ClockReading {
  double here = 0, offset = 0, uncertainty = 0;  ///< Seconds; add `offset` to times of this clock.
};

/// The reading from a question and its answer: the first process read its clock between the two, so their middle is off
/// by at most half of the round trip.
inline ClockReading clock_reading(double asked, double there, double answered) {
  const double half = (answered - asked) / 2;
  return {asked + half, there - (asked + half), half};
}

/// A time here on the first clock, when the two drift evenly from one reading to the other.
inline double on_first_clock(double seconds, const ClockReading& before, const ClockReading& after) {
  const double apart = after.here - before.here;
  const double drift = apart > 0 ? (after.offset - before.offset) / apart : 0;
  return seconds + before.offset + drift * (seconds - before.here);
}

}  // namespace stagecraft::real
