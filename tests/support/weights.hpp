#pragma once

#include <string>
#include <string_view>

#include "sim/weights/policy.hpp"
#include "sim/weights/reads.hpp"
#include "tests/support/schedules.hpp"

namespace stagecraft::test {

inline const WeightsRule& policy(std::string_view name) {
  return get_from(weights::catalog(), "weights policy", name).paper;
}

/// "0F1:3" reads version 3, "0F1:3+2" predicts two updates on from there, "0F1:3~" uses a prediction that is there,
/// "0B1:3k" what the forward used, "0U1:2" makes version 2.
inline std::string to_text(const Op& op, const WeightRead& read) {
  std::string text = to_text(op) + ":" + std::to_string(read.version);
  if (read.from == WeightsFrom::Stashed) return text + "k";
  if (read.horizon > 0) return text + "+" + std::to_string(read.horizon);
  return read.from == WeightsFrom::Predicted ? text + "~" : text;
}

/// Every op of a device with what it reads.
inline std::string reads_text(const Schedule& schedule, const WeightReads& reads, int device = 0) {
  std::string text;
  const auto& ops = schedule.row(DeviceId{device});
  for (std::size_t i = 0; i < ops.size(); ++i)
    text += (i == 0 ? "" : " ") + to_text(ops[i], reads.at(DeviceId{device}, i));
  return text;
}

inline std::string reads_text(const Schedule& schedule, const Plan& plan, const WeightsRule& rule, int device = 0) {
  return reads_text(schedule, WeightReads(schedule, plan, rule), device);
}

}  // namespace stagecraft::test
