#include "sim/report/time_classes.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace stagecraft {

std::optional<TimeClasses> time_classes(const Program& program, const Timeline& timeline) {
  if (program.parts.empty() || !timeline.instruction_times || program.size() == 0) return {};
  TimeClasses classes;
  IdVector<DeviceId, bool> used(program.devices, false);
  double begin = timeline.start[InstructionId{0}], end = begin;
  for (const InstructionId n : program.instructions.ids()) {
    const Instruction& i = program.at(n);
    const double lasted = timeline.end[n] - timeline.start[n];
    begin = std::min(begin, timeline.start[n]);
    end = std::max(end, timeline.end[n]);
    if (i.kind == InstructionKind::Collective) classes.spent.data += Seconds{lasted};
    if (!i.is_compute()) continue;
    used[i.device] = true;
    const TimeByClass& planned = program.parts[i.stage].parts(i.kind);
    if (planned.total().value > 0)
      classes.spent += (lasted / planned.total().value) * planned;
    else
      classes.spent.other += Seconds{lasted};
  }
  const auto devices = static_cast<double>(std::count(used.begin(), used.end(), true));
  classes.spent = (1 / devices) * classes.spent;
  classes.length = {end - begin};
  classes.waiting = std::max(Seconds{}, classes.length - classes.spent.total());
  return classes;
}

std::optional<DeviceRates> device_rates(const Program& program, double samples_per_second) {
  const ModelWork& work = program.work;
  if (work.devices == 0) return {};
  const double each = samples_per_second / work.devices;
  DeviceRates rates{.tokens_per_second = each * work.tokens, .model = FlopRate{each * work.flops.value}};
  if (work.peak.value > 0) rates.of_peak = samples_per_second * work.flops.value / work.peak.value;
  return rates;
}

std::string to_text(const TimeClasses& c) {
  const TimeByClass& t = c.spent;
  std::vector<std::pair<Seconds, const char*>> parts = {
      {t.products, "products"}, {t.attention, "attention"}, {t.memory_bound, "memory-bound kernels"},
      {t.other, "other"},       {t.launches, "launches"},   {t.tensor, "tensor"},
      {t.context, "context"},   {t.expert, "expert"},       {t.data, "data"},
      {c.waiting, "pipeline"}};
  std::stable_sort(parts.begin(), parts.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  std::string text;
  for (const auto& [time, name] : parts)
    if (time / c.length >= 5e-4)
      text += fmt::format("{}{} {:.1f} %", text.empty() ? "" : ", ", name, 100 * (time / c.length));
  return text;
}

}  // namespace stagecraft
