// Reads the clock of the first process over messages, so that the times of all processes can be joined.

#include "backends/real/processes/first_clock.hpp"

#include <thread>

#include <fmt/core.h>

#include "backends/real/byte_text.hpp"
#include "sim/core/diagnostic.hpp"

namespace stagecraft::real {
namespace {

constexpr int kRounds = 32;

void send_clock(int process) {
  ByteWriter out;
  out.put(steady_seconds());
  wire().post(process, WordKind::Clock, out.take());
}

std::optional<std::string> take_at_once(int process, Deadline deadline) {
  while (std::chrono::steady_clock::now() < deadline && wire().loss(process).empty() && !is_failing(process)) {
    if (auto text = wire().take(process, WordKind::Clock)) return text;
    std::this_thread::yield();
  }
  return {};
}

/// `at_once`: it waits without a pause, because the time of an answer is measured.
double receive_clock(int process, Patience patience, bool at_once = true) {
  std::optional<std::string> text;
  if (at_once) text = take_at_once(process, deadline_after(patience));
  if (!text) text = receive_text(process, WordKind::Clock, at_once ? Deadline{} : deadline_after(patience));
  if (text) return ByteReader(*text).get<double>();
  const std::string loss = wire().loss(process);
  throw BackendError(
      loss.empty() ? fmt::format("{} has not answered for {:.3g} s", process_name(process), patience.count()) : loss);
}

void answer(int process, Patience patience) {
  send_clock(process);  // It is the turn of this process.
  for (int round = 0; round < kRounds; ++round) {
    receive_clock(process, patience);
    send_clock(process);
  }
}

ClockReading ask(Patience patience) {
  receive_clock(0, patience, false);
  ClockReading best;
  for (int round = 0; round < kRounds; ++round) {
    const double asked = steady_seconds();
    send_clock(0);
    const double there = receive_clock(0, patience);
    const ClockReading reading = clock_reading(asked, there, steady_seconds());
    if (round == 0 || reading.uncertainty < best.uncertainty) best = reading;
  }
  return best;
}

}  // namespace

/// The answer that came fastest counts. The others have more patience, so that the first says
/// who is silent.
ClockReading read_first_clock(Patience patience) {
  if (world().rank > 0) return ask(longer(patience));
  for (int process = 1; process < world().size; ++process) answer(process, patience);
  return {};
}

}  // namespace stagecraft::real
