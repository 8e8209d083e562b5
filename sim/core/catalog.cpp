// The error for a name that its catalog (schedules, planners, backends and others) does not have, with suggestions.

#include "sim/core/catalog.hpp"

#include <algorithm>
#include <iterator>

#include <fmt/core.h>

namespace stagecraft {

InputError unknown_entry(std::string_view kind, std::string_view name, const std::vector<std::string>& names) {
  struct Listed {
    std::string_view kind, list;  ///< What `stagecraft list` calls the entries of a kind.
  };
  constexpr Listed kListed[] = {{"schedule", "schedules"},     {"planner", "planners"},     {"backend", "backends"},
                                {"weights policy", "weights"}, {"optimizer", "optimizers"}, {"task", "tasks"},
                                {"model builder", "builders"}, {"topology", "generators"}};
  std::string help = suggest(name, names);
  const auto listed =
      std::find_if(std::begin(kListed), std::end(kListed), [&](const Listed& l) { return l.kind == kind; });
  if (help.empty() && listed != std::end(kListed)) help = fmt::format("stagecraft list {} shows them", listed->list);
  return InputError(fmt::format("'{}' is not a known {}", name, kind), help);
}

}  // namespace stagecraft
