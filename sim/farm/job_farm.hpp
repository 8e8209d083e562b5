#pragma once

#include <chrono>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "backends/world.hpp"
#include "sim/core/quantity.hpp"

namespace stagecraft {

// A job farm does numbered jobs on the workers of one process, or of all processes that a launcher has started
// together.
//
// - A job is a number. A function does it and returns a text. Another process gets it as a text, too.
// - A worker is a thread or a forked process. A job that crashes or hangs in a forked process costs that process only.
//   Jobs may also be done elsewhere, by a function that takes their texts.
// - Each job has exactly one end, in any order: a result, or why there is none.
// - Distribution: the first process gives jobs to whichever process is free, in their order, and to itself.
// - Heartbeat: each process tells the others every second that it is alive, also while it computes.
// - Lost processes: one that is silent for ten seconds is lost, and others do its jobs. If it was only slow, its
//   results count where they are the first.
// - Lost workers: a process whose forked workers and their parent have died gets no more jobs, and others do those that
//   it had. A job at which two processes were lost counts as crashed where workers are forked.
// - Stop: the first process asks between ends whether to stop. Jobs without an end are undone then, and threads leave
//   their jobs at the next stop_point().
// - Errors: run() throws what a job throws in a thread. Where several jobs throw, it is the error of the smallest.

/// How one job ended.
struct JobEnd {
  enum class How {
    Done,      ///< `text` is the result.
    Crashed,   ///< `text` is how its process ended.
    TimedOut,  ///< `text` is how its process was ended.
    Threw,     ///< `text` is the message.
    Undone     ///< `text` is why it had to stop.
  };
  int job = 0;
  How how = How::Done;
  std::string text;
  double seconds = 0;             ///< Since a worker got the job.
  int rank = 0;                   ///< The process that did it.
  std::exception_ptr error = {};  ///< What a job threw in a thread of this process.
};

/// A message between processes; job_ends_from_bytes() is the inverse.
std::string to_bytes(const std::vector<JobEnd>&);
std::vector<JobEnd> job_ends_from_bytes(const std::string&);

/// Does job number `job` and returns its result. Threads call it at the same time.
using JobFunction = std::function<std::string(int job)>;

struct FarmOptions {
  int workers = 1;     ///< The workers of each process.
  bool forks = false;  ///< Workers are forked processes, else threads.
  Seconds timeout{0};  ///< Limit for each job of a forked worker; zero: none.
  /// Why jobs in threads have to stop; empty: they go on. Threads call it at the same time.
  std::function<std::string()> stop = [] { return std::string(); };
  /// Identifies the work, which must be equal in all processes. `other_work` is what the error says of one with
  /// another.
  std::string key = {}, other_work = {};
  /// What another process has to know of a job, and how it does it. Empty: the number, with the same function as here.
  std::function<std::string(int job)> describe = {};
  std::function<std::string(const std::string& description)> do_described = {};
  /// Does described jobs outside of these processes, in place of threads; an empty result: the job is undone.
  std::function<std::vector<std::string>(const std::string& key, const std::vector<std::string>& descriptions)>
      elsewhere = {};
  /// Joins the processes of the launcher as this build, after the workers were forked: MPI's registered memory does not
  /// survive a fork. Empty: threads work for the processes that have joined before, and forked workers for this
  /// process.
  std::string build = {};
};

class Workers;

class JobFarm {
 public:
  /// BackendError where the other processes cannot be joined.
  JobFarm(const FarmOptions&, const JobFunction&);
  /// The first process tells the others that the farm has ended, whichever way it leaves it.
  ~JobFarm();
  JobFarm(const JobFarm&) = delete;
  JobFarm& operator=(const JobFarm&) = delete;

  bool is_shared() const { return processes_.size() > 1; }
  bool is_first() const { return rank_ == 0; }

  /// On the first process: does the jobs and passes each end to `done`, in this thread. A number means the same job in
  /// all runs. `stop` is called several times a second; true stops at once. `prefers`: the process that should do a job
  /// if it is free, or -1. When no job waits, a process that has nothing to do also gets one that is queued after a
  /// long one in another, and the first end of it counts. BackendError if another process has other work or has failed,
  /// and if no workers are left.
  void run(std::span<const int> jobs, const std::function<bool()>& stop, const std::function<void(const JobEnd&)>& done,
           const std::function<int(int job)>& prefers = {});

  /// On the others: does jobs until the first process has ended the farm.
  void wait_for_end();
  /// On the others: an error that ends the farm of all.
  void fail(const std::string& why);
  /// The first process ends the farm before the others are ready to, and waits for none of them.
  void leave_at_once() { whole_ = false; }

  std::vector<int> lost() const;  ///< Processes that are silent.
  /// Processes whose workers have died, and why. Such a process cannot fork others while it uses MPI.
  const std::map<int, std::string>& without_workers() const { return without_workers_; }

 private:
  using SteadyClock = std::chrono::steady_clock;
  // The first letter of a message tells its kind. The first process sends kJob, kQuit and kAlive.
  static constexpr char kReady = 'r', kEnd = 'e', kWithoutWorkers = 'w', kFailed = 'f', kAlive = 'a', kJob = 'j',
                        kQuit = 'q';
  /// A process as the first one sees it.
  struct Process {
    int workers = 0;        ///< 0 until it is ready.
    std::deque<int> given;  ///< Jobs whose end has not come.
    SteadyClock::time_point heard = SteadyClock::now();
    bool lost = false;
  };

  void beat(const std::stop_token&);  ///< Tells the other processes that this one is alive, until it is to stop.
  void send(int rank, char kind, const std::string& text);
  std::optional<Word> receive();
  void distribute(const std::function<bool()>& stop);
  void give_jobs();
  bool has_room(const Process&) const;
  std::optional<int> next_job_for(int rank);
  std::optional<int> queued_elsewhere(int rank) const;
  std::vector<JobEnd> own_ends();
  void handle(const Word&);
  void finish(int rank, JobEnd end);
  void drop_workers(int rank, const std::string& why);
  void check_silence(int rank);
  void take_back(int rank);

  FarmOptions options_;
  JobFunction work_;
  int rank_ = 0;
  std::vector<Process> processes_;
  std::map<int, std::string> without_workers_;
  std::map<int, int> losses_;  ///< Job -> processes that were lost while they worked on it.
  bool whole_ = true;

  std::set<int> open_;       ///< Jobs of this run without an end.
  std::deque<int> waiting_;  ///< Jobs that no process has.
  std::map<int, std::exception_ptr> errors_;
  const std::function<void(const JobEnd&)>* done_ = nullptr;
  const std::function<int(int job)>* prefers_ = nullptr;
  int ended_jobs_ = 0;
  double seconds_ = 0;  ///< What the jobs that have ended took.

  std::mutex mutex_;  ///< Guards the calls of MPI.
  std::unique_ptr<Workers> workers_;
  std::jthread heartbeat_;
};

/// A process was lost. `given` are its jobs in order; its workers were at the first of them, as many as it has
/// `workers`. Counts its loss in `losses` and returns the jobs that have now been lost too often to be tried again.
std::vector<int> lost_too_often(std::map<int, int>& losses, const std::deque<int>& given, int workers);

}  // namespace stagecraft
