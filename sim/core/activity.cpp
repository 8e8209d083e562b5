// What the long steps of this process have done so far; a progress line on stderr reads it.

#include "sim/core/activity.hpp"

#include <pthread.h>

#include <algorithm>
#include <cmath>
#include <mutex>
#include <utility>
#include <vector>

#include <fmt/core.h>

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

void Activity::note(std::string text) {
  const std::scoped_lock lock(mutex_);
  note_ = std::move(text);
}

ActivityState Activity::state() const {
  const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - begin_;
  const std::scoped_lock lock(mutex_);
  return {what_, unit_, done_, total_, before_, note_, passed.count()};
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

namespace {

std::string duration_text(double seconds) {
  const auto whole = static_cast<long>(std::ceil(std::min(seconds, 1e9)));
  if (whole < 60) return fmt::format("{} s", whole);
  if (whole < 3600) return fmt::format("{} min {:02} s", whole / 60, whole % 60);
  return fmt::format("{} h {:02} min", whole / 3600, whole % 3600 / 60);
}

}  // namespace

std::string progress_text(const ActivityState& s) {
  std::string text = s.what;
  if (s.unit != nullptr) {
    text +=
        s.total > 0 ? fmt::format(": {} of {} {}", s.done, s.total, s.unit) : fmt::format(": {} {}", s.done, s.unit);
    const std::int64_t finished = s.done - s.before;
    if (finished > 0 && s.seconds > 0) {
      const double rate = static_cast<double>(finished) / s.seconds;
      text += rate < 100 ? fmt::format(", {:.3g}/s", rate) : fmt::format(", {:.0f}/s", rate);
      if (s.total > s.done)
        text += fmt::format(", {} left", duration_text(static_cast<double>(s.total - s.done) / rate));
    }
  }
  return s.note.empty() ? text : text + "; " + s.note;
}

std::string progress_text(const CurrentActivities& current) {
  if (!current.newest) return {};
  if (!current.counted) return progress_text(*current.newest);
  const std::string text = progress_text(*current.counted);
  return current.newest->what == current.counted->what ? text : text + "; " + current.newest->what;
}

CurrentActivities current_activities() {
  Register& registry = activities();
  const std::scoped_lock lock(registry.mutex);
  CurrentActivities current;
  if (registry.alive.empty()) return current;
  current.newest = registry.alive.back()->state();
  for (const Activity* activity : registry.alive) {
    const ActivityState state = activity->state();
    if (state.unit == nullptr) continue;
    current.counted = state;
    break;
  }
  return current;
}

}  // namespace stagecraft
