// Asks the exporter of the software stack whether its framework accepts a changed plan, so that no refused advice is
// given, and says the change in the framework's own options.

#include "sim/diagnosis/framework_check.hpp"

#include <algorithm>
#include <optional>
#include <vector>

#include "sim/interchange/framework_changes.hpp"
#include "sim/interchange/frameworks.hpp"

namespace stagecraft {
namespace {

using Exporter = FrameworkConfiguration (*)(const PlannedExperiment&);

struct FrameworkOfStacks {
  std::string_view stacks;  ///< How the names of its software stacks begin.
  Exporter write;
};

/// A stack of two frameworks, Megatron-DeepSpeed, has to be accepted by both.
constexpr FrameworkOfStacks kFrameworks[] = {{"megatron", megatron_arguments},
                                             {"nemo", megatron_arguments},
                                             {"bloom", megatron_arguments},
                                             {"torchtitan", torchtitan_config},
                                             {"megatron-deepspeed", deepspeed_config},
                                             {"bloom", deepspeed_config}};

std::vector<Exporter> exporters_of(std::string_view stack) {
  std::vector<Exporter> exporters;
  for (const auto& [stacks, write] : kFrameworks)
    if (stack.starts_with(stacks)) exporters.push_back(write);
  return exporters;
}

std::vector<Diagnostic> refusals_by(const std::vector<Exporter>& exporters, const PlannedExperiment& planned) {
  std::vector<Diagnostic> refusals;
  for (const Exporter write : exporters) try {
      write(planned);
    } catch (const InputError& e) {
      refusals.insert(refusals.end(), e.problems().begin(), e.problems().end());
    }
  return refusals;
}

std::set<std::string> refusals_of(const PlannedExperiment& planned, std::string_view stack) {
  std::set<std::string> refusals;
  for (const Diagnostic& d : refusals_by(exporters_of(stack), planned)) refusals.insert(d.path + ": " + d.message);
  return refusals;
}

/// What the first exporter of the stack writes; empty where it refuses the plan.
std::string text_of(const PlannedExperiment& planned) try {
  const std::vector<Exporter> exporters = exporters_of(planned.experiment.software().name);
  return exporters.empty() ? "" : exporters.front()(planned).text;
} catch (const InputError&) {
  return {};
}

std::optional<PlannedExperiment> plan_of(const Experiment& e) try {
  return plan_experiment(e);
} catch (const InputError&) {
  return {};
} catch (const Infeasible&) {
  return {};
}

}  // namespace

std::vector<Diagnostic> framework_refusals(const PlannedExperiment& planned) {
  return refusals_by(exporters_of(planned.experiment.software().name), planned);
}

bool has_framework_rules(std::string_view stack) { return !exporters_of(stack).empty(); }

FrameworkCheck::FrameworkCheck(const Experiment& unchanged)
    : has_exporter_(!exporters_of(unchanged.software().name).empty()), stack_(unchanged.software().name) {
  if (!has_exporter_) return;
  if (const auto planned = plan_of(unchanged)) refusals_ = refusals_of(*planned, stack_), text_ = text_of(*planned);
}

FrameworkCheck::FrameworkCheck(const PlannedExperiment& unchanged)
    : has_exporter_(!exporters_of(unchanged.experiment.software().name).empty()),
      stack_(unchanged.experiment.software().name) {
  if (has_exporter_) refusals_ = refusals_of(unchanged, stack_), text_ = text_of(unchanged);
}

bool FrameworkCheck::accepts(const PlannedExperiment& changed) const {
  if (!has_exporter_) return true;
  if (exporters_of(changed.experiment.software().name) != exporters_of(stack_)) return false;
  const std::set<std::string> refusals = refusals_of(changed, stack_);
  return std::includes(refusals_.begin(), refusals_.end(), refusals.begin(), refusals.end());
}

bool FrameworkCheck::accepts(const Experiment& changed) const {
  if (!has_exporter_) return true;
  const auto planned = plan_of(changed);
  return !planned || accepts(*planned);
}

std::optional<std::string> FrameworkCheck::flags_for(const Experiment& changed) const {
  const auto planned = plan_of(changed);
  if (!has_exporter_ || !planned) return "";
  if (!accepts(*planned)) return {};
  const std::string text = text_.empty() ? "" : text_of(*planned);
  return text.empty() ? "" : framework_changes(text_, text);
}

}  // namespace stagecraft
