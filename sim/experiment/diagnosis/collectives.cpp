#include <fmt/format.h>

#include "sim/core/text.hpp"
#include "sim/experiment/diagnosis/rule.hpp"

namespace stagecraft::diagnosis {

/// Sums of gradients, and gathers of updated weights, that computation does not hide.
std::optional<Finding> gradient_sums(const DiagnosisInput& in) {
  const Seconds lost = in.period - in.idealized.without(Cost::GradientSums);
  if (lost.value <= 0) return {};
  Bytes most;
  std::string where = "data parallelism";
  for (const Reduction& r : in.plan().reductions) {
    if (r.bytes <= most) continue;
    most = r.bytes;
    where = r.stages.size() == 1 ? stage_text(in, r.stages.front()) : fmt::format("tied weights '{}'", r.name);
  }
  Finding f = finding(in, "gradient-sums", where, lost);
  f.sentence = fmt::format("Devices wait for sums of gradients ({} of {}) that no computation hides: {} of the period.",
                           to_text(most), where, percent(f.share));
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
  return f;
}

}  // namespace stagecraft::diagnosis
