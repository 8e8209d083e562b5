// Makes a Finding with its share of the period, and names stages and devices in it: what the rules of this folder
// share.

#include "sim/diagnosis/rule.hpp"

#include <algorithm>

#include <fmt/core.h>

#include "sim/core/text.hpp"
#include "sim/plan/device_ranges.hpp"

namespace stagecraft::diagnosis {

Finding finding(const DiagnosisInput& in, std::string_view cause, std::string where, Seconds lost) {
  Finding f{.cause = std::string(cause), .where = std::move(where), .lost = lost, .sentence = {}};
  f.share = in.period.value > 0 ? std::clamp(lost / in.period, 0.0, 1.0) : 0;
  return f;
}

std::string stage_text(const DiagnosisInput& in, StageId s) {
  const std::vector<LayerId>& layers = in.plan().stages[s].shape.layers;
  if (layers.empty()) return fmt::format("stage {}", s.value);
  const auto name = [&](LayerId l) { return in.experiment().model->layers[l].name; };
  if (layers.size() == 1) return fmt::format("stage {} ({})", s.value, name(layers.front()));
  return fmt::format("stage {} ({}..{})", s.value, name(layers.front()), name(layers.back()));
}

std::string devices_set(const std::vector<DeviceId>& devices, const Cluster& cluster) {
  return fmt::format("plan.devices=[{}]", join(device_ranges(devices, cluster)));
}

}  // namespace stagecraft::diagnosis
