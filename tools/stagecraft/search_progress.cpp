#include "tools/stagecraft/search_progress.hpp"

#include <unistd.h>

#include <cstdlib>

#include <fmt/format.h>

#include "tools/stagecraft/command.hpp"

namespace stagecraft {

using namespace std::chrono_literals;

std::string progress_text(const SearchProgress& p) {
  std::string text = fmt::format("{}: {} simulated, {}, {:.0f}/s", p.phase, p.simulated,
                                 p.best ? to_text(known_period(*p.best)) + " so far" : "nothing yet", p.rate);
  // What is found on the way makes most of what waits superfluous, so this is the longest that it can take.
  if (p.waiting > 0 && p.rate > 0) text += fmt::format(", at most {} to go ({:.0f} s)", p.waiting, p.waiting / p.rate);
  return text;
}

SearchProgressLine::SearchProgressLine(bool quiet)
    : terminal_(isatty(STDERR_FILENO) != 0), quiet_(quiet || std::getenv("STAGECRAFT_QUIET") != nullptr) {}

SearchProgressLine::~SearchProgressLine() { hide_progress(); }

void SearchProgressLine::show(const SearchProgress& p) {
  const auto now = std::chrono::steady_clock::now();
  if (quiet_ || now - last_ < (terminal_ ? 200ms : 5000ms)) return;
  last_ = now;
  if (terminal_)
    show_progress(progress_text(p));
  else
    print_error("{}\n", progress_text(p));
}

}  // namespace stagecraft
