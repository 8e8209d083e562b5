// The thread that shows on stderr what a command does once that takes more than two seconds: in one line on a terminal,
// every five seconds elsewhere.

#include "tools/stagecraft/progress.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <new>

#include "sim/core/activity.hpp"
#include "sim/core/text.hpp"
#include "sim/core/threads.hpp"
#include "tools/stagecraft/command.hpp"

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
  const std::size_t width = (has_size ? size.ws_col : kUsualWidth) - 1;
  return text.size() <= width ? text : text.substr(0, width - 3) + "...";
}

void show(const std::string& text, bool on_terminal) {
  if (!on_terminal) return write_error(printable(text) + "\n");
  if (text.empty()) return hide_progress();
  is_shown = true;
  write_error("\r\033[K" + cut_to_terminal(printable(text)));
}

}  // namespace

void hide_progress() {
  if (is_shown.exchange(false)) write_error("\r\033[K");
}

Progress::Progress(bool quiet) : terminal_(isatty(STDERR_FILENO) != 0) {
  if (quiet || std::getenv("STAGECRAFT_QUIET") != nullptr) return;
  thread_ = thread_if_possible([this] { watch(); });  // Else the command works without its progress.
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

void Progress::watch() try {
  std::unique_lock lock(mutex_);
  const auto next_after = terminal_ ? kNextOnTerminal : kNextElsewhere;
  for (auto next = begin_ + kFirst; !ended_condition_.wait_until(lock, next, [&] { return ended_; });
       next += next_after)
    if (const std::string text = progress_text(current_activities()); terminal_ || !text.empty()) show(text, terminal_);
} catch (const std::bad_alloc&) {
  // The command works without its progress.
}

}  // namespace stagecraft
