#include "sim/report/time_classes.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "sim/core/numbers.hpp"

namespace stagecraft {

namespace {

Seconds TimeByClass::*class_of(Purpose purpose) {
  switch (purpose) {
    case Purpose::TensorActivation:
      return &TimeByClass::tensor;
    case Purpose::ContextActivation:
      return &TimeByClass::context;
    case Purpose::ExpertActivation:
      return &TimeByClass::expert;
    case Purpose::GradientSum:
    case Purpose::TiedGradientSum:
    case Purpose::ParameterGather:
      break;
  }
  return &TimeByClass::data;
}

/// What devices compute, in the order of time.
class BusyTimes {
 public:
  BusyTimes(const Program& program, const Timeline& timeline) : busy_(program.devices) {
    for (const InstructionId n : program.instructions.ids()) {
      const Instruction& i = program.at(n);
      if (!i.is_compute()) continue;
      std::vector<Interval>& list = busy_[i.device];
      const double before = list.empty() ? 0 : list.back().before + list.back().end - list.back().start;
      list.push_back({timeline.start[n], timeline.end[n], before});
    }
  }

  /// How long a device has computed until then.
  double until(DeviceId device, double time) const {
    const std::vector<Interval>& list = busy_[device];
    const auto after =
        std::partition_point(list.begin(), list.end(), [&](const Interval& i) { return i.start < time; });
    if (after == list.begin()) return 0;
    const Interval& last = *std::prev(after);
    return last.before + std::min(time, last.end) - last.start;
  }

