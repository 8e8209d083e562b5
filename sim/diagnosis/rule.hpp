#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/diagnosis/changed.hpp"
#include "sim/diagnosis/idealized.hpp"

// The rules of a diagnosis: what each one gets and returns, and which there are. diagnose.cpp calls all of them.

namespace stagecraft {

/// What a rule looks at.
struct DiagnosisInput {
  const CompiledExperiment& compiled;
  const Outcome& outcome;
  IdealizedRuns& idealized;
  ChangedRuns& changed;
  const std::string& backend;
  Seconds period;  ///< The period of the run.
  bool may_plan;   ///< Whether a rule may plan again: a planner that searches would search again, for another plan.

  const Plan& plan() const { return compiled.plan; }
  const Program& program() const { return compiled.program; }
  const Cluster& cluster() const { return compiled.cluster(); }
  const Experiment& experiment() const { return compiled.experiment; }
  const Report& report() const { return outcome.report; }
};

/// One cause: says how much time it costs and which changes may help, or nothing where it costs none.
using DiagnosisRule = std::optional<Finding> (*)(const DiagnosisInput&);

namespace diagnosis {

std::optional<Finding> unequal_stages(const DiagnosisInput&);
std::optional<Finding> slow_device(const DiagnosisInput&);
std::optional<Finding> placement(const DiagnosisInput&);
std::optional<Finding> shared_link(const DiagnosisInput&);
std::optional<Finding> slow_link(const DiagnosisInput&);
std::optional<Finding> gradient_sums(const DiagnosisInput&);
std::optional<Finding> group_collectives(const DiagnosisInput&);
std::optional<Finding> launches(const DiagnosisInput&);
std::optional<Finding> recomputation(const DiagnosisInput&);
std::optional<Finding> expert_imbalance(const DiagnosisInput&);
std::optional<Finding> unequal_loads(const DiagnosisInput&);
std::optional<Finding> host_memory(const DiagnosisInput&);
std::optional<Finding> bubble(const DiagnosisInput&);

// What rules share to make a finding, and the texts in it.

/// A loss below this share of the period is not worth a change.
inline constexpr double kSmallLoss = 0.05;

/// A finding that costs `lost` of the period.
Finding finding(const DiagnosisInput&, std::string_view cause, std::string where, Seconds lost);
/// "stage 3 (l18..loss)": its number and its first and last layer.
std::string stage_text(const DiagnosisInput&, StageId);
/// `plan.devices=[...]`.
std::string devices_set(const std::vector<DeviceId>&, const Cluster&);

}  // namespace diagnosis
}  // namespace stagecraft
