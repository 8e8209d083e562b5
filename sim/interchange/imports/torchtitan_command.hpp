#pragma once

#include <map>
#include <string>

#include "sim/interchange/imports/shell_words.hpp"
#include "sim/interchange/imports/toml.hpp"

namespace stagecraft {

/// Whether a text is the command line of a release of torchtitan that is configured in Python, since 2026-02-23:
/// "--module llama3 --config llama3_70b --parallelism.tensor_parallel_degree 8".
bool is_torchtitan_command(const std::string& text);

/// GPUs that a launcher before the program starts: "torchrun --nproc_per_node 8 --nnodes 4 -m torchtitan.train"; 0
/// where there is none.
int launched_gpus(const ShellScript&);

/// Its options by the keys that torchtitan 0.2.2 has for them. InputError for keys that those releases do not have.
std::map<std::string, TomlValue> read_torchtitan_command(const ShellScript&, const std::string& file);

}  // namespace stagecraft
