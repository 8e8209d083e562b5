#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/config/fields.hpp"

// What the reader, the schema, `explain` and overrides share when they go over a tree and its field tables.

namespace stagecraft::config {

/// "path.key", or the key alone at the top.
std::string under(const std::string& path, std::string_view key);

/// Adds what is wrong with a scalar; `field` is neither a container nor Any.
void check_scalar(const Value&, const Field& field, const std::string& path, Problems&);

/// "write a whole number from 1 to 8".
std::string what_to_write(const Field&);

/// The field itself, or what the items of its lists and tables are.
const Field& innermost(const Field&);

/// The tables whose fields may stand in this one: its own map and the maps of its variants.
std::vector<const MapSpec*> tables_in(const Field&);

/// Paths of the maps that have a field `key`, nearest to the root first; "" is the top.
std::vector<std::string> places_of(const MapSpec& root, const std::string& root_path, std::string_view key);

/// The variant that a map without the selector means: the one whose name is a key of the map and a field of its own.
const Variant* meant_by_key(const Value& map, const std::vector<Variant>&);
bool names_its_own_field(const Variant&);

}  // namespace stagecraft::config
