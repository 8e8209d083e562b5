// What the first process of a JobFarm (job_farm.hpp) does: it gives jobs to itself and others, collects how each ended,
// and takes back the jobs of processes that are lost.

#include <algorithm>
#include <utility>

#include <fmt/core.h>

#include "sim/core/diagnostic.hpp"
#include "sim/farm/workers.hpp"

namespace stagecraft {
namespace {

constexpr double kQueued = 0.1;   // Seconds of work that a process has queued, so that it never waits for a message.
constexpr int kMostQueued = 100;  // Jobs in that queue, for each worker.
constexpr int kMostLosses = 2;    // A job at which this many processes were lost counts as crashed.

}  // namespace

void JobFarm::run(std::span<const int> jobs, const std::function<bool()>& stop,
                  const std::function<void(const JobEnd&)>& done, const std::function<int(int job)>& prefers) {
  open_ = {jobs.begin(), jobs.end()};
  waiting_.assign(jobs.begin(), jobs.end());
  errors_.clear();
  done_ = &done, prefers_ = &prefers;
  try {
    distribute(stop);
  } catch (...) {
    workers_->cancel();
    throw;
  }
  if (!errors_.empty()) std::rethrow_exception(errors_.begin()->second);
}

void JobFarm::distribute(const std::function<bool()>& stop) {
  while (!open_.empty() && !stop()) {
    give_jobs();
    for (JobEnd& end : own_ends()) finish(0, std::move(end));
    if (!is_shared()) continue;
    while (const auto word = receive()) handle(*word);
    for (int r = 1; r < std::ssize(processes_); ++r) check_silence(r);
  }
  workers_->cancel();
  while (!open_.empty())
    finish(0, {.job = *open_.begin(), .how = JobEnd::How::Undone, .text = options_.stop(), .seconds = 0});
}

void JobFarm::give_jobs() {
  for (int r = 0; r < std::ssize(processes_); ++r)
    while (const std::optional<int> job = next_job_for(r)) {
      processes_[r].given.push_back(*job);
      const bool is_own = r == 0 && !options_.elsewhere;
      const std::string description = is_own || !options_.describe ? std::string() : options_.describe(*job);
      if (r == 0)
        workers_->add(*job, description);
      else
        send(r, kJob, fmt::format("{} {}", *job, description));
    }
}

/// A process has some jobs queued, but at most half of its share of those that wait.
bool JobFarm::has_room(const Process& p) const {
  if (!is_shared()) return true;
  int workers = 0;
  for (const Process& other : processes_) workers += other.lost ? 0 : other.workers;
  const double mean = ended_jobs_ > 0 ? seconds_ / ended_jobs_ : kQueued + 1;
  const double share = static_cast<double>(waiting_.size()) / (2.0 * std::max(workers, 1));
  const auto queued = static_cast<int>(std::min({double{kMostQueued}, kQueued / std::max(mean, 1e-9), share}));
  return std::ssize(p.given) < p.workers * (1 + queued);
}

std::optional<int> JobFarm::next_job_for(int rank) {
  while (!waiting_.empty() && !open_.contains(waiting_.front()))
    waiting_.pop_front();  // Done by a process that was lost.
  const Process& p = processes_[rank];
  if (waiting_.empty()) return queued_elsewhere(rank);
  if (p.lost || !has_room(p)) return {};
  auto at = waiting_.begin();
  if (is_shared() && *prefers_) {
    const auto find = [&](const auto& suits) {
      return std::find_if(waiting_.begin(), waiting_.end(), [&](int job) { return suits((*prefers_)(job)); });
    };
    at = find([&](int preferred) { return preferred == rank; });
    if (at == waiting_.end()) at = find([&](int preferred) { return preferred < 0 || processes_[preferred].lost; });
    if (at == waiting_.end() && std::ssize(p.given) >= p.workers) return {};
    if (at == waiting_.end()) at = waiting_.begin();
  }
  const int job = *at;
  waiting_.erase(at);
  return job;
}

/// A job that is queued in another process and that no worker has begun, for a process with nothing to do. The workers
/// of a process are at its first jobs.
std::optional<int> JobFarm::queued_elsewhere(int rank) const {
  const Process& idle = processes_[rank];
  if (!is_shared() || idle.lost || idle.workers == 0 || !idle.given.empty()) return {};
  const auto runs = [](const Process& p, int job) {
    const auto end = p.given.begin() + std::min<std::ptrdiff_t>(p.workers, std::ssize(p.given));
    return std::find(p.given.begin(), end, job) != end;
  };
  for (const Process& p : processes_)
    for (int i = p.workers; i < std::ssize(p.given); ++i) {
      const auto is_run = [&](const Process& other) { return runs(other, p.given[i]); };
      if (open_.contains(p.given[i]) && std::none_of(processes_.begin(), processes_.end(), is_run)) return p.given[i];
    }
  return {};
}

void JobFarm::handle(const Word& word) {
  Process& p = processes_[word.from];
  p.heard = SteadyClock::now();
  p.lost = false;  // It was only slow.
  const std::string text = word.text.substr(1);
  switch (word.text.front()) {
    case kReady:
      p.workers = std::stoi(text);
      if (text.substr(text.find(' ') + 1) != options_.key)
        throw BackendError(
            fmt::format("process {} of {} {} than the first: do all of them see the same files, and are they the same "
                        "program?",
                        word.from, processes_.size(), options_.other_work));
      break;
    case kEnd:
      for (JobEnd& end : job_ends_from_bytes(text)) finish(word.from, std::move(end));
      break;
    case kWithoutWorkers:
      drop_workers(word.from, text);
      break;
    case kFailed:
      throw BackendError(fmt::format("process {} of {}: {}", word.from, processes_.size(), text));
    default:
      break;
  }
}

void JobFarm::finish(int rank, JobEnd end) {
  std::deque<int>& given = processes_[rank].given;
  if (const auto at = std::find(given.begin(), given.end(), end.job); at != given.end()) given.erase(at);
  if (open_.erase(end.job) == 0) return;
  ++ended_jobs_;
  seconds_ += end.seconds;
  end.rank = rank;
  if (end.how == JobEnd::How::Threw)
    errors_[end.job] = end.error ? end.error
                                 : std::make_exception_ptr(BackendError(
                                       fmt::format("process {} of {}: {}", rank, processes_.size(), end.text)));
  (*done_)(end);
}

void JobFarm::drop_workers(int rank, const std::string& why) {
  take_back(rank);
  processes_[rank].workers = 0;
  without_workers_.emplace(rank, why);
  if (without_workers_.size() + lost().size() < processes_.size() || open_.empty()) return;
  throw BackendError("no process has workers left: " + why);
}

/// The jobs of this process go to others.
void JobFarm::take_back(int rank) {
  Process& p = processes_[rank];
  std::deque<int> given = std::exchange(p.given, {});
  const auto has_end = [&](int job) { return !open_.contains(job); };
  std::erase_if(given, has_end);
  if (options_.forks)
    for (const int job : lost_too_often(losses_, given, p.workers))
      finish(rank, {.job = job, .how = JobEnd::How::Crashed, .text = "two workers were lost while they ran it"});
  std::erase_if(given, has_end);
  waiting_.insert(waiting_.begin(), given.begin(), given.end());
}

std::vector<int> JobFarm::lost() const {
  std::vector<int> ranks;
  for (int r = 0; r < std::ssize(processes_); ++r)
    if (processes_[r].lost) ranks.push_back(r);
  return ranks;
}

std::vector<int> lost_too_often(std::map<int, int>& losses, const std::deque<int>& given, int workers) {
  std::vector<int> jobs;
  for (int i = 0; i < std::min(static_cast<int>(given.size()), workers); ++i)
    if (++losses[given[i]] == kMostLosses) jobs.push_back(given[i]);
  return jobs;
}

}  // namespace stagecraft
