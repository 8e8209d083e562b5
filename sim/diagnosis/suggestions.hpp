#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "sim/cost/software.hpp"
#include "sim/diagnosis/rule.hpp"

/// Changes that several rules suggest.
namespace stagecraft::diagnosis {

/// A link that is `factor` times as fast, where the cluster has one place for its bandwidth: the link itself, the links
/// between switches, or every link of this bandwidth, and then the suggestion says so.
std::optional<Suggestion> faster_link(const DiagnosisInput&, LinkId, double factor);
/// Less oversubscription, if the link is between switches and there is some; and a faster link.
void suggest_network(const DiagnosisInput&, LinkId, double factor, Finding&);
/// Devices in the other order of replicas and stages.
void suggest_other_rank_order(const DiagnosisInput&, Finding&);
/// Overlap that hides the collectives of the first feature, where none does: of the software stack, or of another one
/// with the same kernels. `change` says it in words.
void suggest_overlap(const DiagnosisInput&, std::initializer_list<Overlap> features, const std::string& change,
                     Finding&);

/// Options for a batch of this many samples, or packs or slices where the Program has these, in this many
/// micro-batches. Where the scenario has both, both change.
std::vector<std::string> batch_sets(const DiagnosisInput&, int samples, int micro_batches);
/// The scenario with `factor` times as many micro-batches.
Suggestion more_micro_batches(const DiagnosisInput&, int factor);
/// Twice as many micro-batches of half the size in the same batch, without words for it.
std::optional<Suggestion> smaller_micro_batches(const DiagnosisInput&);
/// Twice the samples in each micro-batch, in the same batch.
std::optional<Suggestion> larger_micro_batches(const DiagnosisInput&);

}  // namespace stagecraft::diagnosis
