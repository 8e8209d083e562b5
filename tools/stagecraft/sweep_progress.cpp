#include "tools/stagecraft/sweep_progress.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include "tools/stagecraft/command.hpp"

namespace stagecraft {
namespace {

using namespace std::chrono_literals;

volatile std::sig_atomic_t interrupted = 0;

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

NotedInterrupt::NotedInterrupt(std::vector<int> signals) {
  interrupted = 0;
  for (const int signal : signals) {
    struct sigaction before {
    }, noted{};
    noted.sa_handler = note;
    sigaction(signal, nullptr, &before);
    if (before.sa_handler == SIG_IGN) continue;
    sigaction(signal, &noted, nullptr);
    before_.emplace_back(signal, before);
  }
}

NotedInterrupt::~NotedInterrupt() {
  for (const auto& [signal, before] : before_) sigaction(signal, &before, nullptr);
}

bool NotedInterrupt::came() { return interrupted != 0; }

}  // namespace stagecraft
