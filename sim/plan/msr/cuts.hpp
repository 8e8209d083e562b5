#pragma once

#include <cstdint>
#include <vector>

#include "sim/core/dag.hpp"

namespace stagecraft::msr {

/// The places where a pipeline may be cut: sets of layers that hold the inputs of all their layers. Larger sets come
/// later; the first is empty, the last has every layer. A stage is what one set has more than another one inside it.
class Cuts {
 public:
  explicit Cuts(int layers) : layers_(layers), words_((static_cast<std::size_t>(layers) + 63) / 64) {}

  int layers() const { return layers_; }
  int count() const { return count_; }
  bool has(int cut, int layer) const;
  bool contains(int larger, int smaller) const;  ///< Also itself.
  std::vector<int> layers_between(int smaller, int larger) const;
  void add(const std::vector<std::uint64_t>& set);
  std::size_t words() const { return words_; }

 private:
  std::size_t at(int cut) const { return static_cast<std::size_t>(cut) * words_; }

  int layers_, count_ = 0;
  std::size_t words_;
  std::vector<std::uint64_t> bits_;
};

/// All such sets; Infeasible when there are more than `most`.
Cuts all_cuts(const Digraph&, int most);

/// Those that PipeDream's released optimizer reaches: after the first layer it adds one that reads a layer it has, with
/// all that this one needs. Another source therefore comes along with the first layer that needs it.
Cuts cuts_after_first(const Digraph&, int most);

/// Beginnings of a chain.
Cuts listed_cuts(int layers);

}  // namespace stagecraft::msr
