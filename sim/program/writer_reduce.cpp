#include <algorithm>

#include "sim/program/writer.hpp"

namespace stagecraft {

/// Of ops that run as one, gradients are there when the last has ended.
void ProgramWriter::keep_gradient(InstructionId last, DeviceId device, const Op& op) {
  if ((op.kind != OpKind::Backward && op.kind != OpKind::WeightGradient) || !groups_.waits(op.stage)) return;
  auto& made = gradients_[static_cast<std::size_t>(groups_.of(op.stage))];
  made.resize(groups_.devices(op.stage).size());
  made[static_cast<std::size_t>(groups_.place_of(op.stage, device))] = last;
}

InstructionId ProgramWriter::made_on(StageId stage, DeviceId device) const {
  const auto& made = gradients_[static_cast<std::size_t>(groups_.of(stage))];
  return made[static_cast<std::size_t>(groups_.place_of(stage, device))];
}

InstructionId ProgramWriter::member_on(StageId stage, DeviceId device) const {
  return InstructionId{reduced_[static_cast<std::size_t>(groups_.of(stage))].first + groups_.place_of(stage, device)};
}

/// Routes and streams of a ring are made when it is first used.
void ProgramWriter::open_ring(Reduction& reduction, const std::vector<DeviceId>& devices) {
  if (reduction.ring >= 0) return;
  reduce_stream_.resize(static_cast<std::size_t>(program_.devices));
  for (std::size_t r = 0; r < devices.size(); ++r) {
    const std::int32_t index = route(devices[r], devices[(r + 1) % devices.size()]);
    if (r == 0) reduction.ring = index;
    auto& own = reduce_stream_[static_cast<std::size_t>(devices[r])];
    if (!own.valid()) own = stream(devices[r], StreamKind::Collective, DeviceId{});
  }
}

/// A member of the newest collective, behind what its device reduced before and, in the way of computation, computed.
void ProgramWriter::begin_member(DeviceId device, StageId stage, int number) {
  Instruction i;
  i.kind = InstructionKind::AllReduce;
  i.stream = reduce_stream_[static_cast<std::size_t>(device)];
  i.device = device;
  i.stage = stage;
  i.micro = number;
  i.link = static_cast<std::int32_t>(program_.collectives.size()) - 1;
  begin(i);
}

void ProgramWriter::begin_collective(Reduction& reduction, int number, Bytes bytes,
                                     const std::vector<DeviceId>& devices, int tie) {
  open_ring(reduction, devices);
  reduction.number = number;
  reduction.first = InstructionId{static_cast<std::int64_t>(program_.instructions.size())};
  program_.collectives.push_back({static_cast<std::uint64_t>(bytes.value + 0.5), reduction.first,
                                  static_cast<std::int32_t>(devices.size()), reduction.ring, tie});
}

void ProgramWriter::all_reduce(StageId stage, int number) {
  const StageId first = groups_.of(stage);
  Reduction& reduction = reduced_[static_cast<std::size_t>(first)];
  if (!groups_.exchanges(first) || reduction.number == number) return;
  const auto& devices = groups_.devices(first);
  begin_collective(reduction, number, cost(first, 0).gradient_traffic, devices, -1);
  for (const DeviceId device : devices) {
    begin_member(device, replica_on(plan_.stage(first), device) >= 0 ? first : plan_.stage(first).twin, number);
    wait(options_.overlap ? made_on(first, device) : last_compute(device));
    follow(program_.instructions.back().stream);
  }
}

void ProgramWriter::reduce_tied(std::size_t ring, int number) {
  const TieRing& own = groups_.rings()[ring];
  const Tie& tie = tie_of(own);
  Reduction& reduction = tied_[ring];
  if (reduction.number == number) return;
  begin_collective(reduction, number, tie.gradient, own.devices, own.tie);
  for (const DeviceId device : own.devices) {
    const auto holds = [&](StageId s) { return replica_on(plan_.stage(s), device) >= 0; };
    begin_member(device, *std::find_if(tie.stages.begin(), tie.stages.end(), holds), number);
    for (const StageId s : tie.stages) {
      if (!holds(s)) continue;
      wait(groups_.exchanges(s) ? member_on(s, device) : made_on(s, device));
    }
    if (!options_.overlap) wait(last_compute(device));
    follow(program_.instructions.back().stream);
  }
}

void ProgramWriter::reduce_round(StageId stage, int number) {
  if (!groups_.tied(stage)) return all_reduce(stage, number);
  for (int s = plan_.stage_count() - 1; s >= 0; --s)
    if (groups_.of(StageId{s}) == s && groups_.round(StageId{s}) == groups_.round(stage))
      all_reduce(StageId{s}, number);
  for (std::size_t r = 0; r < groups_.rings().size(); ++r)
    if (groups_.round(tie_of(groups_.rings()[r]).stages.front()) == groups_.round(stage)) reduce_tied(r, number);
}

void ProgramWriter::add_reduced(StageId stage, DeviceId device, std::vector<InstructionId>& inputs) const {
  if (groups_.exchanges(stage)) inputs.push_back(member_on(stage, device));
  if (!groups_.tied(stage)) return;
  for (std::size_t r = 0; r < groups_.rings().size(); ++r) {
    const TieRing& ring = groups_.rings()[r];
    const auto& holders = tie_of(ring).stages;
    if (std::find(holders.begin(), holders.end(), stage) == holders.end()) continue;
    const auto place = std::find(ring.devices.begin(), ring.devices.end(), device);
    if (place != ring.devices.end()) inputs.emplace_back(tied_[r].first + (place - ring.devices.begin()));
  }
}

}  // namespace stagecraft
