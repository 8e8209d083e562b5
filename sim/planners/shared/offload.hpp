#pragma once

#include <string>
#include <vector>

#include "sim/config/fields.hpp"
#include "sim/core/quantity.hpp"

namespace stagecraft {

/// What a plan keeps in the memory of hosts for a part of the time: `plan.offload`.
struct Offload {
  double activations = 0;                 ///< Share of each stash, or of the inputs of `modules` in it.
  std::vector<std::string> modules = {};  ///< offload_modules(); empty: the whole stash.
  bool selective = false;  ///< The least shares that fit, longest-lived stashes first, in place of `activations`.
  Bytes less{};            ///< A rank keeps so much more of each stash on its device than the rank before it.
  int chunks = 0;          ///< Only the stages of the first chunks of each rank; 0: all stages.
  int ahead = 1;           ///< A fetch is asked for when the op this many places before its backward starts.
  bool late = true;        ///< Forwards before the first backward of a device wait until they are needed.
  double optimizer = 0;    ///< Share of the states of the optimizer, which the host then updates.
  bool beside = true;      ///< Its copies and updates run next to each other, bucket by bucket.

  bool moves_stashes() const { return selective || activations > 0; }
  friend bool operator==(const Offload&, const Offload&) = default;
};

config::Field offload_field();
/// Reads a checked map. InputError for a share that is none.
Offload read_offload(const config::Value& checked);
/// "{activations: 50 %, ahead: 2}": as a scenario writes it, of the members that differ from their defaults.
std::string to_text(const Offload&);
/// "50 %", "selective", "50 % of moe_act", "optimizer": what moves, in a few words.
std::string short_text(const Offload&);

}  // namespace stagecraft
