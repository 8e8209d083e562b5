#pragma once

#include <cstdint>
#include <vector>

#include "sim/core/dag.hpp"

namespace stagecraft::chain_partition {

/// The positions where a pipeline may be cut: sets of layers that contain the inputs of all their layers. Larger sets
/// come later; the first is empty, the last has every layer. A stage is the difference of two nested sets.
class Cuts {
 public:
  explicit Cuts(int layers) : layers_(layers), words_((layers + 63) / 64) {}

  int layers() const { return layers_; }
  int count() const { return count_; }
  /// Two cuts as an index of a table of all pairs, and how many there are.
  std::int64_t pair(int from, int to) const { return std::int64_t{to} * count_ + from; }
  std::int64_t pairs() const { return pair(0, count_); }
  int size_of(int cut) const;  ///< Its number of layers.
  bool has(int cut, int layer) const;
  bool contains(int larger, int smaller) const;  ///< A cut contains itself.
  std::vector<int> layers_between(int smaller, int larger) const;
  void add(const std::vector<std::uint64_t>& set);
  std::vector<std::uint64_t> set_of(int cut) const;
  std::size_t words() const { return words_; }

 private:
  std::size_t at(int cut) const { return cut * words_; }

  int layers_, count_ = 0;
  std::size_t words_;
  std::vector<std::uint64_t> bits_;
};

/// What a search for stages between cuts found.
template <class Stage>
struct ChainPipeline {
  double seconds = 0;  ///< Seconds between two micro-batches: of the slowest stage.
  std::vector<Stage> stages;
  std::int64_t states = 0;
  bool exhaustive = true;  ///< False if stages could only take neighbors in a line of devices sorted by type.
};

/// All sets of layers that contain their inputs; Infeasible when there are more than `max_cuts`.
Cuts all_cuts(const Digraph&, int max_cuts);

/// The cuts that PipeDream's released optimizer reaches: after the first layer it adds a layer that reads one of the
/// set, with all inputs of that layer. So another source enters together with the first layer that needs it.
Cuts cuts_after_first(const Digraph&, int max_cuts);

/// The first 0, 1, ... layers of a chain.
Cuts listed_cuts(int layers);

/// At most count + 1 of these nested cuts, the first and the last among them, with about the same weight of layers
/// between neighbors.
Cuts evenly_spaced(const Cuts& nested, const std::vector<double>& weights, int count);

}  // namespace stagecraft::chain_partition
