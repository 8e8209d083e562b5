#pragma once

#include <vector>

#include "models/decoder.hpp"
#include "sim/config/fields.hpp"

namespace stagecraft {

/// The fields of the builder `transformer` that describe a decoder other than GPT-2. All are optional: without them a
/// layer is a layer of GPT-2.
std::vector<config::Field> decoder_fields();

/// The shape that a checked map describes; without `sequence` and `vocabulary` these are 1. What does not fit together
/// becomes a problem.
DecoderShape read_decoder(const config::Value& checked, config::Problems&);

}  // namespace stagecraft
