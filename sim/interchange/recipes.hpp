#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace stagecraft {

/// A published configuration of a training run: a row of scenarios/recipes/recipes.csv. A zero and an empty text stand
/// for what was not published.
struct Recipe {
  std::string name, framework, model;
  int layers = 0, hidden = 0, heads = 0, experts = 0;  ///< The shape of the model; without experts 0.
  int devices = 0;
  std::string chip;  ///< A device preset.
  std::string precision;
  int sequence = 0;
  int tensor = 1, pipeline = 1, chunks = 1, context = 1, expert = 1, expert_tensor = 1;
  std::string context_type;
  int micro_batch_size = 0, global_batch = 0;  ///< Samples of a replica, and of an iteration.
  std::string layout, shard;
  std::string recompute;             ///< In the words of the framework: "selective mla_up_proj mlp".
  std::string dispatcher;            ///< Likewise: "flex hybridep".
  std::vector<std::string> overlap;  ///< Switches of `software.overlap` that are on.
  int gradient_bytes = 0;            ///< Bytes of a gradient that replicas sum; 0: as the stack has it.
  std::string broken_rule;           ///< The rule of the framework that it breaks; empty: the framework runs it.
  std::string remarks, source;

  int replicas() const { return devices / (tensor * pipeline * context); }
};

/// InputError with the line of what cannot be read.
std::vector<Recipe> read_recipes(std::string_view text, const std::string& file);
/// The recipes of the library; none where the library has no such file.
const std::vector<Recipe>& published_recipes();

/// What `plan.recompute` is for the words of a recipe: "layers", "half", "[mla_up_proj, mlp]" or "none".
std::string recomputation_of(const Recipe&);

/// The settings that make the plan of a recipe of a scenario with the same model, on this number of devices and with
/// as many samples in an iteration. Empty where replicas cannot be added or taken away so that it fits.
std::vector<std::string> sets_of(const Recipe&, int devices, int global_batch);

}  // namespace stagecraft
