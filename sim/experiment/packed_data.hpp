#pragma once

#include <memory>

#include "sim/config/fields.hpp"
#include "sim/config/value.hpp"
#include "sim/model/model_graph.hpp"
#include "sim/plan/packing.hpp"

namespace stagecraft {

/// The fields of `data`, and `run.loads`.
const config::MapSpec& data_fields();
config::Field loads_field();

/// Takes files with lengths into a checked scenario and computes `run.micro_batches` where `data` or `run.loads` is
/// there, which decides it. False where neither is.
bool settle_packs(config::Value& tree, config::Problems&);

/// The packs of a settled scenario; null where all samples have the length of the model. InputError with the place of a
/// sequence that is too long for the model or for a pack.
std::shared_ptr<const PackedBatches> read_packs(const config::Value& tree, const ModelGraph&);

/// How `data` of a settled scenario makes packs for a plan of these degrees.
PackingRule packing_rule(const config::Value& tree, const ModelGraph&, const Degrees&);
/// The packs by that rule, or by a changed one. InputError as read_packs().
PackedBatches packs_by(const PackingRule&, const config::Value& tree, const ModelGraph&);
/// The words of `data.pack` and `data.order`.
std::string to_text(Packing);
std::string to_text(PackOrder);

/// Tokens of which each sequence is a multiple by default: each context rank has two pieces of it, of which each tensor
/// rank has a part with sequence parallelism.
int default_pad(const Degrees&);

/// One sequence of the model's length for each replica and micro-batch of `run.micro_batches`.
PackedBatches equal_packs(const config::Value& tree, const ModelGraph&);

/// Infeasible where packs that are slices themselves make no whole number of sequences of `slices` slices.
void require_whole_sequences(const PackedBatches&, int slices);

/// InputError where a slice of a sequence would need later ones, or sequences have fewer tokens than slices.
void require_slices(const ModelGraph&, int slices);

/// Tokens of a sample, as reports count them; 0 for models without.
int tokens_of_sample(const ModelGraph&);

}  // namespace stagecraft
