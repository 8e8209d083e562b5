#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "sim/run/sweep/crew.hpp"

namespace stagecraft {

/// How it went on the first process.
struct HandedOut {
  bool stopped = false;
  std::vector<int> lost;  ///< Processes that no word came from any more; what they had was given to others.
};

/// On the first process of a joined world: gives jobs to its own crew and to the other processes, whoever is free
/// first, and hears of each end. A process that is silent for ten seconds is lost, and its jobs go to others; a job
/// that two processes were lost with counts as crashed. `key`: of what is shared, the same in all processes.
HandedOut hand_out(std::span<const int> jobs, const std::string& key, Crew& own, const std::function<bool()>& stop,
                   const std::function<void(const JobEnd&)>& done);

/// On the others: does what the first gives them, until it says that this is all.
void take_part(const std::string& key, Crew& own);

/// Tells the others that this is all, on every way out of what the first does.
class Dismissal {
 public:
  Dismissal() = default;
  ~Dismissal();
  Dismissal(const Dismissal&) = delete;
  Dismissal& operator=(const Dismissal&) = delete;
  void some_are_lost() { whole_ = false; }

 private:
  bool whole_ = true;
};

}  // namespace stagecraft
