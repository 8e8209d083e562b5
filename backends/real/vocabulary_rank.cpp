// What one rank of a pipeline does with its part of a vocabulary: its embeddings and scores, and the arrays that it
// exchanges with the other ranks.

#include "backends/real/vocabulary_rank.hpp"

#include <utility>

#include "sim/core/diagnostic.hpp"

namespace stagecraft::real {

ExchangeShape VocabularyPart::shape(VocabularyExchange exchange) const {
  const std::size_t first = net->pass_nodes;
  const Operation &embedding = *net->nodes[first + 1].operation, &scores = *net->nodes[first + 2].operation;
  if (exchange == VocabularyExchange::Embedding || exchange == VocabularyExchange::EmbeddingGradient)
    return {embedding.rows, embedding.columns};
  if (exchange == VocabularyExchange::Scores) return {scores.rows, ScoreRecords::columns(record_width())};
  return {scores.rows, scores.inner};
}

VocabularyRank::VocabularyRank(const VocabularyPart& part, DeviceMemory& memory, const Dataset& data, SamplesOf samples,
                               WeightsOf weights)
    : part_(part),
      memory_(&memory),
      scores_(*part.net, memory, data),
      words_(*part.net, memory, data),
      samples_(std::move(samples)),
      weights_(std::move(weights)) {}

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
  return {*memory_, samples_(micro).rows(shape.rows), shape.columns, Use::Activations};
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
  if (!part_.one_barrier) return std::exchange(e.gradient, {});
  const Array gradient = scores_.recorded_gradient(samples_(micro), records(e));
  if (e.has_scores) e.joint = {};
  return gradient;
}

void VocabularyRank::compute_scores(int micro) {
  Exchanged& e = at(micro);
  e.here = scores_.record_scores(samples_(micro), weights_(), e.input, part_.one_barrier, e.scores);
}

double VocabularyRank::compute_gradient(int micro, void* sum) {
  Exchanged& e = at(micro);
  const double loss = scores_.scores_gradient(samples_(micro), weights_(), records(e), sum, e.scores,
                                              part_.one_barrier ? nullptr : &e.gradient);
  e.scores = {};
  e.input = {}, e.here = {};
  // The last stage takes the gradient of its output from joint records, which may come later.
  if (!part_.one_barrier || !part_.net->counts_losses) e.joint = {};
  e.has_scores = true;
  drop(micro);
  return loss;
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
  if (exchange == VocabularyExchange::Scores) return e.here.tensor();
  if (exchange == VocabularyExchange::Embedding && !e.embedding) {
    const std::lock_guard lock(words_mutex_);
    e.embedding = words_.look_up(samples_(micro), weights_());
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
  const bool has_last = part_.net->counts_losses, has_first = part_.net->embedded >= 0;
  if (exchange == VocabularyExchange::Gradient && !has_last) e.gradient = {};
  if (exchange == VocabularyExchange::Embedding && !has_first) e.embedding = {};
  if (exchange != VocabularyExchange::EmbeddingGradient) return;
  const std::lock_guard lock(words_mutex_);
  came_.push_back(micro);
}

}  // namespace stagecraft::real
