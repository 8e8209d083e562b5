#pragma once

#include <vector>

#include "sim/config/fields.hpp"

namespace stagecraft {

/// How micro-batches are slices of sequences: each sequence comes in `slices` of them, one after the other.
struct Slices {
  int slices = 2;
  bool cut = false;       ///< The sequences of the scenario are cut; else its samples are slices already.
  bool exchange = false;  ///< Ranks share the attention of the slices that they have in progress.

  friend bool operator==(const Slices&, const Slices&) = default;
};

/// The fields `slices`, `cut` and `exchange` of schedules that go over slices.
std::vector<config::Field> slice_fields();

/// From a checked `run.schedule`; one slice for schedules without the fields.
Slices read_slices(const config::Value& schedule);

}  // namespace stagecraft
