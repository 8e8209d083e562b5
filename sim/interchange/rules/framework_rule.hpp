#pragma once

#include <span>
#include <string>
#include <string_view>

namespace stagecraft {

/// One thing that a framework demands of a configuration.
struct FrameworkRule {
  std::string_view name;     ///< The code of its diagnostics.
  std::string_view formula;  ///< What holds, with W GPUs, T tensor, P pipeline, V virtual stages, C context, E expert,
                             ///< U expert tensor, D replicas, M micro-batches, N micro-batches of a group.
  std::string_view kind;  ///< How the framework says that it is broken: an exception, "exit" of its parser, "warning".
  std::string_view when;  ///< "when it checks its arguments".
  std::string_view since = {};  ///< The first release that demands it; empty: all releases that are known.

  bool only_warns() const { return kind == "warning"; }
};

/// A framework and the release whose code the rules are from.
struct FrameworkRules {
  std::string_view name;   ///< As in `check --framework`.
  std::string_view title;  ///< "Megatron-LM 0.20".
  std::span<const FrameworkRule> rules;
};

const FrameworkRules& megatron_rules();
const FrameworkRules& torchtitan_rules();
const FrameworkRules& deepspeed_rules();
const FrameworkRules& bridge_rules();
std::span<const FrameworkRules* const> all_framework_rules();

/// The rule of this name, which has to be there.
const FrameworkRule& find_rule(const FrameworkRules&, std::string_view name);
/// "Megatron-LM 0.20", or with another release.
std::string title_of(const FrameworkRules&, std::string_view release = {});
/// "Megatron-LM 0.20 refuses this at the first step (ValueError): ", or another release does.
std::string refused_by(const FrameworkRules&, const FrameworkRule&, std::string_view release = {});

}  // namespace stagecraft
