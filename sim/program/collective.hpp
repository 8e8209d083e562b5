#pragma once

#include <cstddef>
#include <cstdint>

#include "sim/cluster/phases.hpp"
#include "sim/core/ids.hpp"

namespace stagecraft {

/// What a collective is for.
enum class Purpose : std::uint8_t {
  GradientSum,
  TiedGradientSum,
  TensorActivation,
  ContextActivation,
  ExpertActivation,
  ParameterGather,  ///< Updated weights that the data-parallel devices divide.
  Vocabulary,       ///< Inputs and sums of scores whose vocabulary all ranks of a pipeline divide.
  Stash,            ///< A copy of a stash between a device and the memory of its host, of one member.
  LateForward       ///< No data: a forward starts this late, so that its stash is not there before it has to be.
};

/// What the ranks of a pipeline exchange for a vocabulary that they divide: inputs of scores, sums after scores and
/// after their gradients, embeddings and their gradients.
enum class VocabularyExchange : std::uint8_t { Input, Scores, Gradient, Embedding, EmbeddingGradient };
inline constexpr std::size_t kVocabularyExchanges = 5;

/// Whether it belongs to data parallelism; the others run inside the group that computes a replica.
constexpr bool sums_gradients(Purpose purpose) {
  return purpose == Purpose::GradientSum || purpose == Purpose::TiedGradientSum || purpose == Purpose::ParameterGather;
}

/// A Phase of a collective; its routes are `routes` consecutive ones of the program.
struct CollectivePhase {
  std::uint64_t bytes = 0;  ///< Bytes over each route.
  std::int32_t latencies = 0;
  std::int32_t first_route = 0, routes = 0;
};

/// What a collective moves among which devices. All equal collectives of a program share one shape.
struct CollectiveShape {
  CollectiveKind kind = CollectiveKind::AllReduce;
  std::uint64_t bytes = 0;  ///< The whole array, as phases_of() counts it.
  std::int32_t first_phase = 0, phases = 0;
};

/// When a collective of the plan (sim/cost/collective.hpp) runs, and who takes part: `rounds` equal ones in a row,
/// folded into one, so that each phase has `rounds` times its latencies and its bytes. The members are instructions
/// with consecutive ids, in the order of the ranks of the group.
struct CollectiveCall {
  InstructionId first;
  std::int32_t members = 0;
  std::int32_t shape = -1;  ///< Index into Program::collective_shapes.
  std::int32_t rounds = 1;
  std::int32_t micro_batch = -1;  ///< Micro-batch of the op whose collective it is; -1: it belongs to an update.
  char op = 0;                    ///< Letter of the op whose collective it is; 0: a sum of gradients.
  bool hidden = false;            ///< Runs next to the computation of its op.
  double share = 1;               ///< Part of each round that it moves, latencies included; the rest is another one.
  std::int32_t tie = -1;          ///< TiedGradientSum: its number among the tied parameters of the plan.
  Purpose purpose = Purpose::GradientSum;
  VocabularyExchange exchange = VocabularyExchange::Input;  ///< Vocabulary: what it exchanges.
  int bucket = -1;  ///< GradientSum: its number among the buckets of the gradients of a stage; -1: it sums all of them.
  double after = 1;  ///< It may start when this share of each computation that it waits for is done.

  /// Rounds of which every phase has the latencies and the bytes.
  double repeats() const { return rounds * share; }
  /// What each route of a phase carries, in whole bytes.
  std::uint64_t bytes(const CollectivePhase& phase) const {
    return static_cast<std::uint64_t>(repeats() * static_cast<double>(phase.bytes) + 0.5);
  }
  InstructionId member(int rank) const { return InstructionId{first.value + rank}; }
};

}  // namespace stagecraft
