#pragma once

#include <deque>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "sim/run/sweep/crew.hpp"

namespace stagecraft {

/// How it went on the first process, so far.
struct HandedOut {
  bool stopped = false;
  std::vector<int> lost;  ///< Processes that no word came from any more; what they had was given to others.
  std::map<int, std::string> without_workers;  ///< Processes whose workers have died, and what was said of it.
};

/// How many processes were lost that were at a job.
class Losses {
 public:
  /// One more was lost: `given` are its jobs in their order, of which its workers were at the first. Those that now
  /// have been lost too often to be given to anybody.
  std::vector<int> too_many(const std::deque<int>& given, int workers);

 private:
  std::map<int, int> count_;
};

/// On the first process of a joined world: gives jobs to its own crew and to the other processes, whoever is free
/// first, and hears of each end. A process that is silent for ten seconds is lost, and its jobs go to others, as do
/// those of one whose workers have died; a job that two were lost at counts as crashed. BackendError when no workers
/// are left. `key`: of what is shared, the same in all processes. `out` is kept up as it goes, as `done` may throw.
void hand_out(std::span<const int> jobs, const std::string& key, Crew& own, const std::function<bool()>& stop,
              const std::function<void(const JobEnd&)>& done, HandedOut& out);

/// On the others: does what the first gives them, until it says that this is all.
void take_part(const std::string& key, Crew& own);

/// Tells the others that this is all, on every way out of what the first does; `out` is as it went up to there.
class Dismissal {
 public:
  explicit Dismissal(const HandedOut& out) : out_(out) {}
  ~Dismissal();
  Dismissal(const Dismissal&) = delete;
  Dismissal& operator=(const Dismissal&) = delete;

 private:
  const HandedOut& out_;
};

}  // namespace stagecraft
