#pragma once

#include <memory>
#include <string>
#include <vector>

#include "sim/experiment/own_orders.hpp"

namespace stagecraft {

/// An order of work, and the weights it reads.
struct SchedulingPolicy {
  const ScheduleDef* schedule;
  std::string weights = "auto";
  int effort = 0;              ///< 0: the order is written down; 1: it is found from the costs; 2: it is searched for.
  bool splits = true;          ///< Backwards may be split in two halves.
  bool leaves_margin = false;  ///< The order is searched for in less memory than there is.
  std::shared_ptr<const OwnOrder> order = {};            ///< The order of the user; then the schedule is `csv`.
  OrderShape shape = {};                                 ///< Its shape.
  std::shared_ptr<const OwnSchedule> own_schedule = {};  ///< The schedule of the user, whose definition is `schedule`.

  std::string name() const { return order ? order->name : std::string(schedule->name); }
};

/// Whether the software is Megatron-LM or builds on it.
bool is_megatron(const SoftwareStack&);

/// The policies that a search tries. A weights policy that needs a flush goes with the schedules that have one, any
/// other with those that have none. Without names of weights, every schedule is tried with those that the scenario
/// names. A file NAME.csv stands for an order of the user. Without names of schedules and without schedules of the user
/// the usual synchronous ones and `synthesised`, for software of Megatron-LM and torchtitan what these run, and those
/// without a flush where weights are named that need none. InputError for schedules that are not searched.
std::vector<SchedulingPolicy> scheduling_policies(const std::vector<std::string>& schedules,
                                                  const std::vector<std::string>& weights, const SoftwareStack&,
                                                  const WeightsSpec& configured = weights_spec("auto"),
                                                  const std::vector<OwnSchedule>& own_schedules = {});

}  // namespace stagecraft
