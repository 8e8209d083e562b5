#include "tools/stagecraft/sweep_progress.hpp"

#include <csignal>

#include <fmt/format.h>
#include <unistd.h>

#include "tools/stagecraft/command.hpp"

namespace stagecraft {
namespace {

using namespace std::chrono_literals;

volatile std::sig_atomic_t interrupted = 0;
struct sigaction before;

void note(int) { interrupted = 1; }

}  // namespace

SweepProgressLine::SweepProgressLine() : terminal_(isatty(STDERR_FILENO) != 0) {}

SweepProgressLine::~SweepProgressLine() { hide_progress(); }

void SweepProgressLine::show(const SweepProgress& p) {
  const auto now = std::chrono::steady_clock::now();
  if (now - last_ < (terminal_ ? 100ms : 10000ms)) return;
  last_ = now;
  if (terminal_)
    show_progress(progress_text(p, true));
  else
    print_error("{}\n", progress_text(p, false));
}

NotedInterrupt::NotedInterrupt() {
  struct sigaction noted {};
  noted.sa_handler = note;
  interrupted = 0;
  sigaction(SIGINT, nullptr, &before);
  if (before.sa_handler != SIG_IGN) sigaction(SIGINT, &noted, nullptr);
}

NotedInterrupt::~NotedInterrupt() { sigaction(SIGINT, &before, nullptr); }

bool NotedInterrupt::came() { return interrupted != 0; }

}  // namespace stagecraft
