#pragma once

#include <functional>
#include <string>

#include "sim/experiment/run.hpp"

// Orders of the user, one iteration each, in tables of schedules, in searches and in sweeps.

namespace stagecraft {

/// An order of the user, with its name in tables.
struct OwnOrder {
  std::string name;
  std::string csv;   ///< One iteration as PyTorch writes it, compute alone.
  std::string file;  ///< The place of errors.
};

/// Whether a word in place of a schedule is a file of an order, NAME.csv.
bool is_order_file(const std::string& word);
/// The order in a file, with the name of schedule_title().
OwnOrder own_order(const std::string& file);
/// The schedule `csv` with the rows of the order.
ScheduleSpec schedule_of(const OwnOrder&);
/// What tables call a schedule: an order from a file by the name of the file, without .csv unless that is the name of
/// a schedule.
std::string schedule_title(const ScheduleSpec&);

/// What a plan needs to have for an order to run on it.
struct OrderShape {
  int ranks = 1, stages = 1, micro_batches = 1;
  bool turns = false;  ///< The second half of the stages goes back up the ranks, as in ZB-V.

  /// A schedule whose stages lie where the order has them.
  const ScheduleDef& placed_as() const;
};
/// InputError for a file that is no order, with the place.
OrderShape shape_of(const OwnOrder&);

/// A schedule of the user that gives an order for any plan, as a function of a Python program does.
struct OwnSchedule {
  ScheduleSpec spec;                                           ///< Its name, and where its stages lie.
  std::function<OwnOrder(const PlannedExperiment&)> order_on;  ///< Several threads may call it.
};

}  // namespace stagecraft
