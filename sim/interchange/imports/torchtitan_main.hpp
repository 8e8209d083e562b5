#pragma once

#include <map>
#include <string>
#include <string_view>

#include "sim/interchange/imports/toml.hpp"

namespace stagecraft {

// Releases of torchtitan since 2026-02-23 are configured in Python, and their keys changed until 2026-08-20. The
// readers of a command line and of a Python file give what they find here, and torchtitan.cpp reads the keys of 0.2.2
// alone.

/// Keys and values of a configuration that main (2026-08-21) has, such as "llama3_70b"; empty where it is not known.
std::map<std::string, TomlValue> published_torchtitan_values(const std::string& config);

/// A value as a command line has it: True, -1 or a word.
Json torchtitan_option(const std::string& text);

/// InputError for keys that main does not have. `prefix` is what stands before a key where it was written.
void check_keys_of_main(const std::map<std::string, TomlValue>& values, const std::string& file,
                        std::string_view prefix);

/// The key of main for a key of 0.2.2: "training.max_context_length" for "training.seq_len".
std::string torchtitan_key_of_main(const std::string& key);

/// Whether a key is of releases before 2026-08-20, and main has another for it.
bool is_older_torchtitan_key(std::string_view key);

/// Keys of main as keys of 0.2.2. Numbers of tokens become samples. Where the whole configuration is known, what it
/// does not give is as main has it.
std::map<std::string, TomlValue> as_keys_of_toml(std::map<std::string, TomlValue> values, const std::string& file,
                                                 bool has_defaults);

}  // namespace stagecraft
