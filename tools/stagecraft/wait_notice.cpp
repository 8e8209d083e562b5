#include "tools/stagecraft/wait_notice.hpp"

#include <cstdlib>
#include <system_error>

#include <fmt/format.h>

#include "sim/core/activity.hpp"
#include "tools/stagecraft/command.hpp"

namespace stagecraft {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr std::chrono::seconds kFirst{5}, kNext{10};

}  // namespace

WaitNotice::WaitNotice() {
  if (std::getenv("STAGECRAFT_QUIET") != nullptr) return;
  try {
    thread_ = std::thread([this] { watch(); });
  } catch (const std::system_error&) {
    // No thread can be started; the command works without the notice.
  }
}

WaitNotice::~WaitNotice() {
  {
    const std::scoped_lock lock(mutex_);
    ended_ = true;
  }
  ended_condition_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void WaitNotice::watch() {
  std::unique_lock lock(mutex_);
  for (auto next = begin_ + kFirst; !ended_condition_.wait_until(lock, next, [&] { return ended_; }); next += kNext) {
    const std::string doing = current_activity();
    if (doing.empty() || progress_is_shown()) continue;
    const auto passed = std::chrono::duration_cast<std::chrono::seconds>(SteadyClock::now() - begin_);
    print_error("after {} s: {}\n", passed.count(), doing);
  }
}

}  // namespace stagecraft
