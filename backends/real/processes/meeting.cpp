// How the processes of a world wait for each other, and how all of them end with one text when one fails.

#include "backends/real/processes/meeting.hpp"

#include <fmt/core.h>
#include <sys/time.h>
#include <unistd.h>
#include <algorithm>
#include <atomic>
#include <cmath>
#include <string_view>
#include <utility>
#include <vector>

#include "backends/real/byte_text.hpp"
#include "sim/core/diagnostic.hpp"
#include "sim/core/text.hpp"

namespace stagecraft::real {
namespace {

constexpr Patience kHalfMinute{30};
// How long the first process waits for silent ones after a failure; the others wait for the first twice as long.
constexpr Patience kAfterFailure{3};

const auto started = std::chrono::steady_clock::now();
Patience run_patience = kHalfMinute;

WorldState state_of_world = WorldState::Working;
Ending final_ending;

/// All waits after a failure together are shorter than the patience of the run.
Deadline soon(int times) { return deadline_after(times * patience_after_failure()); }

/// What is said where a process is silent.
std::string silence_text(int process) {
  const std::string loss = wire().loss(process);
  if (loss.empty()) return "no answer from " + process_name(process);
  const std::string cause = wire().cause(process);
  return loss + (cause.empty() ? "" : ": " + cause);
}

std::string no_answer_text(Patience patience) {
  const std::string loss = wire().loss(0);
  return "failed: " +
         (loss.empty() ? fmt::format("the first process has not answered for {:.3g} s", patience.count()) : loss);
}

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

Ending exchange_with_first(const Ending& ending, Patience patience) {
  wire().post(0, WordKind::Ending, to_bytes(ending));
  const auto answer = receive_text(0, WordKind::Ending, ending.code ? soon(2) : deadline_after(longer(patience)));
  if (answer) return ending_from(*answer);
  state_of_world = WorldState::Unreachable;
  return ending.code ? ending : Ending{4, no_answer_text(longer(patience))};
}

/// The headline of a failure that lists what processes wait for; the others add what they wait for below it.
std::string headline_of_list(const std::string& text) {
  constexpr std::string_view kBegin = "failed: ", kEnd = ":";
  const std::string headline = text.substr(0, text.find('\n'));
  if (!headline.starts_with(kBegin) || !headline.ends_with(kEnd)) return {};
  return headline.substr(kBegin.size(), headline.size() - kBegin.size() - kEnd.size());
}

/// The others learn at once when the first fails, because they may wait for other words of it.
Ending collect_endings(const Ending& ending, Patience patience) {
  Ending sum = ending;
  for (int r = 1; r < world().size && ending.code != 0; ++r)
    wire().post(r, WordKind::Failure, headline_of_list(ending.text));
  Deadline deadline = ending.code ? soon(1) : deadline_after(patience);
  std::vector<int> heard, silent;
  for (int r = 1; r < world().size; ++r) {
    const auto words = receive_text(r, WordKind::Ending, deadline);
    (words ? heard : silent).push_back(r);
    if (words) add(sum, ending_from(*words));
    if (sum.code != 0) deadline = std::min(deadline, soon(1));
  }
  if (sum.code == 0 && !silent.empty()) {
    const auto lost = std::find_if(silent.begin(), silent.end(), [](int r) { return !wire().loss(r).empty(); });
    sum = {4, "failed: " + (lost == silent.end()
                                ? fmt::format("another process has not answered for {:.3g} s", patience.count())
                                : silence_text(*lost))};
  }
  if (sum.code != 0 && sum.text.empty()) sum.text = "failed: a process ended without a word";
  for (const int r : silent)
    if (sum.text.find(silence_text(r)) == std::string::npos) add_lines(sum.text, silence_text(r));
  if (!silent.empty()) state_of_world = WorldState::Unreachable;
  for (const int r : heard) wire().post(r, WordKind::Ending, to_bytes({sum.code, {}}));
  return sum;
}

}  // namespace

WorldState world_state() { return state_of_world; }
void set_separated(bool all_present) {
  state_of_world = all_present ? WorldState::Separated : WorldState::SeparatedWithLoss;
}

Ending gather_endings(const Ending& ending, Patience patience) {
  if (state_of_world != WorldState::Working) return final_ending;
  if (ending.code != 0) limit_the_end(ending);
  Ending sum = world().rank == 0 ? collect_endings(ending, patience) : exchange_with_first(ending, patience);
  if (sum.code == 0) return sum;
  if (state_of_world == WorldState::Working) state_of_world = WorldState::Failed;
  limit_the_end(sum);
  return final_ending = sum;
}

void barrier(Patience patience) {
  if (gather_endings(Ending{}, patience).code != 0) throw FailedElsewhere();
}

Patience patience_for_equals() {
  constexpr int kTimesSlower = 10;
  return kHalfMinute + kTimesSlower * (std::chrono::steady_clock::now() - started);
}

/// Each of the others sends what it would end with if it is another build; an older one, which sends nothing of the
/// kind, takes the words for such an end.
void require_same_build(const std::string& build) {
  const std::string text =
      to_bytes({4, fmt::format("failed: the processes are different builds of stagecraft; this is {}", build)});
  if (world().rank > 0) {
    wire().post(0, WordKind::Ending, text);
    const auto answer = receive_text(0, WordKind::Ending, deadline_after(2 * kHalfMinute));
    if (answer && ending_from(*answer).code == 0) return;
    state_of_world = answer ? WorldState::Failed : WorldState::Unreachable;
    final_ending.code = 4;
    if (answer) throw FailedElsewhere();
    final_ending.text = no_answer_text(2 * kHalfMinute);
    throw BackendError(final_ending.text);
  }
  const Deadline deadline = deadline_after(kHalfMinute);
  std::string others, silent;
  std::vector<int> heard;
  for (int r = 1; r < world().size; ++r) {
    const auto words = receive_text(r, WordKind::Ending, deadline);
    if (words) heard.push_back(r);
    if (words && *words != text) add_lines(others, process_name(r) + " is another build");
    if (!words) add_lines(silent, silence_text(r));
  }
  const bool fine = others.empty() && silent.empty();
  for (const int r : heard) wire().post(r, WordKind::Ending, to_bytes({fine ? 0 : 4, {}}));
  if (fine) return;
  state_of_world = silent.empty() ? WorldState::Failed : WorldState::Unreachable;
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

// A handler of signals may come at any time, so none of these texts goes away.
std::atomic<const std::string*> last_words{nullptr};
std::atomic<int> last_code{0};

void end_at_last(int) {
  if (const std::string* words = last_words.load()) {
    [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, words->data(), words->size());
  }
  _exit(last_code.load());
}

}  // namespace

void set_run_patience(Patience patience) { run_patience = patience; }

Patience patience_after_failure() { return std::min(kAfterFailure, run_patience / 2); }

void limit_the_end(const Ending& ending) {
  static bool is_limited = false;
  const std::string& text = ending.text;
  last_words = text.empty() ? nullptr : new std::string(text + (text.back() == '\n' ? "" : "\n"));
  last_code = ending.code;
  if (std::exchange(is_limited, true)) return;
  std::signal(SIGALRM, end_at_last);
  itimerval limit{};
  limit.it_value.tv_sec = static_cast<time_t>(run_patience.count());
  limit.it_value.tv_usec = static_cast<suseconds_t>(std::fmod(run_patience.count(), 1.0) * 1e6) + 1;
  setitimer(ITIMER_REAL, &limit, nullptr);
}

void forget_last_words() { last_words = nullptr; }

namespace {

std::atomic<bool> stop_requested{false};
static_assert(std::atomic<bool>::is_always_lock_free);  // Else a handler might not touch it.

}  // namespace

StopSignal::StopSignal() {
  if (!wire().has_launcher()) return;
  struct sigaction note {};
  note.sa_handler = [](int) { stop_requested.store(true); };
  sigemptyset(&note.sa_mask);
  note.sa_flags = SA_RESTART;
  sigaction(SIGTERM, &note, &before_.emplace());
}

StopSignal::~StopSignal() {
  if (before_ && !stop_requested_by_launcher()) sigaction(SIGTERM, &*before_, nullptr);
}

bool stop_requested_by_launcher() { return stop_requested.load(); }

}  // namespace stagecraft::real
