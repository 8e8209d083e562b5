// Signals that ask for an end. Their handler removes half-written files and says what was kept: main.cpp installs it,
// and commands set its text. Commands that note them, such as `search`, stop at the next safe point and keep what is
// finished.

#include "tools/stagecraft/interrupt.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstring>
#include <deque>
#include <initializer_list>

#include "sim/core/output.hpp"

namespace stagecraft {
namespace {

std::atomic<const char*> interrupt_text = nullptr;
pid_t owner = 0;
bool terminal = false;
volatile std::sig_atomic_t noted_signal = 0;  // The signal that a NotedInterrupt noted; 0: none.

/// In one call, so that no text of another thread comes in between.
void say(std::initializer_list<const char*> parts) {
  std::array<char, 1 << 13> text;
  std::size_t size = 0;
  for (const char* part : parts) {
    const std::size_t length = std::min(std::strlen(part), text.size() - size);
    std::memcpy(text.data() + size, part, length);
    size += length;
  }
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, text.data(), size);
}

const char* what_was_kept() {
  if (const char* said = interrupt_text) return said;
  return files_written() > 0 ? "the files written so far are whole" : "nothing was kept";
}

/// Calls only what POSIX allows in a handler.
void end(int signal) {
  if (getpid() == owner) {  // A child that was forked a moment ago has this handler too.
    remove_half_written();
    say({terminal ? "\r\033[K" : "", signal_word(signal), "; ", what_was_kept(), "\n"});
  }
  raise(signal);
}

void note(int signal) { noted_signal = signal; }

}  // namespace

const char* signal_word(int signal) {
  return signal == SIGTERM ? "terminated" : signal == SIGHUP ? "hung up" : "interrupted";
}

void end_on_interrupt() {
  owner = getpid();
  terminal = isatty(STDERR_FILENO) != 0;
  struct sigaction before = {}, ours = {};
  ours.sa_handler = end;
  ours.sa_flags = static_cast<int>(SA_RESETHAND | SA_NODEFER);
  for (const int signal : kEndingSignals) {
    sigaction(signal, nullptr, &before);
    if (before.sa_handler != SIG_IGN) sigaction(signal, &ours, nullptr);
  }
}

void on_interrupt_say(const std::string& text) {
  static auto& said = *new std::deque<std::string>;  // The handler may come at any time, so none of them goes away.
  interrupt_text = said.emplace_back(text).c_str();
}

NotedInterrupt::NotedInterrupt(const std::vector<int>& signals) {
  noted_signal = 0;
  for (const int signal : signals) {
    struct sigaction before = {}, noting = {};
    noting.sa_handler = note;
    sigaction(signal, nullptr, &before);
    if (before.sa_handler == SIG_IGN) continue;
    sigaction(signal, &noting, nullptr);
    before_.emplace_back(signal, before);
  }
}

NotedInterrupt::~NotedInterrupt() {
  for (const auto& [signal, before] : before_) sigaction(signal, &before, nullptr);
}

bool NotedInterrupt::came() { return noted_signal != 0; }
const char* NotedInterrupt::word() { return signal_word(noted_signal); }

int NotedInterrupt::exit_code() {
  constexpr int kBySignal = 128;  // A shell adds it to the number of the signal.
  return kBySignal + (came() ? noted_signal : SIGINT);
}

}  // namespace stagecraft
