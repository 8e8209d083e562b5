#pragma once

#include "sim/config/fields.hpp"
#include "sim/config/value.hpp"
#include "sim/plan/packing.hpp"

namespace stagecraft {

/// Tokens of the longest sequence that a scenario may have.
inline constexpr int kMaxSequence = 1 << 26;

/// The field `data.lengths`: a distribution, a published one by its name, a list or a file.
config::Field sequence_lengths_field();
/// Reads a checked field whose file, if it names one, is a list by now.
LengthRule length_rule(const config::Value&);

}  // namespace stagecraft
