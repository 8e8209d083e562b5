#include <algorithm>

#include "sim/cost/closed_form_layer.hpp"

namespace stagecraft {
namespace {

double parameters_bytes(const TrainingRun& run, int stage, double layers) {
  const TransformerShape& model = run.model;
  const double tensor = run.degrees.tensor;
  LayerParameters sum;
  for (int l = 0; l < static_cast<int>(layers); ++l) {
    const LayerParameters layer = layer_parameters(model, stage == 0 && l < model.experts.dense_layers);
    sum.divided += layer.divided / tensor;
    sum.experts += layer.experts / run.degrees.expert;
  }
  const double embedding = double(model.vocabulary) * model.hidden / tensor;
  const int copies = (stage == 0) + (stage == run.stages - 1);
  sum.divided += embedding * (run.stages > 1 || !model.tied ? copies : 1);

  const SoftwareStack& software = run.software;
  const double ranks = double(run.degrees.replicas) * run.degrees.context;
  const double gradient = software.fused_attention ? 4 : software.gradient_bytes + software.gradient_copy_bytes;
  const double bytes_each = 2 + gradient;
  const double states = run.sharding == StateSharding::None ? 12 : 12 / ranks;
  const double expert_states = 12 / std::max(1.0, ranks * tensor / run.degrees.expert);
  return sum.divided * (bytes_each + states) + sum.experts * (bytes_each + expert_states);
}

/// Bytes that a layer keeps of a micro-batch (Korthikanti et al., MLSys 2023). With fused attention nothing is dropped,
/// so no masks are kept: the inputs and outputs of both norms, queries, and the output of attention have 12 bytes for
/// each number; then keys and values, and the feed-forward's inner tensors, of which a gated one has a third.
double layer_stash(const TrainingRun& run) {
  const TransformerShape& model = run.model;
  const double t = run.degrees.tensor, h = model.hidden;
  const double numbers = double(run.micro_batch) * model.sequence / run.degrees.context * h;
  if (run.software.fused_attention)
    return numbers * (12 + 4.0 * model.key_value_heads / model.heads + (model.gated ? 6 : 4) * model.width / h) / t;
  const double scores = run.recompute == LayerRecomputation::Selective ? 0 : 5.0 * model.heads * model.sequence / h;
  return numbers * (run.sequence_parallel ? (34 + scores) / t : 10 + (24 + scores) / t);
}

double activation_bytes(const TrainingRun& run, int stage, double layers) {
  const TransformerShape& model = run.model;
  const double numbers = double(run.micro_batch) * model.sequence / run.degrees.context * model.hidden;
  const bool full = run.recompute == LayerRecomputation::Full;
  const double p = run.stages;
  const double in_flight =
      std::min(run.micro_batches, run.stages - stage) * (run.chunks == 1 ? 1 : 1 + (p - 1) / (p * run.chunks));
  // Sequence parallelism divides what a layer that is recomputed keeps, its input, too.
  const double input = 2 * numbers / (run.sequence_parallel ? run.degrees.tensor : 1);
  const double stash = layers * (full ? input : layer_stash(run));
  return stash * in_flight + (full && layers > 0 ? layer_stash(run) : 0);  // The layer that is being recomputed.
}

/// The gradient of the largest matrix in fp32.
double workspace_bytes(const TrainingRun& run) {
  const TransformerShape& model = run.model;
  const double feed_forward = double(model.hidden) * model.width * (model.gated ? 2 : 1);
  const double head = run.software.fused_attention ? 0 : double(model.vocabulary) * model.hidden;
  return 4 * std::max(feed_forward, head) / run.degrees.tensor;
}

}  // namespace

Bytes communicator_memory(const TrainingRun& run) {
  const int tensor = run.degrees.tensor, neighbors = std::min(2, run.stages - 1);
  double mebibytes = 544.0 * neighbors;
  for (const int ranks : {tensor, run.degrees.replicas * run.degrees.context, tensor * run.stages})
    if (ranks > 1) mebibytes += ranks == 2 ? 544 : 688;
  return Bytes{mebibytes * 0x1p20};
}

Bytes device_memory(const TrainingRun& run) {
  const std::vector<double> layers = layers_per_stage(run);
  const double tokens = double(run.micro_batch) * run.model.sequence / run.degrees.context;
  double peak = 0;
  for (int stage = 0; stage < run.stages; ++stage) {
    const bool last = stage == run.stages - 1;
    const double logits = last ? 6 * tokens * run.model.vocabulary / run.degrees.tensor : 0;
    peak = std::max(peak, parameters_bytes(run, stage, layers[stage]) + activation_bytes(run, stage, layers[stage]) +
                              logits + workspace_bytes(run));
  }
  return Bytes{peak};
}

}  // namespace stagecraft
