// The list of all frameworks with rules, and how a rule that is broken reads as a problem.

#include "sim/interchange/rules/framework_rule.hpp"

#include <fmt/core.h>

#include "sim/core/diagnostic.hpp"

namespace stagecraft {

std::span<const FrameworkRules* const> all_framework_rules() {
  static const FrameworkRules* const frameworks[] = {&megatron_rules(), &torchtitan_rules(), &deepspeed_rules(),
                                                     &bridge_rules()};
  return frameworks;
}

const FrameworkRule& find_rule(const FrameworkRules& framework, std::string_view name) {
  for (const FrameworkRule& rule : framework.rules)
    if (rule.name == name) return rule;
  throw InternalError(fmt::format("{} has no rule '{}'", framework.title, name));
}

std::string title_of(const FrameworkRules& framework, std::string_view release) {
  if (release.empty()) return std::string(framework.title);
  return fmt::format("{} {}", framework.title.substr(0, framework.title.rfind(' ')), release);
}

std::string refused_by(const FrameworkRules& framework, const FrameworkRule& rule, std::string_view release) {
  return fmt::format("{} {} this {} ({}): ", title_of(framework, release), rule.only_warns() ? "warns of" : "refuses",
                     rule.when, rule.kind);
}

}  // namespace stagecraft
