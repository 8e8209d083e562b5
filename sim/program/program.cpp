// A Program and its instructions as text, the memory of its messages, and the shapes of its collectives.

#include "sim/program/program.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>

#include "sim/core/diagnostic.hpp"

namespace stagecraft {
namespace {

std::string moved_data(const Program& program, const Instruction& i) {
  return fmt::format("{}{}{}", i.stage.value, program.moves_gradient(i) ? 'B' : 'F', i.number);
}

std::string text_of_member(const Program& program, const Instruction& i) {
  constexpr const char* kCodes[] = {"AR", "RS", "AG", "A2A", "BC"};
  const CollectiveCall& c = program.collective(i);
  const char* code = kCodes[static_cast<int>(program.shape(c).kind)];
  if (c.purpose == Purpose::LateForward) code = "late";
  if (c.purpose == Purpose::Stash) code = goes_up(program, c) ? "H2D" : "D2H";
  if (c.op != 0) return fmt::format("{}{}{}.{}", i.stage.value, c.op, program.shown_number(i), code);
  const std::string which = c.tie < 0 ? "" : c.tie == 0 ? "T" : fmt::format("T{}", c.tie);
  const std::string bucket = c.bucket < 0 ? "" : fmt::format("/{}", c.bucket);
  return fmt::format("{}{}{}{}{}", i.stage.value, which, code, i.number, bucket);
}

std::string text_of_message(const Program& program, const Instruction& i, const RouteEnds& ends) {
  const std::string data = moved_data(program, i);
  if (i.kind == InstructionKind::Send) return fmt::format("{}>{}:{}", ends.from.value, ends.to.value, data);
  return fmt::format("{}<{}:{}", ends.to.value, ends.from.value, data);
}

std::string stream_name(const Stream& s) {
  const std::string peer = s.peer.valid() ? fmt::format(" {}", s.peer.value) : "";
  switch (s.kind) {
    case StreamKind::Compute:
      return fmt::format("device {} compute", s.device.value);
    case StreamKind::Communication:
      return fmt::format("device {} communication{}", s.device.value, peer);
    case StreamKind::Send:
      return fmt::format("device {} send{}", s.device.value, peer);
    case StreamKind::Receive:
      return fmt::format("device {} receive{}", s.device.value, peer);
    case StreamKind::Collective:
      return fmt::format("device {} collective", s.device.value);
    case StreamKind::Copy:
      return fmt::format("device {} copy", s.device.value);
  }
  return {};
}

}  // namespace

Buffer Program::buffer_on(DeviceId device, std::uint32_t number) const {
  if (number >= 2 * transfers.size()) return buffers[number - 2 * transfers.size()];
  const Transfer& t = transfers[number / 2];
  const Bytes size{static_cast<double>(bytes(t))};
  if (number % 2 == 0) return {size, t.producer, t.send, device, BufferKind::Outgoing};
  return {size, rendezvous ? t.receive : t.send, t.consumer, device, BufferKind::Received};
}

Buffer Program::buffer(std::uint32_t number) const {
  if (number >= 2 * transfers.size()) return buffers[number - 2 * transfers.size()];
  const Transfer& t = transfers[number / 2];
  return buffer_on(at(number % 2 == 0 ? t.send : t.receive).device, number);
}

void Instruction::throw_wrong_kind() { throw InternalError("an instruction of another kind has no such figure"); }

const WorkLabel& label(InstructionKind kind) {
  static constexpr WorkLabel kOthers[] = {{'P', "predict", "prediction", "#bf83a4", false, "rail_idle"},
                                          {' ', "send", "send", "", false, ""},
                                          {' ', "receive", "receive", "", false, ""},
                                          {' ', "collective", "collective", "", false, ""}};
  static_assert(std::size(kOthers) == kInstructionKindCount - kOpKindCount);
  if (const auto op = op_kind(kind)) return kOpLabels[*op];
  return kOthers[static_cast<std::size_t>(kind) - kOpKindCount];
}

const TimeByClass& StageParts::parts(InstructionKind kind) const {
  static const TimeByClass none;
  const std::optional<OpKind> op = op_kind(kind);
  if (!op) return none;
  switch (*op) {
    case OpKind::Update:
      return update;
    case OpKind::Scores:
      return scores;
    case OpKind::ScoresGradient:
      return scores_gradient;
    default:
      return pass_of(passes, *op);
  }
}

std::vector<RouteEnds> Program::copies_of(const RouteEnds& route) const {
  if (counterparts.empty()) return {route};
  const std::vector<DeviceId>&from = counterparts.at(route.from), &to = counterparts.at(route.to);
  std::vector<RouteEnds> of_sets;
  for (std::size_t set = 0; set < from.size(); ++set) of_sets.push_back({from[set], to[set]});
  return of_sets;
}

int Program::shown_number(const Instruction& i) const {
  if (i.kind != InstructionKind::Collective) return i.number;
  const int micro = collective(i).micro_batch;
  return micro < 0 ? i.number : micro;
}

double Program::share_in_collectives(const Instruction& i) const {
  if (parts.empty() || !i.is_compute()) return 0;
  const TimeByClass& planned = parts[i.stage].parts(i.kind);
  return planned.total().value > 0 ? planned.collectives() / planned.total() : 0;
}

bool goes_up(const Program& program, const CollectiveCall& copy) {
  return !program.routes[program.phases_of(copy).front().first_route].from.valid();
}

std::int32_t add_shape(Program& program, CollectiveKind kind, const CollectiveAlgorithm& algorithm,
                       const DeviceGroup& group, std::uint64_t bytes) {
  return add_shape(program, kind, algorithm, std::vector<DeviceGroup>{group}, bytes);
}

std::int32_t add_shape(Program& program, CollectiveKind kind, const CollectiveAlgorithm& algorithm,
                       const std::vector<DeviceGroup>& groups, std::uint64_t bytes) {
  CollectiveShape shape{kind, bytes, static_cast<std::int32_t>(program.phases.size()), 0};
  for (const Phase& phase : phases_of(kind, algorithm, groups, bytes)) {
    program.phases.push_back({phase.bytes, phase.latencies, static_cast<std::int32_t>(program.routes.size()),
                              static_cast<std::int32_t>(phase.routes.size())});
    program.routes.insert(program.routes.end(), phase.routes.begin(), phase.routes.end());
    ++shape.phases;
  }
  program.collective_shapes.push_back(shape);
  return static_cast<std::int32_t>(program.collective_shapes.size()) - 1;
}

std::string to_text(const Program& program, InstructionId id) {
  const Instruction& i = program.at(id);
  if (i.kind == InstructionKind::Collective) return text_of_member(program, i);
  if (i.kind == InstructionKind::Predict)
    return fmt::format("{}P{}{}", i.stage.value, program.prediction(i).for_backward ? 'B' : 'F', i.number);
  if (i.is_compute()) return fmt::format("{}{}{}", i.stage.value, letter(i.kind), i.number);
  return text_of_message(program, i, program.ends(program.transfer(i)));
}

std::string to_text(const Program& program, InstructionId id, DeviceId device) {
  const Instruction& i = program.at(id);
  if (!i.is_message()) return to_text(program, id);
  for (const auto& [first, devices] : program.counterparts)
    if (const auto place = std::find(devices.begin(), devices.end(), device); place != devices.end())
      return text_of_message(program, i, program.copies_of(program.ends(program.transfer(i)))[place - devices.begin()]);
  return to_text(program, id);
}

std::string to_text(const Program& program) {
  std::vector<std::string> rows(program.streams.size() + 1);
  for (const InstructionId i : program.instructions.ids()) {
    const StreamId stream = program.instructions[i].stream;
    rows[stream.valid() ? stream.value : program.streams.size()] += " " + to_text(program, i);
  }
  std::string text;
  for (const StreamId s : program.streams.ids())
    if (!rows[s.value].empty()) text += fmt::format("{:<24}|{}\n", stream_name(program.streams[s]), rows[s.value]);
  if (!rows.back().empty()) text += fmt::format("{:<24}|{}\n", "in no stream", rows.back());
  return text;
}

}  // namespace stagecraft
