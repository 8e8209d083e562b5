#include "sim/core/activity.hpp"

#include <pthread.h>

#include <algorithm>
#include <mutex>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace stagecraft {
namespace {

struct Register {
  std::mutex mutex;
  std::vector<const Activity*> alive;
};

Register& activities() {
  static Register& all = *new Register;
  // A process that is forked while another thread reads must not inherit a locked mutex.
  [[maybe_unused]] static const int once = pthread_atfork(
      [] { activities().mutex.lock(); }, [] { activities().mutex.unlock(); }, [] { activities().mutex.unlock(); });
  return all;
}

}  // namespace

Activity::Activity(std::string what) : what_(std::move(what)) {
  Register& all = activities();
  const std::scoped_lock lock(all.mutex);
  all.alive.push_back(this);
}

Activity::~Activity() {
  Register& all = activities();
  const std::scoped_lock lock(all.mutex);
  std::erase(all.alive, this);
}

std::string Activity::text() const {
  const char* unit = unit_;
  return unit == nullptr ? what_ : fmt::format("{}: {} {} so far", what_, done_.load(), unit);
}

std::string current_activity() {
  Register& all = activities();
  const std::scoped_lock lock(all.mutex);
  return all.alive.empty() ? std::string() : all.alive.back()->text();
}

}  // namespace stagecraft
