#pragma once

#include <optional>
#include <string>

#include "sim/config/fields.hpp"

namespace stagecraft::config {

/// The list that a scalar stands for in a list field, or nothing where it cannot stand for the list. In a counted list,
/// a number stands for the entries of `old`, with counts that add up to it in the old proportions; without `old` for
/// one entry with this count. Adds a problem, and returns a stand-in, where the number does not fit.
std::optional<Value> list_from_scalar(const Value& scalar, const Field& list, const Value* old, const std::string& path,
                                      Problems&);

/// What to write for a list instead of `written`, which is not one.
std::string how_to_write_list(const Field& list, const Value& written);

}  // namespace stagecraft::config
