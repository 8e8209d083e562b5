#pragma once

#include <cstdint>
#include <vector>

#include "sim/core/parallel.hpp"
#include "sim/core/quantity.hpp"

namespace stagecraft {

/// Which members of its groups a collective is among: all of them; the members of each node, or one of each node, in
/// the same place; the devices that divide a state among them, or one of each copy of it, in the same place.
enum class GroupPart : std::uint8_t { Whole, InsideNodes, AcrossNodes, InsideCopies, AcrossCopies };

/// A collective of a stage: what moves among which groups, and what that costs. The same value goes from the operations
/// of a layer to the Program, where CollectiveCall says when it runs. Equal ones of the layers of an op are rounds of
/// one.
struct Collective {
  Axis axis = Axis::Tensor;  ///< On Data the groups of dense layers are over replicas and context ranks.
  bool of_experts = false;   ///< The mesh of experts has its groups.
  CollectiveKind kind = CollectiveKind::AllReduce;
  GroupPart part = GroupPart::Whole;
  Bytes bytes{};          ///< The whole array, as phases_of() counts it.
  bool ring = false;      ///< Parts go around a ring next to the attention on the part before them.
  bool combines = false;  ///< Rows come back from experts.
  bool parallel = false;  ///< Starts together with the collective before it in the list.
  bool ahead = false;     ///< The computation of its pass hides it, together with all others ahead.
  int rounds = 1;
  Seconds cost{};  ///< One round by itself, by the price list; of the longest collective, where several start together.
  Seconds hidden{};  ///< Work next to a round: what takes longer is waited for.
  double shown = 0;  ///< The share of a round ahead that is waited for all the same.

  bool is_exchange() const { return axis == Axis::Expert; }
  /// What the op waits for in each round, if nothing else hides it.
  Seconds exposed() const {
    if (ahead) return shown * cost;
    return hidden > cost ? Seconds{} : cost - hidden;
  }
  /// The part of each round that a pass hides together with all others like it.
  Seconds hidden_by_pass() const { return ahead ? (1 - shown) * cost : Seconds{}; }
  /// Its share of the round. Without a cost nothing is known to hide it.
  double exposed_share() const { return ahead ? shown : cost.value > 0 ? exposed() / cost : 1; }
  /// `ring` and `combines` only say which work is next to it.
  bool equals_but_rounds(const Collective& o) const {
    return axis == o.axis && of_experts == o.of_experts && kind == o.kind && part == o.part && bytes == o.bytes &&
           parallel == o.parallel && ahead == o.ahead && cost == o.cost && hidden == o.hidden && shown == o.shown;
  }
};

using Collectives = std::vector<Collective>;

/// Appends `more`. Collectives that equal one in the list become rounds of it, unless they keep their order.
void append(Collectives& list, const Collectives& more, bool in_order);

/// All rounds one after another, hidden or not. Collectives that start together count once.
Seconds cost_of(const Collectives&);
/// The part of all rounds that an op waits for, and of the rounds on one axis.
Seconds exposed_of(const Collectives&);
Seconds exposed_on(Axis, const Collectives&);

/// Something for each pass of a layer or a stage. `backward` is both gradients in one pass, `recompute` what its
/// recomputation repeats.
template <class T>
struct EachPass {
  T forward{}, input_gradient{}, weight_gradient{}, backward{}, recompute{};
};

}  // namespace stagecraft
