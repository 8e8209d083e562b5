#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/interchange/imports/megatron_options.hpp"

namespace stagecraft {

/// What a key of Megatron-Bridge's configuration is here.
struct BridgeKey {
  std::string section;       ///< "model" of "model.context_parallel_size"; the whole key where it has none.
  std::string option;        ///< The option of Megatron-LM that it stands for, whether there is one or not.
  bool is_inverted = false;  ///< The option is there where the key is false.
  bool is_renamed = false;   ///< The option has another name than the key.
};
BridgeKey bridge_key(const std::string& key);

/// What a key changes that no option of Megatron-LM stands for; nothing where Megatron-Bridge has no such key here.
std::optional<MegatronUse> use_of_bridge_key(const BridgeKey&, const std::string& key);

/// "model.tensor_model_parallel_size" for an option in a section.
std::string bridge_key_of(const std::string& section, const std::string& option);

/// Names of one use in a section: options of Megatron-LM where a field stands for them, else keys without the section.
struct BridgeNames {
  MegatronUse use;
  std::string_view section, names;

  std::vector<std::string> words() const;
};
/// Options that a plan decides, by the sections of their overrides. The rest is the model of a recipe.
std::span<const BridgeNames> planned_options();
/// The section of an option of a plan.
std::string section_of(const std::string& option);
/// `section`, where Megatron-Bridge may have the option there; else where it has it.
std::string section_for(const std::string& option, const std::string& section);
/// Whether the section ddp has an option too that Megatron-Bridge decides by comm_overlap: with a distributed optimizer
/// it overlaps both unless comm_overlap says otherwise, whatever ddp says.
bool is_overruled(const BridgeKey&);

/// Keys that are near an unknown one: "did you mean 'model.tensor_model_parallel_size'?", or nothing.
std::string suggest_bridge_key(const BridgeKey&, const std::string& key);

}  // namespace stagecraft
