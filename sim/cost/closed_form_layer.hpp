#pragma once

#include "sim/cost/closed_form.hpp"

namespace stagecraft {

/// Embedding, and head with loss, for one micro-batch on one device; and what a module for a token after the next has
/// beside its layer and its head: two norms, and the product that joins the hidden state with the next embedding.
struct EndTimes {
  TimeByClass embedding_forward, embedding_backward, head_forward, head_backward, module_forward, module_backward;
};

EndTimes end_times(const TrainingRun&, const Accelerator&, const CostTerms&);

/// Operations of one layer and micro-batch on one device, recomputation included; and of the head.
double layer_flops(const TrainingRun&, const Accelerator&, bool dense);
double head_flops(const TrainingRun&);

/// Tokens of a micro-batch on one context rank, a whole number.
double tokens_of(const TrainingRun&);
/// Bytes of one activation of all these tokens.
double boundary_bytes(const TrainingRun&);
GroupShape tensor_group(const TrainingRun&, const Accelerator&);

}  // namespace stagecraft
