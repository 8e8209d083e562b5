// Divides the period of each device by class (kernels, collectives, messages, bubble) and computes its rates (tokens,
// FLOP/s), for reports and files.

#include "sim/result/time_classes.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "sim/core/numbers.hpp"

namespace stagecraft {

namespace {

/// Where the time of an op went that was planned so. What it took longer than planned went into computation, because
/// its collectives are as fast on a slow device.
TimeByClass spent_in(const TimeByClass& planned, Seconds lasted, InstructionKind kind) {
  if (planned.total().value <= 0) {
    TimeByClass unplanned;
    (kind == InstructionKind::Update ? unplanned.optimizer : unplanned.other) = lasted;
    return unplanned;
  }
  const Seconds computed = planned.total() - planned.collectives();
  if (lasted < planned.total() || computed.value <= 0) return (lasted / planned.total()) * planned;
  TimeByClass spent = ((lasted - planned.collectives()) / computed) * planned;
  spent.tensor = planned.tensor, spent.context = planned.context;
  spent.expert = planned.expert, spent.data = planned.data;
  return spent;
}

}  // namespace

IdVector<DeviceId, TimeClasses> time_classes(const Program& program, const Timeline& timeline,
                                             const IdVector<DeviceId, IdleTimes>& idle, const TimeSpan& span,
                                             Seconds period) {
  static const TimeByClass unknown;
  IdVector<DeviceId, TimeClasses> devices(program.devices);
  const double scale = span.length() > 0 ? period.value / span.length() : 0;
  for (const InstructionId n : program.instructions.ids()) {
    const Instruction& i = program.at(n);
    const double inside = i.is_compute() ? span.overlap(timeline.start[n], timeline.end[n]) : 0;
    if (inside <= 0) continue;
    const double lasted = timeline.end[n] - timeline.start[n];
    const TimeByClass& planned = program.parts.empty() ? unknown : program.parts[i.stage].parts(i.kind);
    devices[i.device].spent += scale * (inside / lasted) * spent_in(planned, Seconds{lasted}, i.kind);
  }
  for (const DeviceId d : devices.ids()) {
    devices[d].spent += scale * idle[d].exposed;
    devices[d].bubble = scale * idle[d].bubble();
    devices[d].unexplained = scale * idle[d].other;
  }
  return devices;
}

std::span<const MainTimeClass> main_time_classes() {
  using T = TimeClasses;
  static constexpr MainTimeClass classes[] = {
      {"compute", "compute_s", "Forward and backward.", [](const T& t) { return t.compute(); }},
      {"exposed collectives", "exposed_collectives_s",
       "Waiting for collectives of the device itself that are on the wire.",
       [](const T& t) { return t.spent.collectives(); }},
      {"exposed messages", "exposed_messages_s", "Waiting for messages between stages that are on the wire.",
       [](const T& t) { return t.spent.messages; }},
      {"bubble", "bubble_s", "Waiting for other stages, with nothing on the wire for the device.",
       [](const T& t) { return t.bubble; }},
      {"host memory", "host_memory_s", "Waiting for activations that come back from host memory.",
       [](const T& t) { return t.spent.host_memory; }},
      {"optimizer", "optimizer_s", "Updates of the weights.", [](const T& t) { return t.spent.optimizer; }},
      {"unexplained", "unexplained_s", "Waiting for nothing that the program knows.",
       [](const T& t) { return t.unexplained; }}};
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
  parts.emplace_back(c.bubble, "bubble");
  parts.emplace_back(c.unexplained, "unexplained");
  std::stable_sort(parts.begin(), parts.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  std::string text;
  for (const auto& [time, name] : parts)
    if (time / c.total() >= 5e-4)
      text += fmt::format("{}{:.1f} % {}", text.empty() ? "" : " + ", 100 * (time / c.total()), name);
  return text;
}

Json classes_json(const TimeClasses& classes) {
  Json json = JsonObject{};
  for (const TimeClass& c : time_class_list()) json[std::string(c.key)] = (classes.spent.*c.part).value;
  json["bubble_s"] = classes.bubble.value;
  json["unexplained_s"] = classes.unexplained.value;
  return json;
}

Json main_classes_json(const TimeClasses& classes) {
  Json json = JsonObject{};
  for (const MainTimeClass& c : main_time_classes()) json[std::string(c.key)] = c.seconds(classes).value;
  return json;
}

namespace {

constexpr InstructionKind kPasses[] = {InstructionKind::Forward, InstructionKind::Backward,
                                       InstructionKind::InputGradient, InstructionKind::WeightGradient,
                                       InstructionKind::Update};

/// Files of earlier versions have no class for host memory.
config::Field seconds(std::string key) {
  const bool is_new = key == "host_memory_s";
  config::Field field = config::real(std::move(key), 0, kInfinity);
  return is_new ? field.optional() : field;
}

std::vector<config::Field> class_fields() {
  std::vector<config::Field> fields;
  for (const TimeClass& c : time_class_list())
    fields.push_back(seconds(std::string(c.key)).doc(std::string(c.contents)));
  return fields;
}

}  // namespace

Json passes_json(const Program& program) {
  Json passes = JsonArray();
  for (const StageId stage : program.parts.ids())
    for (const InstructionKind kind : kPasses) {
      const TimeByClass& parts = program.parts[stage].parts(kind);
      Json json =
          JsonObject{{"stage", stage.value}, {"pass", std::string(label(kind).key)}, {"total_s", parts.total().value}};
      for (const TimeClass& c : time_class_list()) json[std::string(c.key)] = (parts.*c.part).value;
      passes.push_back(std::move(json));
    }
  return passes;
}

config::Field classes_field() {
  using namespace config;
  static const MapSpec spec = [] {
    MapSpec map_spec{.title =
                         "Where the time of one period goes, mean over the devices with instructions; what is hidden "
                         "does not count. The parts sum to the period.",
                     .fields = class_fields()};
    map_spec.fields.push_back(seconds("bubble_s").doc("Waiting for other stages, with nothing on the wire."));
    map_spec.fields.push_back(seconds("unexplained_s").optional().doc("Waiting for nothing that the program knows."));
    return map_spec;
  }();
  return map("time", spec).optional().doc("Where the time of a period goes, finely divided with `software`.");
}

config::Field main_classes_field() {
  using namespace config;
  static const MapSpec spec = [] {
    MapSpec map_spec{.title = "Where the time of the device goes in one period. The parts sum to the period.",
                     .fields = {}};
    for (const MainTimeClass& c : main_time_classes())
      map_spec.fields.push_back(seconds(std::string(c.key)).doc(std::string(c.contents)));
    return map_spec;
  }();
  return map("time", spec).optional();
}

config::Field passes_field() {
  using namespace config;
  static const MapSpec spec = [] {
    std::vector<std::string> names;
    for (const InstructionKind kind : kPasses) names.emplace_back(label(kind).key);
    MapSpec map_spec{.title = "The planned time of a pass of a stage for one micro-batch, or of its update.",
                     .fields = {integer("stage", 0, 1e9).doc("Stage."), choice("pass", names).doc("Pass."),
                                real("total_s", 0, kInfinity).doc("Sum of the parts.")}};
    for (Field& field : class_fields()) map_spec.fields.push_back(std::move(field));
    return map_spec;
  }();
  return list("passes", map("pass", spec)).optional().doc("Where the time of each pass goes, with `software`.");
}

}  // namespace stagecraft
