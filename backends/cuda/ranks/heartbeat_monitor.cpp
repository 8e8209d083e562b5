// Combines the progress of all processes ten times a second, so that each learns when one has failed or all are stuck.

#include "backends/cuda/ranks/heartbeat_monitor.hpp"

#include <fmt/core.h>

#include "backends/real/clocks.hpp"
#include "backends/world.hpp"

namespace stagecraft::cuda {
namespace {

constexpr double kPulse = 0.1;         // Seconds between two times that they tell each other how they get on.
constexpr double kLastPatience = 3.0;  // Seconds for the others to hear that this one has failed.

}  // namespace

HeartbeatMonitor::HeartbeatMonitor(double timeout) : timeout_(timeout), moved_at_(real::steady_seconds()) {}

ProgressEvent HeartbeatMonitor::beat(bool moved) {
  moved_ = moved_ || moved;
  const double now = real::steady_seconds();
  const auto end = [this](ProgressEvent news) {
    over_ = true;
    return news;
  };
  if (processes_.stop_requested_by_launcher()) return end(ProgressEvent::Stop);
  if (!under_way_ && now < next_) return ProgressEvent::Still;
  if (!under_way_) {
    if (moved_) moved_at_ = now;
    own_ = {moved_, 0, !through_ && now - moved_at_ > timeout_, !through_};
    asked_ = now;
    moved_ = false;
  }
  const auto sum = processes_.pulse(own_);
  under_way_ = !sum;
  if (!sum) return now - asked_ > timeout_ ? end(ProgressEvent::Silent) : ProgressEvent::Still;
  next_ = now + kPulse;
  if (sum->failed > 0) {
    over_ = true;
    throw FailedElsewhere();
  }
  if (sum->stuck > 0) return end(ProgressEvent::Stuck);
  all_through_ = sum->unfinished == 0;
  if (sum->moving > 0) moved_at_ = now;
  return sum->moving > 0 ? ProgressEvent::Moved : ProgressEvent::Still;
}

WaitPolicy HeartbeatMonitor::at_most(double seconds) {
  return [this, seconds](const std::function<bool()>& done) {
    real::Nap nap;
    for (const double begin = real::steady_seconds(); !done(); nap()) {
      const ProgressEvent news = beat(true);
      if (news == ProgressEvent::Stop) throw BackendError("told to stop while the GPUs were being connected");
      if (news == ProgressEvent::Silent || real::steady_seconds() - begin > seconds)
        throw BackendError(fmt::format("the GPUs were not connected within {:.3g} s", real::steady_seconds() - begin));
    }
  };
}

ProgressEvent HeartbeatMonitor::last_event() {
  real::Nap nap;
  for (const double begin = real::steady_seconds(); under_way_ && !over_; nap()) {
    const ProgressEvent news = beat(false);
    if (over_ || real::steady_seconds() - begin > kLastPatience) return news;
  }
  return ProgressEvent::Still;
}

void HeartbeatMonitor::through() {
  through_ = true;
  real::Nap nap;
  for (; !all_through_; nap()) {
    const ProgressEvent news = beat(false);
    if (news == ProgressEvent::Stuck) throw FailedElsewhere();
    if (news == ProgressEvent::Stop) throw BackendError("told to stop while other processes were at work");
    if (news == ProgressEvent::Silent)
      throw BackendError(fmt::format("another process has not answered for {:.3g} s", timeout_));
  }
}

void HeartbeatMonitor::failed() noexcept try {
  if (over_) return;
  real::Nap nap;
  const double begin = real::steady_seconds();
  while (under_way_) {  // What was said before comes first.
    if (const auto sum = processes_.pulse(own_)) {
      if (sum->failed + sum->stuck > 0) return;  // Then the others have left.
      break;
    }
    if (real::steady_seconds() - begin > kLastPatience) return;
    nap();
  }
  while (!processes_.pulse({0, 1, 0, 0})) {
    if (real::steady_seconds() - begin > kLastPatience) return;
    nap();
  }
} catch (...) {  // The failure that there was already counts.
}

}  // namespace stagecraft::cuda
