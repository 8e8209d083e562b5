// What every process of a JobFarm does, for sweeps and searches: it joins the others, does the jobs that it gets, and
// shows that it is alive.

#include "sim/farm/job_farm.hpp"

#include <algorithm>
#include <condition_variable>
#include <utility>

#include <fmt/core.h>

#include "sim/core/diagnostic.hpp"
#include "sim/core/threads.hpp"
#include "sim/farm/workers.hpp"

namespace stagecraft {
namespace {

using namespace std::chrono_literals;

constexpr auto kHeartbeat = 1s, kSilence = 10s;
constexpr int kTick = 1;        // Milliseconds between two looks for messages of other processes.
constexpr int kStopTick = 100;  // Milliseconds between two calls of `stop` where there are no other processes.

}  // namespace

JobFarm::JobFarm(const FarmOptions& options, const JobFunction& work) : options_(options), work_(work) {
  const bool is_alone = options.elsewhere || (options.forks && options.build.empty());
  if (options.elsewhere) {
    workers_ = workers_elsewhere(options);
  } else if (!options.forks) {
    workers_ = thread_workers(options, world().size == 1, [this](int job, const std::string& description) {
      return is_first() || !options_.do_described ? work_(job) : options_.do_described(description);
    });
  } else if (is_alone) {
    workers_ = forked_workers(options, work);
  } else {
    workers_ = remote_workers(options, work);
    join_world(options.build);
  }
  const World joined = is_alone ? World{} : world();
  rank_ = joined.rank;
  processes_.resize(joined.size);
  processes_[rank_].workers = options.workers;
  if (!is_shared()) return;
  barrier();
  for (Process& p : processes_) p.heard = SteadyClock::now();
  if (rank_ > 0) send(0, kReady, fmt::format("{} {}", options.workers, options.key));
  std::error_code why;
  heartbeat_ = thread_if_possible([this](const std::stop_token& end) { beat(end); }, &why);
  if (!heartbeat_.joinable())
    throw BackendError(fmt::format("process {} of {} can start no thread: {}", rank_, joined.size, why.message()));
}

JobFarm::~JobFarm() {
  if (!is_shared()) return;
  heartbeat_.request_stop();
  heartbeat_.join();
  if (is_first())
    for (int r = 1; r < std::ssize(processes_); ++r) send(r, kQuit, {});
  // The first process ends those that wait for a lost one; where the first is lost, each ends for itself.
  end_separately(whole_ && (!is_first() || lost().empty()));
}

/// The ends of this process' own workers, after a short wait.
std::vector<JobEnd> JobFarm::own_ends() {
  if (without_workers_.contains(rank_)) {
    std::this_thread::sleep_for(kTick * 1ms);
    return {};
  }
  try {
    return workers_->wait(is_shared() ? kTick : kStopTick);
  } catch (const BackendError& e) {
    if (!is_shared()) throw;
    if (is_first()) {
      drop_workers(0, e.what());
    } else {
      without_workers_.emplace(rank_, e.what());
      send(0, kWithoutWorkers, e.what());
    }
    return {};
  }
}

void JobFarm::check_silence(int rank) {
  Process& p = processes_[rank];
  if (p.lost || SteadyClock::now() - p.heard < kSilence) return;
  p.lost = true;
  if (is_first()) return take_back(rank);
  whole_ = false;
  throw BackendError(fmt::format("the first process has been silent for {} s", kSilence.count()));
}

void JobFarm::wait_for_end() {
  while (true) {
    while (const auto word = receive()) {
      processes_.front().heard = SteadyClock::now();
      if (word->text.front() == kQuit) return workers_->cancel();
      if (word->text.front() != kJob) continue;
      const std::size_t space = word->text.find(' ');
      workers_->add(std::stoi(word->text.substr(1, space)), word->text.substr(space + 1));
    }
    check_silence(0);
    if (const std::vector<JobEnd> ends = own_ends(); !ends.empty()) send(0, kEnd, to_bytes(ends));
  }
}

void JobFarm::fail(const std::string& why) {
  send(0, kFailed, why);
  wait_for_end();
}

void JobFarm::beat(const std::stop_token& end) try {
  std::mutex idle;
  std::condition_variable_any wake;
  std::unique_lock lock(idle);
  while (!wake.wait_for(lock, end, kHeartbeat, [&] { return end.stop_requested(); }) && !end.stop_requested())
    for (int r = is_first() ? 1 : 0; r < (is_first() ? std::ssize(processes_) : 1); ++r) send(r, kAlive, {});
} catch (const std::exception&) {
  // MPI has failed, or there is no memory: the others find this process silent.
}

void JobFarm::send(int rank, char kind, const std::string& text) {
  const std::lock_guard lock(mutex_);
  send_message(rank, kind + text);
}

std::optional<Word> JobFarm::receive() {
  const std::lock_guard lock(mutex_);
  return receive_message();
}

}  // namespace stagecraft
