// The part of Session in which the ranks of a pipeline exchange embeddings, records of scores and gradients of a
// vocabulary that they divide.

#include <algorithm>
#include <memory>

#include "backends/real/session.hpp"
#include "backends/real/stage_weights.hpp"

namespace stagecraft::real {

void Session::open_vocabulary() {
  const bool one_barrier = std::none_of(p_.collectives.begin(), p_.collectives.end(), [&](const CollectiveCall& c) {
    return c.purpose == Purpose::Vocabulary && c.exchange == VocabularyExchange::Gradient;
  });
  vocabulary_.resize(p_.devices);
  const auto has_part = [&](StageId s) { return w_.stages[s].vocabulary_rank >= 0; };
  const auto ids = w_.stages.ids();
  first_part_ = {&net(*std::find_if(ids.begin(), ids.end(), has_part), 0), one_barrier, false};
}

void Session::open_vocabulary_rank(StageId s, int replica, const MemberGroups& groups,
                                   const std::vector<WeightSection>& sections) {
  const StageWorkload& stage = w_.stages[s];
  const DeviceId device = stage.replicas[replica].device;
  const VocabularyPart part{&net(s, replica), first_part_.one_barrier, stage.vocabulary_rank == 0};
  const auto executor = [this, s, device]() -> StageExecutor& { return stage_on(s, device); };
  vocabulary_[device] = std::make_unique<VocabularyRank>(
      part, *memories_[device], *data_, [executor](int micro) { return executor().samples(micro); },
      [executor] { return executor().words(); }, groups,
      ShardedArrays{stage.shards(StateSharding::Weights) && stage.reshard, stage.shards(StateSharding::Gradients),
                    sections});
}

/// Where weights are divided, the words of an embedding are there as a whole.
void Session::start_words(StageId s, int replica) {
  const StageWorkload& stage = w_.stages[s];
  if (stage.vocabulary_rank < 0 || !stage.shards(StateSharding::Weights)) return;
  const StageNet& part = net(s, replica);
  const Node& words = part.word_node(StageNet::Embedding);
  const std::vector<double> start = part_of_weights(part, whole_nets_[s], starts_[s]);
  stages_[s][replica]->start_words(std::span(start).subspan(words.weights, words.count));
}

bool Session::is_wide(const CollectiveCall& c) const {
  return c.purpose != Purpose::Vocabulary || first_part_.shape(c.exchange).width == NumberWidth::Wide;
}

/// Also of members in other processes.
std::int64_t Session::numbers_exchanged(const CollectiveCall& c) const {
  const ExchangeShape shape = first_part_.shape(c.exchange);
  const Instruction& i = p_.at(c.first);
  const int replica = w_.stages[i.stage].replica_on(i.device);
  const std::int64_t samples = w_.stages[i.stage].replicas[replica].samples.count;
  return w_.rows_of(shape.rows, samples, c.micro_batch, replica) * shape.columns;
}

MemberArrays Session::exchanged_arrays(InstructionId member) {
  const CollectiveCall& c = p_.collective(p_.at(member));
  VocabularyRank& rank = vocabulary_on(member);
  return {rank.bring(c.exchange, c.micro_batch), rank.receive(c.exchange, c.micro_batch)};
}

/// All members are here.
void Session::meet(int index) {
  const CollectiveCall& c = p_.collectives[index];
  if (numbers(c) == 0) return;  // No replica has a part in an empty micro-batch.
  if (c.exchange == VocabularyExchange::Scores) {
    std::vector<const void*> parts;
    for (int m = 0; m < c.members; ++m) parts.push_back(arrays(c.member(m)).input.data);
    return finish_exchange(index, parts);
  }
  run_collective(p_, c, *this);
  complete_exchange(c);
}

/// Records are not added up but joined; see ScoreRecords.
void Session::finish_exchange(int index, std::span<const void* const> shares) {
  const CollectiveCall& c = p_.collectives[index];
  if (numbers(c) == 0) return;
  if (c.exchange != VocabularyExchange::Scores) {
    finish_collective(p_, c, *this, shares);
    return complete_exchange(c);
  }
  const std::size_t bytes = numbers(c) * wide_width(width_);
  const void* joint = nullptr;
  for (int m = 0; m < c.members; ++m) {
    Kernels* const kernels = kernels_of(c.member(m));
    if (!kernels) continue;
    void* const output = arrays(c.member(m)).output.data;
    joint ? kernels->copy(joint, output, bytes) : add_up_records(index, shares, bytes, output);
    joint = output;
  }
  complete_exchange(c);
}

/// Parts are in plain memory, whole records of all members in the order of their ranks.
void Session::add_up_records(int index, std::span<const void* const> parts, std::size_t bytes, void* sum) {
  const CollectiveCall& c = p_.collectives[index];
  Kernels* kernels = nullptr;
  for (int m = 0; m < c.members && !kernels; ++m) kernels = kernels_of(c.member(m));
  const auto release = [&](void* data) { kernels->release(data, bytes); };
  using Copy = std::unique_ptr<void, decltype(release)>;
  const Copy total(kernels->allocate(bytes), release), next(kernels->allocate(bytes), release);
  const std::int64_t columns = first_part_.shape(VocabularyExchange::Scores).columns;
  const auto rows = static_cast<std::int64_t>(bytes / number_bytes(index));
  kernels->copy(parts.front(), total.get(), bytes);
  for (const void* const part : parts.subspan(1)) {
    kernels->copy(part, next.get(), bytes);
    kernels->divided_scores(
        ScoreStep::Join, {},
        {{next.get(), rows, columns, true}, {total.get(), rows, columns, true}, first_part_.record_width()});
  }
  kernels->copy(total.get(), sum, bytes);
}

void Session::complete_exchange(const CollectiveCall& c) {
  for (int m = 0; m < c.members; ++m) {
    const Instruction& member = p_.at(c.member(m));
    if (!here_(member.device)) continue;
    vocabulary_on(c.member(m)).complete(c.exchange, c.micro_batch);
    if (c.exchange == VocabularyExchange::EmbeddingGradient)
      stage_on(member.stage, member.device).add_queued_embedding_gradients();
  }
}

}  // namespace stagecraft::real
