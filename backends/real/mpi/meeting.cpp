#include "backends/real/mpi/meeting.hpp"

#include <fmt/core.h>
#include <atomic>
#include <vector>

#include "backends/real/byte_text.hpp"
#include "backends/real/mpi/wire.hpp"
#include "sim/core/text.hpp"

namespace stagecraft::real {
namespace {

// How long the first process waits for silent ones; the others wait for the first twice as long.
constexpr std::chrono::seconds kPatience{3};

Standing where = Standing::Working;
Ending final_ending;

Deadline soon(int patience) { return std::chrono::steady_clock::now() + patience * kPatience; }

std::string to_bytes(const Ending& ending) {
  ByteWriter out;
  out.put(ending.code);
  return out.take() + ending.text;
}

Ending ending_from(const std::string& bytes) {
  ByteReader in(bytes);
  const int code = in.get<int>();
  return {code, std::string(in.rest())};
}

void add_lines(std::string& text, const std::string& more) {
  text += (text.empty() || text.back() == '\n' ? "" : "\n") + more;
}

/// The first failure counts. Others that begin like it, as all stuck processes do, add the rest of their text.
void add(Ending& sum, const Ending& other) {
  if (other.code == 0) return;
  if (sum.text.empty()) {
    if (sum.code == 0 || !other.text.empty()) sum = other;
    return;
  }
  const std::size_t headline = other.text.find('\n');
  const bool alike = headline != std::string::npos && sum.text.starts_with(other.text.substr(0, headline + 1));
  if (alike && sum.text != other.text) add_lines(sum.text, other.text.substr(headline + 1));
}

Ending exchange_with_first(const Ending& ending) {
  const Deadline deadline = ending.code ? soon(2) : Deadline{};
  const auto answer = send_text(0, to_bytes(ending), deadline) ? receive_text(0, deadline) : std::nullopt;
  if (answer) return ending_from(*answer);
  where = Standing::Unheard;
  return ending;
}

Ending collect_endings(const Ending& ending) {
  Ending sum = ending;
  Deadline deadline = ending.code ? soon(1) : Deadline{};
  std::vector<int> heard, silent;
  for (int r = 1; r < world().size; ++r) {
    const auto words = receive_text(r, deadline);
    (words ? heard : silent).push_back(r);
    if (words) add(sum, ending_from(*words));
    if (sum.code != 0 && !deadline) deadline = soon(1);
  }
  if (sum.code != 0 && sum.text.empty()) sum.text = "failed: a process ended without a word";
  for (const int r : silent) add_lines(sum.text, fmt::format("no answer from process {} of {}", r, world().size));
  if (!silent.empty()) where = Standing::Unheard;
  for (const int r : heard) send_text(r, to_bytes({sum.code, {}}), deadline);
  return sum;
}

}  // namespace

Standing standing() { return where; }
void part(bool whole) { where = whole ? Standing::Parted : Standing::Bereft; }

Ending meet(const Ending& ending) {
  if (where != Standing::Working) return final_ending;
  Ending sum = world().rank == 0 ? collect_endings(ending) : exchange_with_first(ending);
  if (sum.code == 0) return sum;
  if (where == Standing::Working) where = Standing::Failed;
  return final_ending = sum;
}

void meet() {
  if (meet(Ending{}).code != 0) throw FailedElsewhere();
}

namespace {

std::atomic<bool> stop_requested{false};
static_assert(std::atomic<bool>::is_always_lock_free);  // Else a handler might not touch it.

}  // namespace

StopSignal::StopSignal() {
  struct sigaction note {};
  note.sa_handler = [](int) { stop_requested.store(true); };
  sigemptyset(&note.sa_mask);
  note.sa_flags = SA_RESTART;
  sigaction(SIGTERM, &note, &before_);
}

StopSignal::~StopSignal() {
  if (!stop_requested_by_launcher()) sigaction(SIGTERM, &before_, nullptr);
}

bool stop_requested_by_launcher() { return stop_requested.load(); }

}  // namespace stagecraft::real
