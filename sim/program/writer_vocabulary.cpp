// Writes what the ranks of a pipeline exchange for scores that they divide (part of ProgramWriter), as messages on the
// links, each in its own stream next to computation:
//
//   X  after the forward of the last stage: a broadcast of its output
//
//   C  after the scores of all ranks: the statistics of each token, and with one barrier the gradient of the input
//
//   D  after the gradients of all ranks, with two barriers: the gradient of the input

#include "sim/program/writer.hpp"

namespace stagecraft {

void ProgramWriter::open_meetings() {
  const Stage& last = plan_.stages.back();
  const PlanVocabulary& bytes = *plan_.vocabulary;
  const bool has_second = schedule_.vocabulary == VocabularyPasses::TwoBarriers;
  meetings_.resize(last.replicas());
  for (int replica = 0; replica < last.replicas(); ++replica) {
    Meetings& meetings = meetings_[replica];
    for (const StageId s : vocabulary_.stages()) meetings.devices.push_back(plan_.stage(s).leaders[replica]);
    const auto samples = static_cast<double>(samples_at_once(last, replica));
    const auto open = [&](OpKind after, CollectiveKind kind, Bytes of_sample) {
      meetings.shapes[meeting_of(after)] =
          add_shape(program_, kind, collective_algorithms::ring, DeviceGroup{meetings.devices},
                    static_cast<std::uint64_t>(of_sample.value * samples + 0.5));
      for (const StageId s : plan_.stages.ids())
        meetings.streams[meeting_of(after)].push_back(
            vocabulary_.stages()[vocabulary_.member(s)] == s
                ? stream(plan_.stage(s).leaders[replica], StreamKind::Collective, DeviceId{})
                : StreamId{});
    };
    open(OpKind::Forward, CollectiveKind::Broadcast, bytes.input);
    open(OpKind::Scores, CollectiveKind::AllReduce, has_second ? bytes.statistics : bytes.statistics + bytes.input);
    if (has_second) open(OpKind::ScoresGradient, CollectiveKind::AllReduce, bytes.input);
  }
  for (auto& met : met_) met.resize(vocabulary_.size());
  for (auto& came : came_) came.resize(pieces_.size());
}

/// Adds the member of the device to what the newest instruction waits for.
void ProgramWriter::wait_for_meeting(DeviceId device, const Op& op) {
  const std::optional<OpKind> need = vocabulary_.need(op);
  if (!need) return;
  const int replica = replica_on(plan_.stage(op.stage), device);
  const InstructionId first = met_[meeting_of(*need)][vocabulary_.index(op.micro, replica)];
  wait(InstructionId{first.value + vocabulary_.member(op.stage)});
}

/// After the op of the last rank that the others wait for, writes the collective. Each member waits for the op of its
/// own rank, but the last stage alone has an output to send.
void ProgramWriter::meet(DeviceId device, const Op& op, InstructionId last) {
  const std::size_t meeting = meeting_of(op.kind);
  const Stage& stage = plan_.stage(op.stage);
  const int replica = replica_on(stage, device);
  if (op.kind == OpKind::Scores || op.kind == OpKind::ScoresGradient || op.kind == OpKind::Forward)
    came_[meeting][pieces_.index(op.stage, op.micro, replica)] = last;
  if (!vocabulary_.add(op, replica) || meetings_[replica].shapes[meeting] < 0) return;
  const Meetings& meetings = meetings_[replica];
  CollectiveCall call;
  call.first = program_.instructions.next_id();
  call.members = static_cast<std::int32_t>(std::ssize(meetings.devices));
  call.shape = meetings.shapes[meeting];
  call.micro_batch = op.micro;
  call.op = letter(op.kind);
  call.hidden = true;
  call.purpose = Purpose::Vocabulary;
  program_.collectives.push_back(call);
  met_[meeting][vocabulary_.index(op.micro, replica)] = call.first;
  for (const StageId s : vocabulary_.stages()) {
    Instruction i;
    i.kind = InstructionKind::Collective;
    i.stream = meetings.streams[meeting][s];
    i.device = plan_.stage(s).leaders[replica];
    i.stage = s;
    i.number = static_cast<int>(std::int64_t{op.micro} * program_.updates[s] / program_.micro_batches[s]);
    i.payload = static_cast<std::int32_t>(std::ssize(program_.collectives)) - 1;
    begin(i);
    const StageId from = op.kind == OpKind::Forward ? op.stage : s;
    if (vocabulary_.member(from) == vocabulary_.member(s)) wait(came_[meeting][pieces_.index(from, op.micro, replica)]);
    follow(i.stream);
  }
}

}  // namespace stagecraft
