#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sim/core/diagnostic.hpp"
#include "sim/interchange/rules/framework_rule.hpp"

namespace stagecraft {

/// What the rules of torchtitan look at. What is not known is 0, which keeps every rule about it.
struct TorchtitanRun {
  bool main = false;  ///< Configured in Python, since 2026-02-23.
  int devices = 0, ranks = 1, tensor = 1, context = 1, expert = 1, expert_tensor = 0, replicate = 1, shard = 1;
  std::string schedule = {};  ///< As torchtitan calls it.
  std::int64_t stages = 1, micro_batches = 0;
  std::int64_t local_batch = 0, micro_batch = 0, global_batch = 0;
  int sequence = 0, heads = 0, key_value_heads = 0, experts = 0;
  std::int64_t tokens = 0;                         ///< A micro-batch of a rank has them; main alone looks at them.
  int first_less = 1, last_less = 1;               ///< Layers that embedding and scores count as.
  int layers = 0;                                  ///< The model has them.
  std::string attention = {}, recomputation = {};  ///< In torchtitan's words; empty: as the release has it.
  bool divides_rows = true;                        ///< Sequence parallelism in a tensor group.
  bool compiles_model = false, async_tensor = false, disables_graphs = false;
  bool exchanges_without_host = false;  ///< Experts exchange rows so that CUDA graphs can have the exchange.
  bool overlaps_experts = true;         ///< DualPipeV does, where it can.
};

/// What to write instead of a key that main, or no release that reads TOML, has; nothing where the key is known. Keys
/// of data, logs and checkpoints are known by their section.
std::optional<std::string> help_for_unknown_key(const std::string& key, bool main);

/// A flavor of one of torchtitan's models, and the model of the library that it is.
struct TorchtitanFlavor {
  const char *name, *flavor, *model;
  int layers, hidden, heads, key_value_heads, experts;
  const char* config;  ///< A published configuration with the data of this family; main has one for most flavors.
};
std::span<const TorchtitanFlavor> torchtitan_flavors();

/// Layers of each of these stages, as torchtitan divides them: embedding and scores count as layers of the first and
/// the last stage, and the first stages have what remains. Empty where a stage would have nothing.
std::vector<int> torchtitan_layers(int layers, int stages, int of_embedding, int of_scores);

/// The rules that a run breaks: the code is the rule, and the path the part of a plan that it is about: group, shard,
/// schedule or batch.
std::vector<Diagnostic> broken_torchtitan_rules(const TorchtitanRun&);

}  // namespace stagecraft
