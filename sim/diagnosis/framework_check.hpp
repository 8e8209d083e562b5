#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "sim/core/diagnostic.hpp"
#include "sim/experiment/run.hpp"

namespace stagecraft {

/// The rules that the frameworks of the software stack find broken in a plan with its order of work; none without a
/// framework.
std::vector<Diagnostic> framework_refusals(const PlannedExperiment&);
/// Whether the stack of this name stands for a framework that has rules.
bool has_framework_rules(std::string_view stack);

/// Whether advice can be followed in the framework that the software stack stands for: its exporter must accept the
/// changed plan. What it refuses of the unchanged plan already does not count.
class FrameworkCheck {
 public:
  explicit FrameworkCheck(const Experiment& unchanged);
  explicit FrameworkCheck(const PlannedExperiment& unchanged);

  /// Whether the stack has an exporter, so that a change may be refused at all.
  bool has_exporter() const { return has_exporter_; }
  bool accepts(const PlannedExperiment& changed) const;
  /// accepts() of the plan of an experiment. An experiment without a plan is accepted: compiling it says why.
  bool accepts(const Experiment& changed) const;
  /// The options that turn the unchanged plan into this one, in the words of the framework. Nothing where it refuses
  /// the change; empty where it has no words for it.
  std::optional<std::string> flags_for(const Experiment& changed) const;

 private:
  bool has_exporter_;
  std::string_view stack_;
  std::set<std::string> refusals_;  ///< What the exporters say about the unchanged plan.
  std::string text_;                ///< The configuration of the unchanged plan, of the first exporter.
};

}  // namespace stagecraft
