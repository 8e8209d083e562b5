#pragma once

#include <string>
#include <utility>
#include <vector>

#include "sim/report/replay.hpp"

namespace stagecraft {

/// One way to train, simulated.
struct Choice {
  int devices = 0, stages = 0, replicas = 1, micro_batch_size = 1, micro_batches = 1;
  std::string planner, placement, schedule, weights;
  std::string recompute = "none";
  Seconds period, makespan;
  std::optional<Replayed> replayed;  ///< The same two where messages share links.
  double throughput = 0;             ///< Samples per second at the period.
  Bytes memory;                      ///< Of the fullest device.
  double filled = 0;                 ///< Most of the memory of a device that has no reserve, as a share.
  Bytes unexchanged;                 ///< Gradients of tied weights whose exchange is not simulated.
  std::string limit;                 ///< What holds it up.
  int id = 0;                        ///< Which of the combinations that were tried.
  std::vector<std::string> sets;     ///< The settings that make it of the scenario, for rows that are printed.
};

/// The period where messages share links, if it is known; else the one where they do not.
Seconds known_period(const Choice&);

/// Whether a is not worse than b in period, memory and devices. Times that agree to nine digits are equal.
bool covers(const Choice& a, const Choice& b);

struct ChoiceTable {
  std::string title, model, cluster;
  int samples = 0;
  int plans = 0, simulated = 0, unfit = 0;  ///< Plans, simulations of them, and those without enough memory.
  bool cut_short = false;                   ///< Some that could have been better were not simulated.
  Seconds own;                              ///< The period of the scenario as it stands; 0: it cannot run.
  std::optional<Replayed> own_replayed;     ///< The same where messages share links.
  Seconds bound;                            ///< The work of the busiest device in the plan where that is least.
  std::vector<std::pair<std::string, std::string>> refused;  ///< Schedules that run none of the plans, and why.
  std::vector<std::string> notes;                            ///< Remarks on the scenario as it stands.
  Replay replay;
  /// Covered by no other, or where messages share links by none of those that were played again; shortest period first,
  /// those that were played again by the period then.
  std::vector<Choice> front;
};

/// Rows of a front that have much less memory, or fewer devices, than any before them.
std::vector<bool> stand_out(const std::vector<Choice>& front);

/// The front, or those of it that stand out in its order or in that of the periods without sharing.
std::string to_text(const ChoiceTable&, bool all);
/// The line below the table about rows without the exchange of tied weights' gradients; empty where none is.
std::string unexchanged_text(const ChoiceTable&);
std::string choices_csv(const ChoiceTable&);
std::string choices_json(const ChoiceTable&);  ///< Schema choices/1; SI units.

}  // namespace stagecraft
