#include "sim/sweep/distribute_jobs.hpp"

#include <algorithm>
#include <chrono>
#include <deque>
#include <map>
#include <thread>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "backends/world.hpp"
#include "sim/core/diagnostic.hpp"
#include "sim/sweep/result.hpp"
#include "sim/sweep/worker_pool.hpp"

namespace stagecraft {
// Messages between the processes of a sweep are CBOR.
namespace {

using NlohmannJson = nlohmann::json;

}  // namespace

std::string to_bytes(const JobEnd& end) {
  const NlohmannJson::binary_t text(std::vector<std::uint8_t>(end.text.begin(), end.text.end()));
  std::string bytes;
  NlohmannJson::to_cbor({end.job, static_cast<int>(end.how), end.seconds, text}, bytes);
  return bytes;
}

JobEnd job_end_from_bytes(const std::string& bytes) {
  const NlohmannJson json = NlohmannJson::from_cbor(bytes);
  const auto& text = json[3].get_binary();
  return {json[0], static_cast<JobEnd::How>(json[1].get<int>()), std::string(text.begin(), text.end()), json[2]};
}

std::string to_bytes(const PointResult& r) {
  std::string bytes;
  NlohmannJson::to_cbor({r.hash, r.scenario, r.status, r.code, r.message, r.seconds, r.machine, r.figures}, bytes);
  return bytes;
}

PointResult result_from_bytes(const std::string& bytes) {
  const NlohmannJson json = NlohmannJson::from_cbor(bytes);
  PointResult r;
  r.hash = json[0], r.scenario = json[1], r.status = json[2], r.code = json[3], r.message = json[4];
  r.seconds = json[5], r.machine = json[6];
  for (const NlohmannJson& f : json[7]) r.figures.push_back(f.get<double>());
  return r;
}

namespace {

using Wall = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr auto kHeartbeat = 1s, kSilence = 10s;
constexpr int kTick = 1;          // Milliseconds between two looks for messages of other processes.
constexpr double kQueued = 0.1;   // Seconds of work that a process has queued, so that it never waits for a message.
constexpr int kMostQueued = 100;  // Jobs in that queue, for each worker.

// The first letter of a message tells its kind. All but the last two go to the first process.
constexpr char kReady = 'r', kEnd = 'e', kFailed = 'f', kAlive = 'a', kJob = 'j', kQuit = 'q';

class Heartbeat {
 public:
  bool due() {
    if (Wall::now() - last_ < kHeartbeat) return false;
    last_ = Wall::now();
    return true;
  }

 private:
  Wall::time_point last_ = Wall::now();
};

/// A process as the first one sees it.
struct Process {
  int workers = 0;        ///< 0 until its kReady has come.
  std::deque<int> given;  ///< Jobs whose end has not come.
  Wall::time_point heard = Wall::now();
  bool lost = false;
};

class JobDistributor {
 public:
  JobDistributor(std::span<const int> jobs, const std::string& key, RemoteWorkerPool& pool,
                 const std::function<void(const JobEnd&)>& done, Distribution& state)
      : key_(key),
        pool_(pool),
        done_(done),
        state_(state),
        left_(jobs.size()),
        waiting_(jobs.begin(), jobs.end()),
        processes_(world().size) {
    processes_.front().workers = pool.workers();
  }

  void run(const std::function<bool()>& stop) {
    while (left_ > 0) {
      if ((state_.stopped = stop())) return;
      for (int r = 0; r < world().size; ++r) give_jobs(r);
      for (int r = 0; r < world().size; ++r) give_queued_job(r);
      collect_own_ends();
      while (const auto word = receive_message()) handle(*word);
      for (int r = 1; r < world().size; ++r) check_silence(r);
      if (heartbeat_.due())
        for (int r = 1; r < world().size; ++r) send_message(r, {kAlive});
    }
  }

 private:
  void collect_own_ends() {
    if (state_.without_workers.contains(0)) {
      std::this_thread::sleep_for(kTick * 1ms);
      return;
    }
    try {
      for (const std::string& end : pool_.wait(kTick)) finish(0, job_end_from_bytes(end));
    } catch (const BackendError& e) {
      drop_workers(0, e.what());
    }
  }

  /// A process cannot replace its workers, because it must not fork while it uses MPI.
  void drop_workers(int rank, const std::string& why) {
    take_back(rank);
    processes_[rank].workers = 0;
    state_.without_workers.emplace(rank, why);
    if (state_.without_workers.size() + state_.lost.size() < processes_.size() || left_ == 0) return;
    throw BackendError("no process has workers left: " + why);
  }

  void give_jobs(int rank) {
    Process& p = processes_[rank];
    const double mean = ends_ > 0 ? seconds_ / ends_ : kQueued + 1;
    const int queued = static_cast<int>(std::min<double>(kMostQueued, kQueued / std::max(mean, 1e-9)));
    while (!p.lost && std::ssize(p.given) < p.workers * (1 + queued) && !waiting_.empty()) {
      give(rank, waiting_.front());
      waiting_.pop_front();
    }
  }

