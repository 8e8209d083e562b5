#pragma once

#include <atomic>
#include <cstdint>
#include <string>

namespace stagecraft {

/// A step that may take long, while it lasts, for a user who waits. Steps nest, and the newest one counts.
class Activity {
 public:
  explicit Activity(std::string what);  ///< "planning with 'brute'"
  Activity(const Activity&) = delete;
  Activity& operator=(const Activity&) = delete;
  ~Activity();

  /// What has been done so far, in units such as "divisions".
  void count(std::int64_t done, const char* unit) { unit_ = unit, done_ = done; }
  std::string text() const;

 private:
  std::string what_;
  std::atomic<const char*> unit_ = nullptr;
  std::atomic<std::int64_t> done_ = 0;
};

/// The newest step of this process; empty if there is none. Any thread may ask.
std::string current_activity();

}  // namespace stagecraft
