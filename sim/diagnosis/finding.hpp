#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/diagnosis/rule.hpp"

namespace stagecraft::diagnosis {

// Makes findings of rules, and the texts in them.

/// A loss below this share of the period is not worth a change.
inline constexpr double kSmallLoss = 0.05;

/// A finding that costs `lost` of the period.
Finding finding(const DiagnosisInput&, std::string_view cause, std::string where, Seconds lost);
/// "stage 3 (l18..loss)": its number and its first and last layer.
std::string stage_text(const DiagnosisInput&, StageId);
/// `plan.devices=[...]`.
std::string devices_set(const std::vector<DeviceId>&, const Cluster&);

}  // namespace stagecraft::diagnosis
