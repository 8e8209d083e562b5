// What one rank of a pipeline does with its part of a vocabulary: its embeddings and scores, and the arrays that it
// exchanges with the other ranks.

#include "backends/real/vocabulary_rank.hpp"

#include <utility>

#include "sim/core/diagnostic.hpp"

namespace stagecraft::real {

ExchangeShape VocabularyPart::shape(VocabularyExchange exchange) const {
  const Value& embedding = net->values[net->word_node(StageNet::Embedding).output];
  const Value& input = net->values[net->word_node(StageNet::ScoresInput).inputs.front()];
  switch (exchange) {
    case VocabularyExchange::Embedding:
    case VocabularyExchange::EmbeddingGradient:
      return {embedding.rows, embedding.columns};
    case VocabularyExchange::Scores:
      return {input.rows, ScoreRecords::columns(one_barrier ? input.columns : 0), NumberWidth::Wide};
    case VocabularyExchange::Gradient:  // Parts that are added: their sum is rounded once.
      return {input.rows, input.columns, NumberWidth::Wide};
    case VocabularyExchange::Input:
      break;
  }
  return {input.rows, input.columns};
}

VocabularyRank::VocabularyRank(const VocabularyPart& part, DeviceMemory& memory, const Dataset& data,
                               SamplesOf samples_of, WordsOf words_of, const MemberGroups& groups,
                               const ShardedArrays& sharded)
    : part_(part),
      memory_(&memory),
      scores_(*part.net, memory, data, nullptr, false, groups, sharded),
      words_(*part.net, memory, data),
      samples_(std::move(samples_of)),
      words_of_(std::move(words_of)) {}

VocabularyRank::Exchanged& VocabularyRank::at(int micro) {
  const std::lock_guard lock(mutex_);
  return exchanged_[micro];
}

void VocabularyRank::drop(int micro) {
  const std::lock_guard lock(mutex_);
  const auto exchanged = exchanged_.find(micro);
  if (exchanged->second.has_scores && exchanged->second.has_embedding) exchanged_.erase(exchanged);
}

Array VocabularyRank::new_array(VocabularyExchange exchange, int micro) const {
  const ExchangeShape shape = part_.shape(exchange);
  return {*memory_, samples_(micro).rows(shape.rows), shape.columns, Use::Activations, shape.width};
}

ScoreRecords VocabularyRank::records(const Exchanged& e) const {
  return {e.here.tensor(), e.joint.tensor(), part_.record_width()};
}

Array VocabularyRank::take_embedding(int micro) { return std::exchange(at(micro).embedding, {}); }

void VocabularyRank::give_embedding_gradient(int micro, const Array& gradient) {
  at(micro).embedding_gradient = gradient;
}

void VocabularyRank::give_input(int micro, const Array& input) { at(micro).input = input; }

Array VocabularyRank::take_input_gradient(int micro) {
  Exchanged& e = at(micro);
  if (!part_.one_barrier) return rounded(*memory_, std::exchange(e.gradient, {}), Use::Activations);
  const Array gradient = scores_.recorded_gradient(samples_(micro), records(e));
  if (e.has_scores) e.joint = {};
  return gradient;
}

void VocabularyRank::compute_scores(int micro, const void* weights) {
  Exchanged& e = at(micro);
  e.here = scores_.record_scores(samples_(micro), weights, std::exchange(e.input, {}), part_.one_barrier, e.scores);
  e.in_group = scores_.join_in_group(samples_(micro), e.here, part_.record_width());
}

Array VocabularyRank::compute_gradient(int micro, const void* weights, void* sum) {
  Exchanged& e = at(micro);
  Array loss = scores_.scores_gradient(samples_(micro), weights, records(e), sum, e.scores,
                                       part_.one_barrier ? nullptr : &e.gradient);
  e.scores = {};
  e.here = {}, e.in_group = {};
  // The last stage takes the gradient of its output from joint records, which may come later.
  if (!part_.one_barrier || !part_.is_last) e.joint = {};
  e.has_scores = true;
  drop(micro);
  return loss;
}

std::size_t VocabularyRank::prepare(int micro, DeviceMemory& apart) {
  return scores_.prepare(samples_(micro), apart) + words_.prepare(samples_(micro), apart);
}

void VocabularyRank::stage(int micro, DeviceMemory& apart) {
  scores_.stage(samples_(micro), apart);
  words_.stage(samples_(micro), apart);
}

bool VocabularyRank::at_rest() {
  const std::lock_guard lock(mutex_);
  return exchanged_.empty();
}

void VocabularyRank::let_go() {
  exchanged_.clear();
  came_.clear();
}

void VocabularyRank::add_embedding_gradients(const std::function<void*(int micro)>& sum_of) {
  const std::lock_guard lock(words_mutex_);
  for (const int micro : std::exchange(came_, {})) {
    Exchanged& e = at(micro);
    words_.look_up_gradient(samples_(micro), e.embedding_gradient, sum_of(micro));
    e.embedding_gradient = {};
    e.has_embedding = true;
    drop(micro);
  }
}

Tensor VocabularyRank::bring(VocabularyExchange exchange, int micro) {
  Exchanged& e = at(micro);
  if (exchange == VocabularyExchange::Scores) return e.in_group.tensor();
  if (exchange == VocabularyExchange::Embedding && !e.embedding) {
    const std::lock_guard lock(words_mutex_);
    e.embedding = words_.look_up(samples_(micro), words_of_());
  }
  return receive(exchange, micro);
}

Tensor VocabularyRank::receive(VocabularyExchange exchange, int micro) {
  Exchanged& e = at(micro);
  Array* const arrays[kVocabularyExchanges] = {&e.input, &e.joint, &e.gradient, &e.embedding, &e.embedding_gradient};
  Array& array = *arrays[static_cast<std::size_t>(exchange)];
  if (!array) array = new_array(exchange, micro);
  return array.tensor();
}

void VocabularyRank::complete(VocabularyExchange exchange, int micro) {
  Exchanged& e = at(micro);
  const bool has_first = part_.net->embedded >= 0;
  if (exchange == VocabularyExchange::Gradient && !part_.is_last) e.gradient = {};
  if (exchange == VocabularyExchange::Embedding && !has_first) e.embedding = {};
  if (exchange != VocabularyExchange::EmbeddingGradient) return;
  const std::lock_guard lock(words_mutex_);
  came_.push_back(micro);
}

}  // namespace stagecraft::real
