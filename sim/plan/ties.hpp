#pragma once

#include <vector>

#include "sim/model/model_graph.hpp"
#include "sim/plan/plan.hpp"

namespace stagecraft {

/// Weights that layers of more than one stage share, in the order of the model. Single tasks of layers are left out.
std::vector<Tie> ties_of(const Plan&, const ModelGraph&);

/// All of the devices, each once, in this order.
std::vector<DeviceId> each_once(const std::vector<std::vector<DeviceId>>&);

/// Devices that add up the gradient of tied weights, each once. Each of them has that of its own stage, and of the
/// replicas and the copy of it.
struct TieRing {
  int tie = 0;  ///< Index into Plan::ties.
  std::vector<DeviceId> devices;
};

/// `holders` are the devices of each group that holds the weights. As many in each: the k-th of each make a ring (as in
/// Megatron-LM's embedding groups), but a device that is in several groups is in one ring alone. Else one ring of all.
/// A ring of one is left out.
std::vector<TieRing> tie_rings(int tie, const std::vector<std::vector<DeviceId>>& holders);

}  // namespace stagecraft
