#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/core/diagnostic.hpp"
#include "sim/experiment/run.hpp"
#include "sim/interchange/exports/transformer_facts.hpp"
#include "sim/interchange/rules/torchtitan.hpp"

namespace stagecraft {

/// Collects why a framework cannot run a plan, so that all reasons are told at once.
class ExportRefusals {
 public:
  /// `framework` is "export megatron".
  ExportRefusals(std::string framework, const PlanSpec& plan) : framework_(std::move(framework)), plan_(plan) {}

  /// `help` is the smallest change that is accepted. `field` of the plan is the reason; without one, something else is.
  void add(std::string why, std::string help, std::string_view field = {});
  /// What no plan changes: the model, its number format, or what the model's code makes. The code is kModelRefusal.
  void add_of_model(std::string why, std::string help);
  /// The framework does not have the schedule. The code is kScheduleRefusal.
  void add_of_schedule(std::string why, std::string help);
  /// A rule of the framework that the plan breaks; a warning is none.
  void add(const FrameworkRules&, const Diagnostic&, std::string_view field = {});
  /// The problem as another reader found it, without its place, which is in a text that is not written.
  void add(Diagnostic problem);
  void require_usual_order(const Degrees&);
  void require_transformer(const TransformerFacts&);
  /// Stages that are divided and replicated alike.
  void require_even(const Plan&);
  void throw_if_any() const;

 private:
  std::string framework_;
  const PlanSpec& plan_;
  std::vector<Diagnostic> problems_;
};

/// Samples of a micro-batch of one replica.
int samples_per_replica(const PlannedExperiment&);
/// Micro-batches of one iteration.
int micro_batch_count(const PlannedExperiment&);
std::string_view precision_of(const PlannedExperiment&);
/// Pipeline ranks.
int rank_count(const PlannedExperiment&);
/// An option of `run.schedule`; empty where it is not written.
std::string schedule_option(const PlannedExperiment&, const char* name);
/// The layers of a stage, by what they are.
std::vector<LayerPart> parts_of_stage(const PlannedExperiment&, const Stage&);

}  // namespace stagecraft
