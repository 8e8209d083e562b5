// What the exporters to Megatron-LM, torchtitan and DeepSpeed share: the reasons to refuse a plan, collected for one
// error, and numbers of the plan that their options need.

#include "sim/interchange/exports/export_support.hpp"

#include <set>

#include <fmt/core.h>

#include "sim/interchange/frameworks.hpp"

namespace stagecraft {

void ExportRefusals::add(std::string why, std::string help, std::string_view field) {
  const Where where = field.empty() ? Where{} : plan_.where(field);
  problems_.push_back({where, framework_, std::move(why), std::move(help), "framework"});
}

void ExportRefusals::add_of_model(std::string why, std::string help) {
  add(std::move(why), std::move(help));
  problems_.back().code = kModelRefusal;
}

void ExportRefusals::add_of_schedule(std::string why, std::string help) {
  add(std::move(why), std::move(help));
  problems_.back().code = kScheduleRefusal;
}

void ExportRefusals::add(const FrameworkRules& framework, const Diagnostic& broken, std::string_view field) {
  const FrameworkRule& rule = find_rule(framework, broken.code);
  if (rule.only_warns()) return;
  add(refused_by(framework, rule) + broken.message, broken.help, field);
  problems_.back().code = broken.code;
}

void ExportRefusals::add(Diagnostic problem) {
  problem.where = {};
  problem.path = framework_;
  problems_.push_back(std::move(problem));
}

void ExportRefusals::require_usual_order(const Degrees& d) {
  if (d.order.axes != RankOrder{}.axes)
    add(fmt::format("{} numbers devices in one order alone, not as {}", framework_.substr(framework_.find(' ') + 1),
                    to_text(d.order)),
        "order: tp-cp-ep-dp-pp", "group");
}

void ExportRefusals::require_transformer(const TransformerFacts& f) {
  if (f.layers == 0 || f.hidden == 0)
    add_of_model("the model is no transformer with an embedding", "a model of the builder transformer");
  if (f.experts > 0 && !f.dense_first)
    add_of_model("a layer without experts comes after one with experts", "a model whose first layers alone are dense");
  if (f.latent && f.key_value_rank == 0)
    add_of_model("the widths of latent attention are not known", "a model of the builder transformer");
}

void ExportRefusals::require_even(const Plan& plan) {
  const Stage& first = plan.stages.front();
  for (const Stage& stage : plan.stages) {
    if (stage.divides_itself)
      return add("stages have groups or divided states of their own", "one group and shard for the plan");
    if (stage.share != Share::Samples || stage.micro_batch_size != first.micro_batch_size ||
        stage.replicas() != first.replicas() || stage.shape.recomputation != first.shape.recomputation)
      return add("stages differ in replicas, micro-batches or recomputation", "a plan of the planner balanced");
  }
}

void ExportRefusals::throw_if_any() const {
  if (!problems_.empty()) throw InputError(problems_);
}

int samples_per_replica(const PlannedExperiment& p) {
  const Stage& first = p.plan.stages.front();
  return first.micro_batch_size / first.replicas();
}

int micro_batch_count(const PlannedExperiment& p) { return p.plan.micro_batches(StageId{0}); }

std::string_view precision_of(const PlannedExperiment& p) { return name(p.experiment.rules->format); }

int rank_count(const PlannedExperiment& p) {
  std::set<DeviceId> first;
  for (const Stage& stage : p.plan.stages) first.insert(stage.leaders.front());
  return static_cast<int>(first.size());
}

std::string schedule_option(const PlannedExperiment& p, const char* name) {
  const config::Value* option = p.experiment.schedule.options ? p.experiment.schedule.options->find(name) : nullptr;
  return option ? option->text : "";
}

std::vector<LayerPart> parts_of_stage(const PlannedExperiment& p, const Stage& stage) {
  std::vector<LayerPart> parts;
  for (const LayerId id : stage.shape.layers) parts.push_back(part_of(p.model().layers[id]));
  return parts;
}

}  // namespace stagecraft
