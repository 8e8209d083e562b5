#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/config/fields.hpp"
#include "sim/config/value.hpp"

namespace stagecraft::config {

/// Puts `value` at a dotted path: "run.micro_batches", "links.nvlink.latency" (a list item by its `name`),
/// "devices[2].memory" (by index). Maps on the way that are not there are added; a step through a list or a value that
/// is not there is a problem with a suggestion.
void set_path(Value& root, std::string_view path, Value value, const Where& where, Problems&);

/// One "path=value" of a command line's option; problems point at "<--set path=value>:1:column". Nothing when the value
/// is missing.
std::optional<Member> read_assignment(const std::string& option, const std::string& assignment, Problems&);

/// One "--set path=value" of the command line.
void apply_set(Value& root, const std::string& assignment, Problems&);

/// A flat map of dotted paths to values, as under `override:`; `path` is where that map stands.
void apply_overrides(Value& root, const Value& overrides, const std::string& path, Problems&);

/// The field of the table that a dotted path of `root` leads to, or nullptr. `root` picks the variants on the way; the
/// value itself may be absent.
const Field* field_at(const MapSpec&, const Value& root, std::string_view path);

/// A scalar for a list of scalars becomes the list of this one item; every other value stays as it is.
Value list_if_needed(Value value, const Field* field);

/// The value at a dotted path, or nullptr.
const Value* get_path(const Value& root, std::string_view path);

/// A value on one line, as --set takes it: {name: "synthesised", chunks: 2}.
std::string to_set_text(const Value&);

}  // namespace stagecraft::config
