#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>

namespace stagecraft {

/// What a step has done so far.
struct ActivityState {
  std::string what;            ///< "comparing planners"
  const char* unit = nullptr;  ///< "planners"; null: nothing is counted.
  std::int64_t done = 0;
  std::int64_t total = 0;   ///< 0: not known.
  std::int64_t before = 0;  ///< Part of `done` that was there when the step began.
  std::string note = {};    ///< What else a user wants to know, such as the best result so far; may be empty.
  double seconds = 0;       ///< Since the step began.
};

/// A step that may take long, while it lasts, for a user who waits. Steps nest.
class Activity {
 public:
  explicit Activity(std::string what);  ///< "planning with 'brute'"
  Activity(const Activity&) = delete;
  Activity& operator=(const Activity&) = delete;
  ~Activity();

  /// What has been done so far, in units such as "divisions", of `total` if that is known; `before` of it was there
  /// when the step began.
  void count(std::int64_t done, const char* unit, std::int64_t total = 0, std::int64_t before = 0) {
    done_ = done, total_ = total, before_ = before, unit_ = unit;
  }
  /// One more of the things that are counted.
  void count_one() { ++done_; }
  void note(std::string text);
  ActivityState state() const;
  std::string text() const;

 private:
  std::string what_;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  std::atomic<const char*> unit_ = nullptr;
  std::atomic<std::int64_t> done_ = 0, total_ = 0, before_ = 0;
  mutable std::mutex mutex_;  ///< It guards the note.
  std::string note_;
};

/// The newest step of this process; empty if there is none. Any thread may ask.
std::string current_activity();

/// The outermost step that counts something, and the newest step.
struct CurrentActivities {
  std::optional<ActivityState> counted, newest;
};
CurrentActivities current_activities();

/// "running points: 820 of 2000 points, 80/s, 15 s left; 2 failed": count, rate and the time that is left, as far as
/// they are known.
std::string progress_text(const ActivityState&);
/// The outermost step that counts, and after it the newest step; empty where no step is under way.
std::string progress_text(const CurrentActivities&);

}  // namespace stagecraft