 private:
  struct Interval {
    double start, end;
    double before;  ///< The sum of all earlier ones.
  };
  IdVector<DeviceId, std::vector<Interval>> busy_;
};

/// The collectives that nothing hides, while their device does not compute. What runs at the same time counts once.
IdVector<DeviceId, TimeByClass> exposed_collectives(const Program& program, const Timeline& timeline) {
  const BusyTimes busy(program, timeline);
  IdVector<DeviceId, TimeByClass> times(program.devices);
  IdVector<DeviceId, double> counted(program.devices, -kInfinity);
  for (const InstructionId n : program.instructions.ids()) {
    const Instruction& i = program.at(n);
    if (i.kind != InstructionKind::Collective || program.collective(i).hidden) continue;
    const double from = std::max(timeline.start[n], counted[i.device]), to = timeline.end[n];
    if (to <= from) continue;
    const double computed = busy.until(i.device, to) - busy.until(i.device, from);
    times[i.device].*class_of(program.collective(i).purpose) += Seconds{std::max(0.0, to - from - computed)};
    counted[i.device] = to;
  }
  return times;
}

/// Where the time of an op went that was planned so. What it took longer than planned went into computation, because
/// its collectives are as fast on a slow device.
TimeByClass spent_in(const TimeByClass& planned, Seconds lasted) {
  if (planned.total().value <= 0) {
    TimeByClass unplanned;
    unplanned.other = lasted;
    return unplanned;
  }
  const Seconds computed = planned.total() - planned.collectives();
  if (lasted < planned.total() || computed.value <= 0) return (lasted / planned.total()) * planned;
  TimeByClass spent = ((lasted - planned.collectives()) / computed) * planned;
  spent.tensor = planned.tensor, spent.context = planned.context;
  spent.expert = planned.expert, spent.data = planned.data;
  return spent;
}

/// Time before the first op, in which collectives of the op may run. Idle times begin with the op.
Seconds lead_in(const Program& program, const Timeline& timeline) {
  double first = kInfinity, first_op = kInfinity;
  for (const InstructionId n : program.instructions.ids()) {
    first = std::min(first, timeline.start[n]);
    if (program.at(n).is_compute()) first_op = std::min(first_op, timeline.start[n]);
  }
  return Seconds{first_op - first};
}

}  // namespace

std::optional<TimeClasses> time_classes(const Program& program, const Timeline& timeline,
                                        const IdVector<DeviceId, IdleTimes>& idle) {
  if (program.parts.empty() || !timeline.instruction_times || program.size() == 0) return {};
  TimeClasses classes;
  IdVector<DeviceId, bool> used(program.devices, false);
  for (const InstructionId n : program.instructions.ids()) {
    const Instruction& i = program.at(n);
    if (!i.is_compute()) continue;
    const double lasted = timeline.end[n] - timeline.start[n];
    used[i.device] = true;
    classes.spent += spent_in(program.parts[i.stage].parts(i.kind), Seconds{lasted});
  }
  const IdVector<DeviceId, TimeByClass> exposed = exposed_collectives(program, timeline);
  const Seconds before = lead_in(program, timeline);
  Seconds waiting;
  for (const DeviceId d : used.ids()) {
    if (!used[d]) continue;
    const Seconds messages = idle[d].transfer - idle[d].collective;
    classes.spent += exposed[d];
    classes.spent.messages += messages;
    waiting += before + idle[d].total() - exposed[d].total() - messages;
  }
  const double share = 1.0 / static_cast<double>(std::count(used.begin(), used.end(), true));
  classes.spent = share * classes.spent;
  classes.bubble = share * waiting;
  classes.length = classes.spent.total() + classes.bubble;
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

std::string_view class_name(Purpose purpose) {
  const auto part = class_of(purpose);
  for (const TimeClass& c : time_class_list())
    if (c.part == part) return c.name;
  return "other";
}

std::string to_text(const TimeClasses& c) {
  std::vector<std::pair<Seconds, std::string_view>> parts;
  for (const TimeClass& one : time_class_list()) parts.emplace_back(c.spent.*one.part, one.name);
  parts.emplace_back(c.bubble, "waiting for stages");
  std::stable_sort(parts.begin(), parts.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  std::string text;
  for (const auto& [time, name] : parts)
    if (time / c.length >= 5e-4)
      text += fmt::format("{}{} {:.1f} %", text.empty() ? "" : ", ", name, 100 * (time / c.length));
  return text;
}

Json classes_json(const TimeClasses& classes) {
  Json json = JsonObject{};
  for (const TimeClass& c : time_class_list()) json[std::string(c.key)] = (classes.spent.*c.part).value;
  json["bubble_s"] = classes.bubble.value;
  return json;
}

namespace {

constexpr std::pair<std::string_view, InstructionKind> kPasses[] = {
    {"forward", InstructionKind::Forward},
    {"backward", InstructionKind::Backward},
    {"input_gradient", InstructionKind::InputGradient},
    {"weight_gradient", InstructionKind::WeightGradient},
    {"update", InstructionKind::Update}};

std::vector<config::Field> class_fields() {
  std::vector<config::Field> fields;
  for (const TimeClass& c : time_class_list())
    fields.push_back(config::real(std::string(c.key), 0, kInfinity).doc(std::string(c.contents)));
  return fields;
}

}  // namespace

Json passes_json(const Program& program) {
  Json passes = JsonArray();
  for (const StageId stage : program.parts.ids())
    for (const auto& [name, kind] : kPasses) {
      const TimeByClass& parts = program.parts[stage].parts(kind);
      Json json = JsonObject{{"stage", stage.value}, {"pass", std::string(name)}, {"total_s", parts.total().value}};
      for (const TimeClass& c : time_class_list()) json[std::string(c.key)] = (parts.*c.part).value;
      passes.push_back(std::move(json));
    }
  return passes;
}

config::Field classes_field() {
  using namespace config;
  static const MapSpec spec = [] {
    MapSpec map_spec{
        .title =
            "Where the time of the whole run goes, mean over the devices with instructions; what is hidden "
            "does not count. The parts sum to the length of the run.",
        .fields = class_fields()};
    map_spec.fields.push_back(real("bubble_s", 0, kInfinity).doc("Waiting for other stages: the rest of the run."));
    return map_spec;
  }();
  return map("time", spec).optional().doc("Where the time goes, with `software`.");
}

config::Field passes_field() {
  using namespace config;
  static const MapSpec spec = [] {
    std::vector<std::string> names;
    for (const auto& [name, kind] : kPasses) names.emplace_back(name);
    MapSpec map_spec{.title = "The planned time of a pass of a stage for one micro-batch, or of its update.",
                     .fields = {integer("stage", 0, 1e9).doc("Stage."), choice("pass", names).doc("Pass."),
                                real("total_s", 0, kInfinity).doc("Sum of the parts.")}};
    for (Field& field : class_fields()) map_spec.fields.push_back(std::move(field));
    return map_spec;
  }();
  return list("passes", map("pass", spec)).optional().doc("Where the time of each pass goes, with `software`.");
}

}  // namespace stagecraft
