#pragma once

#include <string>
#include <vector>

#include "sim/experiment/experiment.hpp"
#include "sim/experiment/own_orders.hpp"
#include "sim/output/schedule_table.hpp"

namespace stagecraft {

/// "all", or names and files of orders, NAME.csv, with commas between. "all" means every schedule that trains, and an
/// order from a file when the scenario has one. Throws InputError for other names.
std::vector<std::string> parse_schedules(const std::string& words, const Experiment&);

struct ScheduleTableOptions {
  std::string schedules = "all";
  std::vector<OwnOrder> orders = {};  ///< After the schedules.
  std::string backend = "ideal";      ///< A simulator.
  bool keep = false;                  ///< Whether rows keep programs and timelines, for drawings.
  int replay = 0;                     ///< Number of rows to replay on `fluid`.
  SortKey by = SortKey::Period;  ///< Time: the rows with the shortest makespan are replayed; else the shortest period.
};

/// Every schedule on the model, the devices and the micro-batches of an experiment, in the order of the catalog or of
/// the names. The scenario's own keeps its options. Another lies on the same devices, with as many stages on each as
/// the scenario has, or with as few as make it what it is, and uses the scenario's weights policy where it goes with
/// it, else its own. What cannot run is a row with its reason.
///
/// At least five iterations are simulated, more where a micro-batch stays longer in the pipeline, so that there is a
/// period and stale weights are as stale as they get.
///
/// Where a StopScope ends it after the first row, the table has the rows that were complete, and the names of the
/// others.
ScheduleTable compare_schedules(const Experiment&, const ScheduleTableOptions&);

}  // namespace stagecraft
