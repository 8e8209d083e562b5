// Reads a scenario again with the options of a suggestion, without parsing its file again, for diagnoses.

#include "sim/experiment/scenario_variants.hpp"

#include <memory>
#include <optional>

#include "sim/config/library.hpp"
#include "sim/config/override.hpp"
#include "sim/experiment/scenario_version.hpp"

namespace stagecraft {

using config::Problems;

ScenarioReader scenario_reader(const std::string& file, const std::vector<std::string>& sets, const Experiment& base) {
  // Read when it is asked for: a pipe cannot be read once more, and then there are no variants.
  const auto tree = std::make_shared<std::optional<config::Value>>();
  return [file, tree, sets, base](const std::vector<std::string>& more) {
    Problems wrong;
    if (!*tree) {
      config::Value read = scenario_tree(scenario_file(file), wrong);
      wrong.throw_if_any();
      *tree = std::move(read);
    }
    std::vector<config::Member> overrides;
    for (const std::string& set : with_chosen_options(sets, more))
      if (auto read = config::read_assignment("--set", set, wrong)) overrides.push_back(std::move(*read));
    config::Value checked = checked_scenario(**tree, overrides, wrong);
    wrong.throw_if_any();
    return read_experiment(settled_scenario(std::move(checked)), &base);
  };
}

}  // namespace stagecraft
