#pragma once

#include <string>
#include <vector>

#include "sim/core/diagnostic.hpp"

namespace stagecraft {

/// An override of a recipe of Megatron-Bridge: "model.context_parallel_size=2".
struct BridgeOverride {
  std::string key, value;
  std::string option = {};  ///< The option of Megatron-LM that it stands for.
};

/// What a command of Megatron-Bridge's launcher says, or a file with a recipe and its overrides.
struct BridgeCommand {
  static constexpr int kMostDevices = 1'000'000;

  std::string recipe;                     ///< Empty where none is named.
  int nodes = 0, each = 0, gpus = 0;      ///< Nodes, GPUs of each, and all GPUs, where the launcher is told.
  std::vector<BridgeOverride> overrides;  ///< Short options first: an override is stronger.
  std::vector<std::string> without_use;   ///< Options that change neither time nor memory.
  std::vector<std::string> assumed;       ///< What a script leaves open.
  std::vector<Diagnostic> problems;
};

/// Never throws: what is wrong is among the problems. `file` is their place.
BridgeCommand read_bridge_command(const std::string& text, const std::string& file);

}  // namespace stagecraft
