#pragma once

#include <optional>
#include <string>

#include "sim/cluster/link_collectives.hpp"
#include "sim/experiment/run.hpp"

namespace stagecraft {

/// The experiment with one set of replicas in place of all sets, where each instruction of one has its counterpart in
/// every other, at the same time: replicas on equal devices with equal links between the stages, which meet in sums of
/// gradients alone. Replicas that share a link with each other are one set. Here: 64 replicas on nodes of four, two of
/// which share a card, are 32 sets of two.
///
/// `idle`: the network, if no message waits for another one; then no replicas share links, and a sum of gradients
/// without a price takes the time of its ring. Null: messages share links.
///
/// Nothing where no two sets are alike, or where it is not known: collectives that are messages, replicas that take
/// micro-batches in turn, clusters that change.
std::optional<PlannedExperiment> fold_replicas(const PlannedExperiment&, const LinkCollectives* idle);

/// The order of a folded plan for all replicas of the plan; an order of the plan itself stays as it is.
Schedule with_all_replicas(const Schedule&, const Plan&);

/// compile() of the folded experiment where it can be folded, else of the experiment itself.
CompiledExperiment compile_folded(const PlannedExperiment&, const LinkCollectives* idle,
                                  const Schedule* known_order = nullptr);

/// compile() for the report of a run on this backend, which has the numbers of every device. Where replicas fold, the
/// plan, the costs and the schedule have all of them, and the program has one set and the counterparts of its devices.
/// Where only the ring of a sum would be known, and not its messages, nothing folds; nor on `simgrid`, the reference.
CompiledExperiment compile_for_report(const PlannedExperiment&, const std::string& backend);

}  // namespace stagecraft
