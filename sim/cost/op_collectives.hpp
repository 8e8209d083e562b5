#pragma once

#include <cstdint>
#include <vector>

#include "sim/core/parallel.hpp"
#include "sim/core/quantity.hpp"
#include "sim/cost/pass_time.hpp"

namespace stagecraft {

/// Which members of its groups a collective is among: all of them; the members of each node, or one of each node, in
/// the same place; the devices that divide a state among them, or one of each copy of it, in the same place.
enum class GroupPart : std::uint8_t { Whole, InsideNodes, AcrossNodes, InsideCopies, AcrossCopies };

/// Equal collectives of the layers of an op, one after another.
struct OpCollective {
  Axis axis = Axis::Tensor;  ///< On Data the groups of dense layers are over replicas and context ranks.
  bool of_experts = false;   ///< The mesh of experts has its groups.
  CollectiveKind kind = CollectiveKind::AllReduce;
  GroupPart part = GroupPart::Whole;
  Bytes bytes{};          ///< The whole array, as phases_of() counts it.
  double exposed = 1;     ///< Share of it for which the op waits; the rest runs next to the computation.
  bool parallel = false;  ///< Starts together with the collective before it in the list.
  int rounds = 1;
  Seconds cost{};  ///< One round, where rules of cost price it.

  bool is_exchange() const { return axis == Axis::Expert; }
  bool equals_but_rounds(const OpCollective& o) const {
    return axis == o.axis && of_experts == o.of_experts && kind == o.kind && part == o.part && bytes == o.bytes &&
           exposed == o.exposed && parallel == o.parallel && cost == o.cost;
  }
};

using OpCollectives = std::vector<OpCollective>;

/// Something for each pass of a layer or a stage.
template <class T>
struct EachPass {
  T forward{}, input_gradient{}, weight_gradient{}, backward{}, recompute{};
};

/// Which collectives of an op a Program writes as instructions of their own: none; the exchanges of experts, which a
/// forward and a backward that run as one may hide; or all, as messages on the links.
enum class Written : std::uint8_t { None, Exchanges, All };

/// A pass without these collectives: the time of the instruction of its op. With `All` it is the computation alone.
TimeByClass in_op(TimeByClass pass, Written);

/// The collectives of the ops of a stage that a Program writes as instructions of their own.
struct StageCollectives {
  EachPass<OpCollectives> passes;
  OpCollectives update;        ///< The gather of updated weights.
  OpCollectives gradient_sum;  ///< Over the devices that have the same parameters.
  bool flows = false;          ///< They are messages on the links; otherwise they take their cost.
  double pair_overlap = 0;     ///< Share of their exchanges that a forward and a backward that run as one hide.
  double taken = 0;            ///< Share of the multiprocessors that an exchange takes from computation next to it.

  Written written() const { return flows ? Written::All : Written::Exchanges; }
  /// The exchanges of this list, as far as an op by itself waits for them: what they take where they have a cost.
  static Seconds exposed_exchanges(const OpCollectives&);
  /// No device spends less time on an op, alone or in a pair, that has this pass and this list: the instruction, and
  /// the exchanges that no pair hides. Where collectives are messages, the instruction alone.
  Seconds least_time(const TimeByClass& pass, const OpCollectives&) const;
};

/// Appends `more`. Collectives that equal one in the list become rounds of it, unless they keep their order.
void append(OpCollectives& list, const OpCollectives& more, bool in_order);

}  // namespace stagecraft
