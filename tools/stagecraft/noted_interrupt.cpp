// Notes signals that would end the process, so that `compare`, `report`, `search` and `sweep` stop at the next safe
// point and keep what is finished.

#include "tools/stagecraft/noted_interrupt.hpp"

namespace stagecraft {
namespace {

volatile std::sig_atomic_t interrupted = 0;  // The signal that came; 0: none.

void note(int signal) { interrupted = signal; }

}  // namespace

NotedInterrupt::NotedInterrupt(const std::vector<int>& signals) {
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
const char* NotedInterrupt::word() { return signal_word(interrupted); }

int NotedInterrupt::exit_code() {
  constexpr int kBySignal = 128;  // A shell adds it to the number of the signal.
  return kBySignal + (came() ? interrupted : SIGINT);
}

}  // namespace stagecraft
