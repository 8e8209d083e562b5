#pragma once

#include <string>

#include "sim/config/fields.hpp"
#include "sim/output/choice_table.hpp"

namespace stagecraft {

/// A line for each published configuration of the answer, with how much shorter the first row is; empty without any.
std::string published_text(const ChoiceTable&);
Json published_json(const ChoiceTable&);
/// The field of choices/1 that published_json() writes.
config::Field published_field();

}  // namespace stagecraft
