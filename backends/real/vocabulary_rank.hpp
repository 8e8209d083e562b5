#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <vector>

#include "backends/real/net_run.hpp"
#include "sim/program/collective.hpp"

namespace stagecraft::real {

/// Numbers of the arrays of an exchange, for one sample.
struct ExchangeShape {
  std::int64_t rows = 0, columns = 0;
  NumberWidth width = NumberWidth::Narrow;
};

/// Which part of a vocabulary a rank computes with, and how.
struct VocabularyPart {
  const StageNet* net = nullptr;  ///< The stage that has the part.
  bool one_barrier = false;       ///< Records of scores have the gradient of their input.
  bool is_last = false;           ///< Its rank has the last stage, whose output goes to the scores.

  ExchangeShape shape(VocabularyExchange) const;
  /// ScoreRecords::width.
  std::int64_t record_width() const { return one_barrier ? shape(VocabularyExchange::Input).columns : 0; }
};

/// The part of a vocabulary that one rank of a pipeline has: what its stages give to the scores and get from the
/// embedding, and what it exchanges with the other ranks, by micro-batch. Stages and collectives may use it at once.
class VocabularyRank {
 public:
  using SamplesOf = std::function<Samples(int micro)>;
  using WordsOf = std::function<const void*()>;
  /// `words_of`: the newest weights of the embedding, for any thread.
  VocabularyRank(const VocabularyPart&, DeviceMemory&, const Dataset&, SamplesOf, WordsOf words_of, const MemberGroups&,
                 const ShardedArrays&);

  // What the first and the last stage take and give.
  Array take_embedding(int micro);
  void give_embedding_gradient(int micro, const Array&);
  void give_input(int micro, const Array&);
  Array take_input_gradient(int micro);

  void compute_scores(int micro, const void* weights);
  /// Adds the gradient of the weights to `sum`, and gives the loss of the micro-batch, one number.
  Array compute_gradient(int micro, const void* weights, void* sum);
  /// Adds the gradients of embeddings that have come, in the order of their coming, to sums for the embedding alone.
  void add_embedding_gradients(const std::function<void*(int micro)>& sum_of);

  /// The array that this rank brings to an exchange, and the one that its result goes to.
  Tensor bring(VocabularyExchange, int micro);
  Tensor receive(VocabularyExchange, int micro);
  void complete(VocabularyExchange, int micro);

  /// See StageExecutor::prepare() and stage().
  std::size_t prepare(int micro, DeviceMemory& apart);
  void stage(int micro, DeviceMemory& apart);
  /// Whether it keeps nothing of any micro-batch.
  bool at_rest();
  void let_go();

 private:
  struct Exchanged {
    Array input, here, in_group, joint, gradient, embedding, embedding_gradient;
    Activations scores;
    bool has_scores = false, has_embedding = false;  ///< Whether the gradients of these weights are summed.
  };
  Exchanged& at(int micro);
  void drop(int micro);
  Array new_array(VocabularyExchange, int micro) const;
  ScoreRecords records(const Exchanged&) const;

  VocabularyPart part_;
  DeviceMemory* memory_;
  NetRun scores_, words_;  ///< Collectives look up words next to computation.
  SamplesOf samples_;
  WordsOf words_of_;
  std::mutex mutex_;                    ///< For the list, not for what is in it.
  std::mutex words_mutex_;              ///< For `words_` and `came_`.
  std::map<int, Exchanged> exchanged_;  ///< By micro-batch.
  std::vector<int> came_;               ///< Micro-batches of gradients of embeddings that have come.
};

}  // namespace stagecraft::real
