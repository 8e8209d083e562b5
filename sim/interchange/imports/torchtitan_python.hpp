#pragma once

#include <map>
#include <string>

#include "sim/interchange/imports/toml.hpp"

namespace stagecraft {

/// Whether a text is a Python file with functions that make configurations of torchtitan.
bool is_torchtitan_python(const std::string& text);

/// What a function of the file makes, by the keys of 0.2.2; without a name, its only function. `is_main` becomes false
/// where the keys belong to releases before 2026-08-20. InputError where a value that counts is computed.
std::map<std::string, TomlValue> read_torchtitan_python(const std::string& text, const std::string& file,
                                                        const std::string& function, bool& is_main);

}  // namespace stagecraft
