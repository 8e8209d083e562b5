#pragma once

#include <map>
#include <string>
#include <string_view>

#include "sim/core/json.hpp"

namespace stagecraft {

struct TomlValue {
  Json value;
  int line = 0;
};

/// The values of a TOML 1.0 file by their dotted keys, "training.seq_len", and the lines of the keys. Dates and times
/// are strings, and tables of an array objects. InputError with its place for what is no TOML.
std::map<std::string, TomlValue> read_toml(std::string_view text, const std::string& file);

}  // namespace stagecraft