  /// A process that has nothing to do also gets a job that is queued after a long one in another. The first end counts.
  void give_queued_job(int rank) {
    const Process& idle = processes_[rank];
    if (idle.lost || idle.workers == 0 || !idle.given.empty() || !waiting_.empty()) return;
    for (const Process& p : processes_)
      for (int i = p.workers; i < std::ssize(p.given); ++i)
        if (const int job = p.given[i]; !over_[job] && !is_running(job)) return give(rank, job);
  }

  /// The workers of a process are at its first jobs.
  bool is_running(int job) const {
    return std::any_of(processes_.begin(), processes_.end(), [job](const Process& p) {
      const auto end = p.given.begin() + std::min<std::ptrdiff_t>(p.workers, std::ssize(p.given));
      return std::find(p.given.begin(), end, job) != end;
    });
  }

  void give(int rank, int job) {
    processes_[rank].given.push_back(job);
    if (rank == 0)
      pool_.add(job);
    else
      send_message(rank, kJob + std::to_string(job));
  }

  void handle(const Word& word) {
    Process& p = processes_[word.from];
    p.heard = Wall::now();
    std::erase(state_.lost, word.from);  // It was only slow. Its results count if they are the first.
    p.lost = false;
    const std::string text = word.text.substr(1);
    switch (word.text.front()) {
      case kReady:
        p.workers = std::stoi(text);
        if (text.substr(text.find(' ') + 1) != key_)
          throw BackendError(
              fmt::format("process {} of {} has read another sweep than the first: do all of them see "
                          "the same files, and are they the same program?",
                          word.from, world().size));
        break;
      case kEnd:
        finish(word.from, job_end_from_bytes(text));
        break;
      case kFailed:
        drop_workers(word.from, text);
        break;
      default:
        break;
    }
  }

  void finish(int rank, const JobEnd& end) {
    std::erase(processes_[rank].given, end.job);
    if (over_[end.job]) return;
    over_[end.job] = true;
    std::erase(waiting_, end.job);
    ++ends_, --left_;
    seconds_ += end.seconds;
    done_(end);
  }

  void check_silence(int rank) {
    Process& p = processes_[rank];
    if (p.lost || Wall::now() - p.heard < kSilence) return;
    p.lost = true;
    state_.lost.push_back(rank);
    std::sort(state_.lost.begin(), state_.lost.end());
    take_back(rank);
  }

  /// The jobs of this process go to others.
  void take_back(int rank) {
    Process& p = processes_[rank];
    std::deque<int> given = std::exchange(p.given, {});
    std::erase_if(given, [&](int job) { return over_[job]; });
    for (const int job : losses_.too_many(given, p.workers))
      finish(rank, {job, JobEnd::How::Crashed, "twice the workers that were at it were lost", 0});
    std::erase_if(given, [&](int job) { return over_[job]; });
    waiting_.insert(waiting_.begin(), given.begin(), given.end());
  }

  const std::string& key_;
  RemoteWorkerPool& pool_;
  const std::function<void(const JobEnd&)>& done_;
  Distribution& state_;
  std::size_t left_;
  std::deque<int> waiting_;
  std::vector<Process> processes_;
  std::map<int, bool> over_;
  LostWorkerCounter losses_;
  int ends_ = 0;
  double seconds_ = 0;
  Heartbeat heartbeat_;
};

/// False when the first process has ended the sweep.
bool receive_jobs(RemoteWorkerPool& pool, Wall::time_point& heard) {
  while (const auto word = receive_message()) {
    heard = Wall::now();
    if (word->text.front() == kQuit) return false;
    if (word->text.front() == kJob) pool.add(std::stoi(word->text.substr(1)));
  }
  if (Wall::now() - heard > kSilence)
    throw BackendError(fmt::format("the first process has been silent for {} s", kSilence.count()));
  return true;
}

}  // namespace

std::vector<int> LostWorkerCounter::too_many(const std::deque<int>& given, int workers) {
  constexpr int kMost = 2;
  std::vector<int> jobs;
  for (int i = 0; i < std::min(static_cast<int>(given.size()), workers); ++i)
    if (++count_[given[i]] == kMost) jobs.push_back(given[i]);
  return jobs;
}

void distribute_jobs(std::span<const int> jobs, const std::string& key, RemoteWorkerPool& pool,
                     const std::function<bool()>& stop, const std::function<void(const JobEnd&)>& done,
                     Distribution& state) {
  JobDistributor(jobs, key, pool, done, state).run(stop);
}

void do_sent_jobs(const std::string& key, RemoteWorkerPool& pool) {
  send_message(0, fmt::format("{}{} {}", kReady, pool.workers(), key));
  Heartbeat heartbeat;
  bool works = true;
  for (auto heard = Wall::now(); receive_jobs(pool, heard);) {
    try {
      for (const std::string& end : works ? pool.wait(kTick) : std::vector<std::string>{}) send_message(0, kEnd + end);
    } catch (const BackendError& e) {
      works = false;
      send_message(0, kFailed + std::string(e.what()));
    }
    if (heartbeat.due()) send_message(0, {kAlive});
  }
  part(true);
}

ShutdownGuard::~ShutdownGuard() {
  for (int r = 1; r < world().size; ++r) send_message(r, {kQuit});
  part(!state_.stopped && state_.lost.empty());
}

}  // namespace stagecraft
