#include "backends/cuda/ranks/crew.hpp"

#include <fmt/format.h>

#include "backends/real/clocks.hpp"
#include "backends/world.hpp"

namespace stagecraft::cuda {
namespace {

constexpr double kPulse = 0.1;         // Seconds between two times that they tell each other how they get on.
constexpr double kLastPatience = 3.0;  // Seconds for the others to hear that this one has failed.

}  // namespace

Crew::Crew(double timeout) : timeout_(timeout), moved_at_(real::steady_seconds()) {}

News Crew::beat(bool moved) {
  moved_ = moved_ || moved;
  const double now = real::steady_seconds();
  const auto end = [this](News news) {
    over_ = true;
    return news;
  };
  if (company_.told_to_stop()) return end(News::Stop);
  if (!under_way_ && now < next_) return News::Still;
  if (!under_way_) {
    if (moved_) moved_at_ = now;
    own_ = {moved_, 0, !through_ && now - moved_at_ > timeout_, !through_};
    asked_ = now;
    moved_ = false;
  }
  const auto all = company_.pulse(own_);
  under_way_ = !all;
  if (!all) return now - asked_ > timeout_ ? end(News::Silent) : News::Still;
  next_ = now + kPulse;
  if (all->failed > 0) {
    over_ = true;
    throw FailedElsewhere();
  }
  if (all->stuck > 0) return end(News::Stuck);
  all_through_ = all->unfinished == 0;
  if (all->moving > 0) moved_at_ = now;
  return all->moving > 0 ? News::Moved : News::Still;
}

Until Crew::at_most(double seconds) {
  return [this, seconds](const std::function<bool()>& done) {
    real::Nap nap;
    for (const double begin = real::steady_seconds(); !done(); nap()) {
      const News news = beat(true);
      if (news == News::Stop) throw BackendError("told to stop while the GPUs were being connected");
      if (news == News::Silent || real::steady_seconds() - begin > seconds)
        throw BackendError(fmt::format("the GPUs were not connected within {:.3g} s", real::steady_seconds() - begin));
    }
  };
}

News Crew::hear_out() {
  real::Nap nap;
  for (const double begin = real::steady_seconds(); under_way_ && !over_; nap()) {
    const News news = beat(false);
    if (over_ || real::steady_seconds() - begin > kLastPatience) return news;
  }
  return News::Still;
}

void Crew::through() {
  through_ = true;
  real::Nap nap;
  for (; !all_through_; nap()) {
    const News news = beat(false);
    if (news == News::Stuck) throw FailedElsewhere();
    if (news == News::Stop) throw BackendError("told to stop while other processes were at work");
    if (news == News::Silent)
      throw BackendError(fmt::format("another process has not answered for {:.3g} s", timeout_));
  }
}

void Crew::failed() noexcept try {
  if (over_) return;
  real::Nap nap;
  const double begin = real::steady_seconds();
  while (under_way_) {  // What was said before comes first.
    if (const auto all = company_.pulse(own_)) {
      if (all->failed + all->stuck > 0) return;  // Then the others have left.
      break;
    }
    if (real::steady_seconds() - begin > kLastPatience) return;
    nap();
  }
  while (!company_.pulse({0, 1, 0, 0})) {
    if (real::steady_seconds() - begin > kLastPatience) return;
    nap();
  }
} catch (...) {  // The failure that there was already counts.
}

}  // namespace stagecraft::cuda
