#include <algorithm>

#include "sim/program/writer.hpp"

namespace stagecraft {

/// Of ops that run as one, gradients are there when the last has ended.
void ProgramWriter::keep_gradient(InstructionId last, DeviceId device, const Op& op) {
  if ((op.kind != OpKind::Backward && op.kind != OpKind::WeightGradient) || !groups_.waits(op.stage)) return;
  auto& made = gradients_[groups_.of(op.stage)];
  made.resize(groups_.devices(op.stage).size());
  made[groups_.place_of(op.stage, device)] = last;
}

InstructionId ProgramWriter::sum_on(const Holding::Place& at) const {
  if (groups_.exchanges(at.group)) return InstructionId{reduced_[at.group].first + at.place};
  return gradients_[at.group][at.place];
}

/// The shape and the streams of a group are made when it is first used.
void ProgramWriter::open_shape(Reduction& reduction, Bytes bytes, const std::vector<DeviceId>& devices) {
  if (reduction.shape >= 0) return;
  reduction.shape = add_shape(program_, CollectiveKind::AllReduce, CollectiveAlgorithm::Ring, {devices},
                              static_cast<std::uint64_t>(bytes.value + 0.5));
  reduce_stream_.resize(program_.devices);
  for (const DeviceId device : devices) {
    StreamId& own = reduce_stream_[device];
    if (!own.valid()) own = stream(device, StreamKind::Collective, DeviceId{});
  }
}

/// A member of the newest collective; what it waits for is added behind.
void ProgramWriter::begin_member(DeviceId device, StageId stage, int number) {
  Instruction i;
  i.kind = InstructionKind::Collective;
  i.stream = reduce_stream_[device];
  i.device = device;
  i.stage = stage;
  i.number = number;
  i.payload = static_cast<std::int32_t>(program_.collectives.size()) - 1;
  begin(i);
}

void ProgramWriter::begin_collective(Reduction& reduction, int number, Bytes bytes,
                                     const std::vector<DeviceId>& devices, int tie) {
  open_shape(reduction, bytes, devices);
  reduction.number = number;
  reduction.first = InstructionId{static_cast<std::int64_t>(program_.instructions.size())};
  Collective collective;
  collective.first = reduction.first;
  collective.members = static_cast<std::int32_t>(devices.size());
  collective.shape = reduction.shape;
  collective.tie = tie;
  collective.purpose = tie < 0 ? Purpose::GradientSum : Purpose::TiedGradientSum;
  program_.collectives.push_back(collective);
}

void ProgramWriter::all_reduce(StageId stage, int number) {
  const StageId first = groups_.of(stage);
  Reduction& reduction = reduced_[first];
  if (!groups_.exchanges(first) || reduction.number == number) return;
  const auto& devices = groups_.devices(first);
  begin_collective(reduction, number, cost(first, 0).gradient_traffic, devices, -1);
  const std::size_t own = plan_.stage(first).devices.size();
  for (std::size_t m = 0; m < devices.size(); ++m) {
    begin_member(devices[m], m < own ? first : plan_.stage(first).twin, number);
    wait(options_.overlap ? gradients_[first][m] : last_compute(devices[m]));
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
    const Holding& held = groups_.holding(own.tie, device);
    begin_member(device, held.stage, number);
    for (const Holding::Place& at : held.groups) wait(sum_on(at));
    if (!options_.overlap) wait(last_compute(device));
    follow(program_.instructions.back().stream);
  }
}

void ProgramWriter::reduce_round(StageId stage, int number) {
  if (!groups_.tied(stage)) return all_reduce(stage, number);
  int& newest = round_number_[groups_.round(stage)];
  if (newest == number) return;
  newest = number;
  for (int s = plan_.stage_count() - 1; s >= 0; --s)
    if (groups_.of(StageId{s}) == s && groups_.round(StageId{s}) == groups_.round(stage))
      all_reduce(StageId{s}, number);
  for (std::size_t r = 0; r < groups_.rings().size(); ++r)
    if (groups_.round(tie_of(groups_.rings()[r]).stages.front()) == groups_.round(stage)) reduce_tied(r, number);
}

/// Gradients made on the device stand before the update in its stream.
void ProgramWriter::add_reduced(StageId stage, DeviceId device, std::vector<InstructionId>& inputs) const {
  if (groups_.exchanges(stage)) inputs.push_back(sum_on({groups_.of(stage), groups_.place_of(stage, device)}));
  for (const int tie : groups_.ties(stage)) {
    const Holding& held = groups_.holding(tie, device);
    if (held.ring >= 0) {
      inputs.emplace_back(tied_[held.ring].first + held.place);
      continue;
    }
    for (const Holding::Place& at : held.groups)
      if (groups_.exchanges(at.group)) inputs.push_back(sum_on(at));
  }
}

}  // namespace stagecraft
