#include <fmt/format.h>

#include "sim/core/text.hpp"
#include "sim/experiment/diagnosis/rule.hpp"

namespace stagecraft::diagnosis {

/// Sums of gradients, and gathers of updated weights, that computation does not hide.
std::optional<Finding> gradient_sums(const DiagnosisInput& in) {
  const Seconds lost = in.period - in.idealized.without(Cost::GradientSums);
  if (lost.value <= 0) return {};
  Bytes largest;
  std::string where = "data parallelism";
  for (const Reduction& r : in.plan().reductions) {
    if (r.bytes <= largest) continue;
    largest = r.bytes;
    where = r.stages.size() == 1 ? stage_text(in, r.stages.front()) : fmt::format("tied weights '{}'", r.name);
  }
  Finding f = finding(in, "gradient-sums", where, lost);
  f.sentence = fmt::format("Devices wait for sums of gradients ({} of {}) that no computation hides: {} of the period.",
                           to_text(largest), where, percent(f.share));
  f.suggestions.push_back(more_micro_batches(in, 4));
  if (!in.report().links.empty())
    if (auto link = faster_link(in, in.report().links.front().link, 2)) f.suggestions.push_back(std::move(*link));
  return f;
}

/// Collectives of tensor, context and expert groups that computation does not hide.
std::optional<Finding> group_collectives(const DiagnosisInput& in) {
  if (in.program().group < 2) return {};
  const Seconds lost = in.period - in.idealized.without(Cost::GroupCollectives);
  if (lost.value <= 0) return {};
  const Degrees& degrees = in.plan().stages.front().shape.degrees;
  Finding f = finding(in, "group-collectives", pluralize(in.program().group, "device") + " of a group", lost);
  f.sentence = fmt::format("Collectives inside groups of {} (tensor {}, context {}, expert {}) take {} of the period.",
                           pluralize(in.program().group, "device"), degrees.tensor, degrees.context, degrees.expert,
                           percent(f.share));
  const PlanSpec& spec = in.experiment().plan;
  if (degrees.tensor > 1 && degrees.tensor % 2 == 0 && spec.group.tensor == degrees.tensor) {
    Suggestion s{{fmt::format("plan.group.tensor={}", degrees.tensor / 2),
                  fmt::format("plan.replicas={}", 2 * in.plan().stages.front().replicas())},
                 "half the tensor parallelism and twice the replicas, in the same batch"};
    const int count = in.experiment().run.micro_batches;
    const bool by_batch = in.experiment().source->at("run").has("global_batch");
    if (!by_batch) s.sets.push_back(fmt::format("run.micro_batches={}", count / 2));
    if (by_batch || count % 2 == 0) f.suggestions.push_back(std::move(s));
  }
  return f;
}

}  // namespace stagecraft::diagnosis
