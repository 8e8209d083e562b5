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
  static Register& registry = *new Register;
  // A process that is forked while another thread reads must not inherit a locked mutex.
  [[maybe_unused]] static const int once = pthread_atfork(
      [] { activities().mutex.lock(); }, [] { activities().mutex.unlock(); }, [] { activities().mutex.unlock(); });
  return registry;
}

}  // namespace

Activity::Activity(std::string what) : what_(std::move(what)) {
  Register& registry = activities();
  const std::scoped_lock lock(registry.mutex);
  registry.alive.push_back(this);
}

Activity::~Activity() {
  Register& registry = activities();
  const std::scoped_lock lock(registry.mutex);
  std::erase(registry.alive, this);
}

std::string Activity::text() const {
  const char* unit = unit_;
  return unit == nullptr ? what_ : fmt::format("{}: {} {} so far", what_, done_.load(), unit);
}

std::string current_activity() {
  Register& registry = activities();
  const std::scoped_lock lock(registry.mutex);
  return registry.alive.empty() ? std::string() : registry.alive.back()->text();
}

}  // namespace stagecraft
