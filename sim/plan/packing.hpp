#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "sim/plan/load_table.hpp"

namespace stagecraft {

/// The lengths of documents, in tokens.
struct LengthRule {
  enum class Kind : std::uint8_t { Equal, Uniform, Lognormal, Buckets, Listed };
  /// As likely as its weight says; lengths in it are uniform.
  struct Bucket {
    int low = 1, high = 1;
    double weight = 1;
  };

  Kind kind = Kind::Equal;
  int low = 1, high = 1;       ///< Equal: `high`. Lognormal: lengths are cut to them.
  double mean = 1, sigma = 1;  ///< Lognormal: the mean before the cut, the deviation of the logarithm.
  std::vector<Bucket> buckets{};
  std::vector<int> listed{};  ///< In this order, and then again; an iteration goes on where the last one ended.
  std::uint64_t seed = 1;
};

/// The documents of an iteration. Each iteration has its own stream of random numbers.
std::vector<int> draw_lengths(const LengthRule&, int count, int iteration);

/// Work of a sequence of this many tokens, in any unit: it has a part for each token, and one for each pair of them.
using WorkOfLength = std::function<double(int)>;
double work_of(const Pack&, const WorkOfLength&);

/// How sequences become packs. None: one sequence to a pack. InOrder: next fit, as in Megatron-LM's dp_balanced.
/// FirstFit: the first pack with room; BestFit: the pack with the least room that is enough. With the longest sequences
/// first (Decreasing) both need at most 11/9 of the fewest packs and 2/3. Balanced: the costliest sequence first, to
/// the pack with the least work that has room. Workload: as balanced, but long sequences wait until there is one for
/// each pack (WLB-LLM, arXiv:2503.17924). DynamicContext: as balanced, but each sequence goes to the fewest context
/// ranks with room for it, and of these to the ranks with the least work (ContextRanks).
enum class Packing : std::uint8_t {
  None,
  InOrder,
  FirstFit,
  FirstFitDecreasing,
  BestFit,
  BestFitDecreasing,
  Balanced,
  Workload,
  DynamicContext
};
/// Hill: small, large, small: odd places of the sorted packs ascend, even places descend.
enum class PackOrder : std::uint8_t { Given, Ascending, Descending, Hill };
/// Which packs a replica gets: in turn, or each the largest first to the replica with the least work or tokens that
/// still needs one; with free counts, to the replica with the least.
enum class PackShare : std::uint8_t { RoundRobin, Work, Tokens };

struct PackingRule {
  Packing packing = Packing::None;
  PackShare share = PackShare::RoundRobin;
  PackOrder order = PackOrder::Given;  ///< The order in which a replica runs its packs.
  int room = 1;                        ///< Tokens of a pack.
  int pad = 1;                         ///< A sequence takes a multiple of these tokens.
  int replicas = 1;
  int context = 1;           ///< Ranks that divide each sequence of a pack, or some of them each.
  bool free_counts = false;  ///< Replicas may have different numbers of packs.
};

/// Work of a pack in the unit of the rule: of its sequences, or with DynamicContext of the busiest of its ranks, for
/// which the others wait.
double work_of(const Pack&, const PackingRule&, const WorkOfLength&);

/// Packs of all these sequences, none of which is longer than the room.
std::vector<Pack> pack_sequences(const std::vector<int>& lengths, const PackingRule&, const WorkOfLength&);

/// Divides packs until there are `count`: the last sequence of the last pack with several becomes another pack, as
/// in Megatron-LM. False where there are too few sequences.
bool divide_packs(std::vector<Pack>&, std::size_t count);

void order_packs(std::vector<Pack>&, PackOrder, const std::function<double(const Pack&)>& work);

/// The packs of each iteration, all with the same number of micro-batches: of the iteration, and with free counts the
/// replica, that needs most. A replica with free counts and fewer packs has empty ones last. InputError where an
/// iteration has too few sequences for that many micro-batches, or with free counts for one on each replica.
PackedBatches pack_iterations(const std::vector<std::vector<int>>& lengths, const PackingRule&, const WorkOfLength&);

}  // namespace stagecraft
