// Writes what the ranks of a pipeline exchange for a vocabulary that they divide (part of ProgramWriter), as messages
// on the links, each in its own stream next to computation:
//
//   E  before the forward of the first stage: the sum of what all ranks have of its embedding
//
//   X  after the forward of the last stage: a broadcast of its output
//
//   C  after the scores of all ranks: the statistics of each token, and with one barrier the gradient of the input
//
//   D  after the gradients of all ranks, with two barriers: the gradient of the input
//
//   G  after the backward of the first stage: a broadcast of the gradient of its embedding
//
// Each device of a group exchanges its part with the devices that have the same place in the groups of other ranks, all
// at one time. As for transfers, only the first device of a group is on the links, unless collectives are messages. E
// is an all-reduce and G a broadcast, as in the released code (sail-sg/VocabularyParallelism,
// vocab_parallel_schedule.py).

#include "sim/program/writer.hpp"

#include <algorithm>
#include <iterator>

#include "sim/program/group_sets.hpp"

namespace stagecraft {

const std::vector<StageId>& ProgramWriter::members_of(VocabularyExchange exchange) const {
  return exchange == VocabularyExchange::EmbeddingGradient ? from_first_ : vocabulary_.stages();
}

CollectiveKind ProgramWriter::kind_of(VocabularyExchange exchange) const {
  const bool copies = exchange == VocabularyExchange::Input || exchange == VocabularyExchange::EmbeddingGradient;
  return copies ? CollectiveKind::Broadcast : CollectiveKind::AllReduce;
}

Bytes ProgramWriter::bytes_of_sample(VocabularyExchange exchange) const {
  const PlanVocabulary& bytes = *plan_.vocabulary;
  const bool has_gradient = schedule_.vocabulary == VocabularyPasses::OneBarrier;
  switch (exchange) {
    case VocabularyExchange::Input:
    case VocabularyExchange::Gradient:
      return bytes.input;
    case VocabularyExchange::Scores:
      return has_gradient ? bytes.statistics + bytes.input : bytes.statistics;
    case VocabularyExchange::Embedding:
    case VocabularyExchange::EmbeddingGradient:
      break;
  }
  return bytes.embedding;
}

/// Micro-batches of one class of load share a shape.
std::int32_t ProgramWriter::shape_of(VocabularyExchange exchange, int micro, int replica) {
  const int load_class = plan_.loads.at(micro, replica);
  const auto [entry, is_new] =
      meetings_[replica].shapes[static_cast<std::size_t>(exchange)].try_emplace(load_class, -1);
  if (!is_new) return entry->second;
  const Stage& last = plan_.stages.back();
  std::vector<DeviceGroup> groups(program_.leaders.empty() ? 1 : last.shape.degrees.group());
  for (const StageId s : members_of(exchange)) {
    const DeviceId leader = plan_.stage(s).leaders[replica];
    const std::vector<DeviceId> cell =
        groups.size() > 1 ? cells_of(plan_.stage(s))[replica] : std::vector<DeviceId>{leader};
    for (std::size_t i = 0; i < groups.size(); ++i) groups[i].devices.push_back(cell.at(i));
  }
  double samples = static_cast<double>(samples_at_once(last, replica));
  if (load_class != LoadTable::kMean)
    samples = plan_.loads.classes[load_class].samples * plan_.loads.classes[load_class].rows;
  return entry->second = add_shape(program_, kind_of(exchange), collective_algorithms::ring, groups,
                                   static_cast<std::uint64_t>(bytes_of_sample(exchange).value * samples + 0.5));
}

void ProgramWriter::open_meetings() {
  const Stage& last = plan_.stages.back();
  const std::vector<StageId>& from_last = vocabulary_.stages();
  const auto first = from_last.begin() + vocabulary_.member(StageId{0});
  std::rotate_copy(from_last.begin(), first, from_last.end(), std::back_inserter(from_first_));
  meetings_.resize(last.replicas());
  const auto is_written = [&](std::size_t exchange) {
    if (exchange >= static_cast<std::size_t>(VocabularyExchange::Embedding))
      return plan_.vocabulary->embedding.value > 0;
    return exchange != static_cast<std::size_t>(VocabularyExchange::Gradient) ||
           schedule_.vocabulary == VocabularyPasses::TwoBarriers;
  };
  for (int replica = 0; replica < last.replicas(); ++replica)
    for (std::size_t exchange = 0; exchange < kVocabularyExchanges; ++exchange)
      for (const StageId s : plan_.stages.ids()) {
        const bool has_part = from_last[vocabulary_.member(s)] == s && is_written(exchange);
        const DeviceId device = plan_.stage(s).leaders[replica];
        meetings_[replica].streams[exchange].push_back(has_part ? stream(device, StreamKind::Collective, DeviceId{})
                                                                : StreamId{});
      }
  for (auto& met : met_) met.resize(vocabulary_.size());
  for (auto& came : came_) came.resize(pieces_.size());
  for (auto* const newest : {&embedding_, &embedding_gradient_, &new_words_}) newest->resize(program_.devices);
}

InstructionId ProgramWriter::write_exchange(VocabularyExchange exchange, const Op& op, int replica,
                                            const std::function<void(StageId)>& add_waits) {
  const std::vector<StageId>& stages = members_of(exchange);
  const auto at = static_cast<std::size_t>(exchange);
  CollectiveCall call;
  call.first = program_.instructions.next_id();
  call.members = static_cast<std::int32_t>(std::ssize(stages));
  call.shape = shape_of(exchange, op.micro, replica);
  call.micro_batch = op.micro;
  call.op = letter(op.kind);
  call.hidden = true;
  call.purpose = Purpose::Vocabulary;
  call.exchange = exchange;
  program_.collectives.push_back(call);
  for (const StageId s : stages) {
    Instruction i;
    i.kind = InstructionKind::Collective;
    i.stream = meetings_[replica].streams[at][s];
    i.device = plan_.stage(s).leaders[replica];
    i.stage = s;
    i.number = static_cast<int>(std::int64_t{op.micro} * program_.updates[s] / program_.micro_batches[s]);
    i.payload = static_cast<std::int32_t>(std::ssize(program_.collectives)) - 1;
    begin(i);
    add_waits(s);
    follow(i.stream);
  }
  return call.first;
}

/// Adds to what the newest instruction waits for: the member of its device in what it needs.
void ProgramWriter::wait_for_meeting(DeviceId device, const Op& op) {
  if (vocabulary_.needs_embedding(op)) wait(embedding_[device]);
  if (vocabulary_.updates_words(op)) wait(embedding_gradient_[device]);
  const std::optional<OpKind> need = vocabulary_.need(op);
  if (!need) return;
  const int replica = replica_on(plan_.stage(op.stage), device);
  const InstructionId first = met_[meeting_of(*need)][vocabulary_.index(op.micro, replica)];
  wait(InstructionId{first.value + vocabulary_.member(op.stage)});
}

/// After the op of the last rank that the others wait for, writes the collective. Each member waits for the op of its
/// own rank, but the last stage alone has an output to send.
void ProgramWriter::meet(DeviceId device, const Op& op, InstructionId last) {
  const Stage& stage = plan_.stage(op.stage);
  const int replica = replica_on(stage, device);
  vocabulary_.add(op, replica);
  if (vocabulary_.updates_words(op)) new_words_[device] = last;
  if (vocabulary_.gives_embedding_gradient(op)) bring_embedding_gradient(device, op, last);
  if (op.kind != OpKind::Scores && op.kind != OpKind::ScoresGradient && op.kind != OpKind::Forward) return;
  const std::size_t meeting = meeting_of(op.kind);
  came_[meeting][pieces_.index(op.stage, op.micro, replica)] = last;
  const bool is_last_sum = op.kind == OpKind::ScoresGradient && schedule_.vocabulary == VocabularyPasses::OneBarrier;
  if (!vocabulary_.completes_scores(op, replica) || is_last_sum) return;
  met_[meeting][vocabulary_.index(op.micro, replica)] =
      write_exchange(static_cast<VocabularyExchange>(meeting), op, replica, [&](StageId s) {
        const StageId from = op.kind == OpKind::Forward ? op.stage : s;
        if (vocabulary_.member(from) == vocabulary_.member(s))
          wait(came_[meeting][pieces_.index(from, op.micro, replica)]);
      });
}

/// Before a forward of the first stage, writes the sum of its embedding. It starts when the forward two before has
/// ended, so that one embedding waits while another one is used.
void ProgramWriter::bring_embedding(DeviceId device, const Op& op) {
  if (!vocabulary_.needs_embedding(op)) return;
  const int replica = replica_on(plan_.stage(op.stage), device);
  const InstructionId first = write_exchange(VocabularyExchange::Embedding, op, replica, [&](StageId s) {
    wait(new_words_[plan_.stage(s).leaders[replica]]);
    if (vocabulary_.member(s) == vocabulary_.member(op.stage) && op.micro >= 2)
      wait(forward_[pieces_.index(op.stage, op.micro - 2, replica)]);
  });
  embedding_[device] = InstructionId{first.value + vocabulary_.member(op.stage)};
}

/// After a backward of the first stage, brings the gradient of its embedding to all ranks.
void ProgramWriter::bring_embedding_gradient(DeviceId device, const Op& op, InstructionId last) {
  const int replica = replica_on(plan_.stage(op.stage), device);
  const InstructionId first = write_exchange(VocabularyExchange::EmbeddingGradient, op, replica, [&](StageId s) {
    if (s == from_first_.front()) wait(last);
  });
  for (std::size_t rank = 0; rank < from_first_.size(); ++rank)
    embedding_gradient_[plan_.stage(from_first_[rank]).leaders[replica]] =
        InstructionId{first.value + static_cast<std::int32_t>(rank)};
}

}  // namespace stagecraft
