#include "backends/real/mpi/meeting.hpp"

#include <fmt/core.h>
#include <unistd.h>
#include <algorithm>
#include <atomic>
#include <string_view>
#include <vector>

#include "backends/real/byte_text.hpp"
#include "backends/real/mpi/wire.hpp"
#include "sim/core/text.hpp"

namespace stagecraft::real {
namespace {

// How long the first process waits for silent ones; the others wait for the first twice as long.
constexpr std::chrono::seconds kPatience{3};
constexpr std::chrono::seconds kHalfMinute{30};

using Wait = std::chrono::duration<double>;
const auto begin = std::chrono::steady_clock::now();

Standing where = Standing::Working;
Ending final_ending;

Deadline soon(int patience) { return std::chrono::steady_clock::now() + patience * kPatience; }

Deadline after(Wait patience) {
  return std::chrono::steady_clock::now() + std::chrono::duration_cast<std::chrono::steady_clock::duration>(patience);
}

/// What is said where a process is silent.
std::string silence_text(int process) { return fmt::format("no answer from process {} of {}", process, world().size); }

std::string to_bytes(const Ending& ending) {
  ByteWriter out;
  out.put(ending.code);
  return out.take() + ending.text;
}

Ending ending_from(const std::string& bytes) {
  if (bytes.size() < sizeof(int)) return {4, "failed: a process of another build of this program is among them"};
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

Ending exchange_with_first(const Ending& ending, Wait patience) {
  const Deadline deadline = ending.code ? soon(2) : after(2 * patience);
  const auto answer = send_text(0, to_bytes(ending), deadline) ? receive_text(0, deadline) : std::nullopt;
  if (answer) return ending_from(*answer);
  where = Standing::Unheard;
  return ending.code
             ? ending
             : Ending{4, fmt::format("failed: the first process has not answered for {:.3g} s", 2 * patience.count())};
}

Ending collect_endings(const Ending& ending, Wait patience) {
  Ending sum = ending;
  Deadline deadline = ending.code ? soon(1) : after(patience);
  std::vector<int> heard, silent;
  for (int r = 1; r < world().size; ++r) {
    const auto words = receive_text(r, deadline);
    (words ? heard : silent).push_back(r);
    if (words) add(sum, ending_from(*words));
    if (sum.code != 0) deadline = std::min(deadline, soon(1));
  }
  if (sum.code == 0 && !silent.empty())
    sum = {4, fmt::format("failed: another process has not answered for {:.3g} s", patience.count())};
  if (sum.code != 0 && sum.text.empty()) sum.text = "failed: a process ended without a word";
  for (const int r : silent) add_lines(sum.text, silence_text(r));
  if (!silent.empty()) where = Standing::Unheard;
  for (const int r : heard) send_text(r, to_bytes({sum.code, {}}), deadline);
  return sum;
}

}  // namespace

Standing standing() { return where; }
void part(bool whole) { where = whole ? Standing::Parted : Standing::Bereft; }

Ending meet(const Ending& ending, Wait patience) {
  if (where != Standing::Working) return final_ending;
  Ending sum = world().rank == 0 ? collect_endings(ending, patience) : exchange_with_first(ending, patience);
  if (sum.code == 0) return sum;
  if (where == Standing::Working) where = Standing::Failed;
  return final_ending = sum;
}

void meet(Wait patience) {
  if (meet(Ending{}, patience).code != 0) throw FailedElsewhere();
}

Wait patience_for_equals() {
  constexpr int kTimesSlower = 10;
  return kHalfMinute + kTimesSlower * (std::chrono::steady_clock::now() - begin);
}

/// Each of the others sends what it would end with if it is another build; an older one, which sends nothing of the
/// kind, takes the words for such an end.
void require_same_build(const std::string& build) {
  const std::string text =
      to_bytes({4, fmt::format("failed: the processes are different builds of stagecraft; this is {}", build)});
  if (world().rank > 0) {
    const Deadline deadline = after(2 * kHalfMinute);
    const auto answer = send_text(0, text, deadline) ? receive_text(0, deadline) : std::nullopt;
    if (answer && ending_from(*answer).code == 0) return;
    where = answer ? Standing::Failed : Standing::Unheard;
    final_ending.code = 4;
    if (answer) throw FailedElsewhere();
    final_ending.text =
        fmt::format("failed: the first process has not answered for {:.3g} s", 2 * Wait(kHalfMinute).count());
    throw BackendError(final_ending.text);
  }
  const Deadline deadline = after(kHalfMinute);
  std::string others, silent;
  std::vector<int> heard;
  for (int r = 1; r < world().size; ++r) {
    const auto words = receive_text(r, deadline);
    if (words) heard.push_back(r);
    if (words && *words != text) add_lines(others, fmt::format("process {} of {} is another build", r, world().size));
    if (!words) add_lines(silent, silence_text(r));
  }
  const bool fine = others.empty() && silent.empty();
  for (const int r : heard) send_text(r, to_bytes({fine ? 0 : 4, {}}), soon(1));
  if (fine) return;
  where = silent.empty() ? Standing::Failed : Standing::Unheard;
  final_ending = {
      4, others.empty()
             ? std::string("failed: not all of the processes have joined in time")
             : fmt::format("failed: the processes are different builds of stagecraft; the first is {}", build)};
  for (const std::string& more : {others, silent})
    if (!more.empty()) add_lines(final_ending.text, more);
  throw BackendError(final_ending.text);
}

namespace {

void end_alone(int) {
  constexpr std::string_view kWhy = "failed: not all of the processes have joined in time\n";
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, kWhy.data(), kWhy.size());
  _exit(4);
}

}  // namespace

JoinAlarm::JoinAlarm() {
  std::signal(SIGALRM, end_alone);
  alarm(static_cast<unsigned>(2 * patience_for_equals().count()));
}

JoinAlarm::~JoinAlarm() {
  alarm(0);
  std::signal(SIGALRM, SIG_DFL);
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
