#include "sim/search/search_processes.hpp"

#include <algorithm>
#include <condition_variable>

#include <fmt/core.h>

#include "backends/world.hpp"
#include "sim/core/diagnostic.hpp"
#include "sim/core/threads.hpp"

namespace stagecraft {
namespace {

using namespace std::chrono_literals;

constexpr auto kHeartbeat = 1s, kSilence = 10s;
constexpr auto kTick = 1ms;  // Between two looks for messages.

// The first letter of a message tells its kind. The first process sends kAll, kEnd and kAlive.
constexpr char kReady = 'r', kShare = 's', kAll = 'b', kFailed = 'f', kAlive = 'a', kEnd = 'q';

std::string text_of(int number, const BatchResults& batch) {
  JsonArray results;
  for (std::size_t i = 0; i < batch.results.size(); ++i)
    if (!batch.results[i].is_null()) results.push_back(JsonObject{{"task", i}, {"result", batch.results[i]}});
  return Json(JsonObject{{"batch", number}, {"stopped", batch.stopped}, {"results", results}}).dump();
}

/// Adds what the text has of the batch of this number. False if it is of another.
bool add_results(const std::string& text, int number, BatchResults& batch) {
  const std::optional<Json> json = Json::parse(text);
  if (!json) throw BackendError("a message between the processes of a search is not JSON");
  if (static_cast<int>(json->at("batch").number()) != number) return false;
  if (batch.stopped.empty()) batch.stopped = json->at("stopped").text();
  for (const Json& result : json->at("results").items())
    batch.results.at(static_cast<std::size_t>(result.at("task").number())) = result.at("result");
  return true;
}

}  // namespace

SearchProcesses::SearchProcesses(const std::string& question)
    : rank_(world().rank), size_(world().size), question_(question), processes_(static_cast<std::size_t>(size_)) {
  if (size_ == 1) return;
  barrier();
  for (Process& p : processes_) p.heard = SteadyClock::now();
  if (rank_ > 0) send(0, kReady, question);
  std::error_code why;
  heartbeat_ = thread_if_possible([this](const std::stop_token& stop) { beat(stop); }, &why);
  if (!heartbeat_.joinable())
    throw BackendError(fmt::format("process {} of {} can start no thread: {}", rank_, size_, why.message()));
}

void SearchProcesses::beat(const std::stop_token& stop) try {
  std::mutex idle;
  std::condition_variable_any wake;
  std::unique_lock lock(idle);
  while (!wake.wait_for(lock, stop, kHeartbeat, [&] { return stop.stop_requested(); }) && !stop.stop_requested())
    for (int r = rank_ == 0 ? 1 : 0; r < (rank_ == 0 ? size_ : 1); ++r) send(r, kAlive, {});
} catch (const std::exception&) {
  // MPI has failed, or there is no memory: the others find this process silent.
}

SearchProcesses::~SearchProcesses() {
  if (size_ == 1) return;
  heartbeat_.request_stop();
  heartbeat_.join();
  if (rank_ == 0)
    for (int r = 1; r < size_; ++r) send(r, kEnd, {});
  const std::lock_guard lock(mutex_);
  // The first process ends those that wait for a lost one; where the first is lost, each ends for itself.
  part(whole_ && (rank_ > 0 || lost().empty()));
}

std::vector<int> SearchProcesses::owners(const std::vector<int>& preferred) const {
  std::vector<int> ranks;
  for (int r = 0; r < size_; ++r)
    if (!processes_[r].lost) ranks.push_back(r);
  const std::size_t max_share = (preferred.size() + ranks.size() - 1) / ranks.size();
  std::vector<std::size_t> count(static_cast<std::size_t>(size_), 0);
  std::vector<int> owners(preferred.size(), -1);
  for (std::size_t i = 0; i < preferred.size(); ++i) {
    const int r = preferred[i];
    if (r >= 0 && !processes_[r].lost && count[r] < max_share) owners[i] = r, ++count[r];
  }
  for (int& owner : owners) {
    if (owner >= 0) continue;
    owner = *std::min_element(ranks.begin(), ranks.end(), [&](int a, int b) { return count[a] < count[b]; });
    ++count[owner];
  }
  return owners;
}

void SearchProcesses::collect(BatchResults& batch, const std::function<bool()>& hurry) {
  ++number_;
  for (Process& p : processes_) p.delivered = false;
  processes_.front().delivered = true;
  const auto is_waited_for = [](const Process& p) { return !p.delivered && !p.lost; };
  while (std::any_of(processes_.begin(), processes_.end(), is_waited_for) && !hurry()) {
    if (!receive_all(&batch)) std::this_thread::sleep_for(kTick);
    for (int r = 1; r < size_; ++r) check_silence(r);
  }
}

void SearchProcesses::announce(const BatchResults& batch) {
  Json lost_ranks = JsonArray{};
  for (const int r : lost()) lost_ranks.push_back(r);
  const std::string text = Json(JsonObject{{"lost", lost_ranks}}).dump() + "\n" + text_of(number_, batch);
  for (int r = 1; r < size_; ++r)
    if (!processes_[r].lost) send(r, kAll, text);
}

BatchResults SearchProcesses::deliver(const BatchResults& share) {
  ++number_;
  send(0, kShare, text_of(number_, share));
  announced_ = {std::vector<Json>(share.results.size()), {}};
  is_announced_ = false;
  while (!is_announced_) {
    if (ended_) throw SearchEnded();
    if (!receive_all(nullptr)) std::this_thread::sleep_for(kTick);
    check_silence(0);
  }
  return std::move(announced_);
}

void SearchProcesses::fail(const std::string& why) {
  send(0, kFailed, why);
  wait_for_end();
}

void SearchProcesses::give_up(const std::string& why) {
  gave_up_ = true;
  send(0, kShare, text_of(number_ + 1, {{}, why}));
  wait_for_end();
}

void SearchProcesses::wait_for_end() {
  while (!ended_) {
    if (!receive_all(nullptr)) std::this_thread::sleep_for(kTick);
    check_silence(0);
  }
}

std::vector<int> SearchProcesses::lost() const {
  std::vector<int> ranks;
  for (int r = 0; r < size_; ++r)
    if (processes_[r].lost) ranks.push_back(r);
  return ranks;
}

void SearchProcesses::send(int rank, char kind, const std::string& text) {
  const std::lock_guard lock(mutex_);
  send_message(rank, kind + text);
}

bool SearchProcesses::receive_all(BatchResults* batch) {
  bool any = false;
  while (true) {
    std::optional<Word> word;
    {
      const std::lock_guard lock(mutex_);
      word = receive_message();
    }
    if (!word) return any;
    any = true;
    take_message(word->from, word->text, batch);
  }
}

void SearchProcesses::take_message(int from, const std::string& message, BatchResults* batch) {
  Process& p = processes_[from];
  p.heard = SteadyClock::now();
  const std::string text = message.substr(1);
  switch (message.front()) {
    case kReady:
      if (text != question_)
        throw BackendError(
            fmt::format("process {} of {} searches for another answer than the first: do all of them see "
                        "the same files, and are they the same program?",
                        from, size_));
      break;
    case kShare:
      if (batch && !p.lost && add_results(text, number_, *batch)) p.delivered = true;
      break;
    case kFailed:
      throw BackendError(fmt::format("process {} of {}: {}", from, size_, text));
    case kAll: {
      if (gave_up_) break;
      const std::size_t end = text.find('\n');
      const std::optional<Json> json = Json::parse(text.substr(0, end));
      if (!json || !add_results(text.substr(end + 1), number_, announced_))
        throw BackendError("the processes of a search are at different batches");
      for (const Json& r : json->at("lost").items()) processes_[static_cast<std::size_t>(r.number())].lost = true;
      is_announced_ = true;
      break;
    }
    case kEnd:
      ended_ = true;
      break;
    default:
      break;
  }
}

void SearchProcesses::check_silence(int rank) {
  Process& p = processes_[rank];
  if (p.lost || SteadyClock::now() - p.heard < kSilence) return;
  p.lost = true;
  if (rank > 0) return;
  whole_ = false;
  throw BackendError(fmt::format("the first process has been silent for {} s", kSilence.count()));
}

}  // namespace stagecraft
