// Writes the sums of gradients over replicas and of tied parameters (part of ProgramWriter): what each waits for, when
// a bucket may start, and which of them an update waits for.

#include <algorithm>

#include "sim/program/writer.hpp"

namespace stagecraft {

/// Ops that run as one have their gradients when the last of them ends.
void ProgramWriter::keep_gradient(InstructionId last, DeviceId device, const Op& op) {
  const bool has_gradient = ends_backward(op.kind) || op.kind == OpKind::ScoresGradient;
  if (!has_gradient || !barriers_.delays(op.stage)) return;
  const Stage& stage = plan_.stage(op.stage);
  gradients_[op.stage].resize(stage.leaders.size());
  gradients_[op.stage][replica_on(stage, device)] = last;
}

/// Does not search the devices of the stage, of which there may be thousands.
bool ProgramWriter::runs_on(StageId stage, DeviceId device) const {
  const std::vector<StageId>& stages = stages_on_[device];
  return std::find(stages.begin(), stages.end(), stage) != stages.end();
}

/// What made the newest gradient of a stage or its twin on a device; not valid where neither runs.
InstructionId ProgramWriter::gradient_on(StageId stage, DeviceId device) const {
  InstructionId newest;
  for (const StageId s : {stage, plan_.stage(stage).twin}) {
    if (!s.valid() || gradients_[s].empty() || !runs_on(s, device)) continue;
    newest = std::max(newest, gradients_[s][replica_on(plan_.stage(s), device)]);
  }
  return newest;
}

/// The device's member of the newest sum; not valid where it takes no part.
InstructionId ProgramWriter::newest_sum(ReductionId reduction, DeviceId device) const {
  const auto& sums = reductions_[reduction].sums;
  const auto sum = sums.find(device);
  return sum == sums.end() ? InstructionId{} : sum->second;
}

/// A device adds up what it has of each holder: the sum of the holder's replicas, or the gradient itself.
void ProgramWriter::wait_for_gradients(const Reduction& reduction, DeviceId device, bool with_exchanges) {
  for (const StageId s : reduction.stages) {
    const ReductionId before = barriers_.reductions(s).front();
    const bool summed = std::find(reduction.after.begin(), reduction.after.end(), before) != reduction.after.end();
    const InstructionId sum = summed ? newest_sum(before, device) : InstructionId{};
    wait(sum.valid() ? sum : gradient_on(s, device));
    if (vocabulary_.is_used()) wait(embedding_gradient_[device]);
    if (has_collectives_ && !sum.valid() && with_exchanges)
      for (const InstructionId collective : overlapped_[device]) wait(collective);
  }
}

void ProgramWriter::open_collective_streams(const std::vector<DeviceId>& group) {
  collective_stream_.resize(program_.devices);
  for (const DeviceId device : group) {
    StreamId& collective_stream = collective_stream_[device];
    if (!collective_stream.valid()) collective_stream = stream(device, StreamKind::Collective, DeviceId{});
  }
}

/// The shape and the streams of a process group are made when it is first used.
std::int32_t ProgramWriter::open_shape(const Reduction& reduction, const std::vector<DeviceId>& group, Bytes sum) {
  open_collective_streams(group);
  const CollectiveKind kind = reduction.scatters ? CollectiveKind::ReduceScatter : CollectiveKind::AllReduce;
  const auto bytes = static_cast<std::uint64_t>(sum.value + 0.5);
  if (!reduction.cost) return add_shape(program_, kind, collective_algorithms::ring, DeviceGroup{group}, bytes);
  program_.collective_shapes.push_back({kind, bytes, static_cast<std::int32_t>(program_.phases.size()), 0});
  return static_cast<std::int32_t>(program_.collective_shapes.size()) - 1;
}

/// Dense parameters and experts are summed over different devices, one after the other.
std::vector<ProgramWriter::SumPart> ProgramWriter::open_parts(const Reduction& reduction) {
  if (!reduction.buckets.empty()) return open_bucket_parts(reduction);
  std::vector<SumPart> parts;
  if (reduction.groups.empty()) return parts;
  const Seconds cost = reduction.cost.value_or(Seconds{});
  if (plays_groups(reduction)) {
    const std::vector<std::int32_t> shapes = open_group_shapes(reduction);
    const std::ptrdiff_t each = std::ssize(shapes) / std::ssize(reduction.groups);
    for (std::ptrdiff_t k = 0; k < std::ssize(shapes); ++k)
      parts.push_back({.shape = shapes[k], .group = static_cast<int>(k / each), .cost = cost});
    return parts;
  }
  for (const std::vector<DeviceId>& group : reduction.groups)
    parts.push_back({.shape = open_shape(reduction, group, reduction.bytes),
                     .group = static_cast<int>(std::ssize(parts)),
                     .cost = cost});
  return parts;
}

/// The share of the last backward on the devices of a group after which a bucket has its gradients.
double ProgramWriter::share_before(const Reduction& reduction, int bucket, const std::vector<DeviceId>& group) const {
  if (bucket < 0) return 1;
  const GradientBucket& gradients = reduction.buckets[bucket].gradients;
  double share = 0;
  for (const DeviceId device : group)
    for (const StageId s : reduction.stages) {
      const InstructionId op = gradient_on(s, device);
      if (!op.valid()) continue;
      const InstructionKind kind = program_.at(op).kind;
      share = std::max(share, kind == InstructionKind::Backward         ? gradients.after_backward
                              : kind == InstructionKind::WeightGradient ? gradients.after_weights
                                                                        : 1);
    }
  return share;
}

/// One member of the newest collective, whose waits are added afterwards.
InstructionId ProgramWriter::begin_member(DeviceId device, const Reduction& reduction, Seconds cost, int number) {
  const std::vector<StageId>& stages = reduction.stages;
  Instruction i;
  i.duration = cost;
  i.kind = InstructionKind::Collective;
  i.stream = collective_stream_[device];
  i.device = device;
  i.stage = *std::find_if(stages.begin(), stages.end(), [&](StageId s) { return runs_on(s, device); });
  i.number = number;
  i.payload = static_cast<std::int32_t>(std::ssize(program_.collectives)) - 1;
  return begin(i);
}

void ProgramWriter::reduce(ReductionId id, int number) {
  const Reduction& reduction = plan_.reductions[id];
  ReductionState& state = reductions_[id];
  if (state.number == number) return;
  state.number = number;
  if (state.parts.empty()) state.parts = open_parts(reduction);
  for (const SumPart& part : state.parts) {
    const std::vector<DeviceId>& group = reduction.groups[part.group];
    CollectiveCall collective;
    collective.first = InstructionId{std::ssize(program_.instructions)};
    collective.members = static_cast<std::int32_t>(std::ssize(group));
    collective.shape = part.shape;
    collective.tie = state.tie;
    collective.purpose = state.tie < 0 ? Purpose::GradientSum : Purpose::TiedGradientSum;
    collective.bucket = part.bucket;
    collective.after = share_before(reduction, part.bucket, group);
    program_.collectives.push_back(collective);
    for (const DeviceId device : group) {
      const InstructionId member = begin_member(device, reduction, part.cost, number);
      if (options_.overlap || state.tie >= 0) wait_for_gradients(reduction, device, collective.after >= 1);
      if (!options_.overlap) wait(last_compute(device));
      follow(program_.at(member).stream);
      state.sums[device] = member;
    }
  }
}

void ProgramWriter::reduce_before_update(StageId stage, int number) {
  if (!barriers_.delays(stage)) return;
  for (const ReductionId reduction : barriers_.at(stage).reductions) reduce(reduction, number);
}

/// Gradients made on the device come before the update in its stream, so only sums over several devices count.
void ProgramWriter::add_reduced(StageId stage, DeviceId device, std::vector<InstructionId>& inputs) const {
  const auto add = [&](ReductionId reduction) {
    const InstructionId sum = newest_sum(reduction, device);
    if (sum.valid()) inputs.push_back(sum);
    return sum.valid();
  };
  for (const ReductionId reduction : barriers_.reductions(stage))
    if (!add(reduction))
      for (const ReductionId before : plan_.reductions[reduction].after) add(before);
}

}  // namespace stagecraft
