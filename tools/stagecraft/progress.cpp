#include "tools/stagecraft/progress.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <system_error>

#include <fmt/core.h>

#include "sim/core/activity.hpp"
#include "sim/core/text.hpp"

namespace stagecraft {
namespace {

using namespace std::chrono_literals;

constexpr auto kFirst = 2000ms, kNextOnTerminal = 200ms, kNextElsewhere = 5000ms;

std::atomic<bool> is_shown = false;

/// A longer line would continue on the next one, which "\r" does not reach.
std::string cut_to_terminal(const std::string& text) {
  constexpr int kUsualWidth = 80;
  winsize size{};
  const bool has_size = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  const auto width = static_cast<std::size_t>((has_size ? size.ws_col : kUsualWidth) - 1);
  return text.size() <= width ? text : text.substr(0, width - 3) + "...";
}

void show(const std::string& text, bool on_terminal) {
  if (!on_terminal) return fmt::print(stderr, "{}\n", printable(text));
  if (text.empty()) return hide_progress();
  is_shown = true;
  fmt::print(stderr, "\r\033[K{}", cut_to_terminal(printable(text)));
  std::fflush(stderr);
}

}  // namespace

void hide_progress() {
  if (is_shown.exchange(false)) fmt::print(stderr, "\r\033[K");
}

Progress::Progress(bool quiet) : terminal_(isatty(STDERR_FILENO) != 0) {
  if (quiet || std::getenv("STAGECRAFT_QUIET") != nullptr) return;
  try {
    thread_ = std::thread([this] { watch(); });
  } catch (const std::system_error&) {
    // No thread can be started; the command works without its progress.
  }
}

Progress::~Progress() {
  {
    const std::scoped_lock lock(mutex_);
    ended_ = true;
  }
  ended_condition_.notify_one();
  if (thread_.joinable()) thread_.join();
  hide_progress();
}

void Progress::watch() {
  std::unique_lock lock(mutex_);
  const auto next_after = terminal_ ? kNextOnTerminal : kNextElsewhere;
  for (auto next = begin_ + kFirst; !ended_condition_.wait_until(lock, next, [&] { return ended_; });
       next += next_after)
    if (const std::string text = progress_text(current_activities()); terminal_ || !text.empty()) show(text, terminal_);
}

}  // namespace stagecraft
