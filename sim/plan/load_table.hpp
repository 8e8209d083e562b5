#pragma once

#include <cstdint>
#include <vector>

#include "sim/cost/load.hpp"
#include "sim/plan/context_ranks.hpp"

namespace stagecraft {

struct Plan;

/// Lengths, in tokens, of the sequences that one replica has in one micro-batch. No sequence attends to another. Empty
/// where replicas have different numbers of packs and this one has no more: it does not take part in the micro-batch.
using Pack = std::vector<int>;

/// The packs of iterations whose micro-batches differ: [micro-batch * replicas + replica], through the iterations. A
/// run with more iterations begins again with the first.
struct PackedBatches {
  int replicas = 1;
  int micro_batches = 1;  ///< Count in one iteration.
  int pad = 1;            ///< A sequence is computed as a multiple of these tokens.
  int slices = 1;         ///< Micro-batches that a pack comes in, a slice in each; it is listed for each of them.
  bool exchange = false;  ///< Ranks share the attention of slices, so that all slices of a pack have equal pairs.
  std::vector<Pack> packs;
  int context = 1;                            ///< Ranks of a context group.
  std::vector<std::vector<RankRange>> ranks;  ///< [pack][sequence]: those that divide it; empty: all divide each.

  int iterations() const { return static_cast<int>(packs.size()) / (micro_batches * replicas); }
};

/// The loads of micro-batches that differ: each class once, and the class of each micro-batch of each replica.
struct LoadTable {
  static constexpr int kMean = -1;  ///< In place of a class: all micro-batches are alike, or stand for their mean.

  std::vector<Load> classes;
  std::vector<int> class_of;  ///< [micro-batch * replicas + replica], as in PackedBatches.
  int replicas = 1;
  int slices = 1;  ///< Micro-batches that a sequence, or a pack of them, comes in.

  bool empty() const { return class_of.empty(); }
  /// `micro` counts through the iterations.
  int at(std::int64_t micro, int replica) const {
    if (class_of.empty()) return kMean;
    return class_of[static_cast<std::size_t>(micro * replicas + replica) % class_of.size()];
  }
  /// Whether the replica has no pack in the micro-batch, so that its ops take no time and there are no messages.
  bool is_empty_at(std::int64_t micro, int replica) const {
    const int load = at(micro, replica);
    return load != kMean && classes[load].samples == 0;
  }
  /// The part of the micro-batches in which the replica has a pack.
  double share_with_packs(int replica) const;
};

/// A pack as a load: its sequences are the samples, and a sample has as many tokens and pairs as they have in the mean.
Load load_of(const Pack&, int tokens_of_sample, int pad = 1);

/// The load of the same number of equal packs with the same samples, tokens and pairs in all.
Load mean_load(const std::vector<Pack>&, int tokens_of_sample, int pad = 1);

/// The micro-batch `packs[index]`: a pack, or a slice of it, whose rows attend to all earlier ones of their sequence.
Load load_at(const PackedBatches&, std::size_t index, int tokens_of_sample);

/// The load of as many equal micro-batches with the same samples, tokens and pairs in all, as they are computed.
Load mean_load(const PackedBatches&, int tokens_of_sample);

/// The packs with each of them in slices.
PackedBatches cut(const PackedBatches& whole, int slices, bool exchange);

/// Gives the plan the loads of packs, one to a replica and micro-batch. InputError where the plan divides samples
/// otherwise, or where replicas with different packs would wait for each other inside of ops. `plays_collectives`:
/// collectives are messages, of which replicas with equal ops have one shape.
void set_loads(Plan&, const PackedBatches&, int tokens_of_sample, bool plays_collectives = false);

}  // namespace stagecraft
