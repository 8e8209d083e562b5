#include "sim/cost/closed_form.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "sim/cost/closed_form_layer.hpp"

namespace stagecraft {
namespace {

constexpr Seconds kMessageLatency{20e-6};  // Assumed.

int context_replicas(const TrainingRun& run) { return run.degrees.replicas * run.degrees.context; }

/// A ring of data-parallel devices: other tensor ranks of its node have separate rings.
GroupShape data_group(const TrainingRun& run, const Accelerator& device) {
  const int ranks = context_replicas(run);
  return {ranks, std::max(1, std::min(ranks, device.domain / run.degrees.tensor))};
}

/// All chunks of each stage for one micro-batch, forward and backward; the embedding is on the first, head and loss are
/// on the last.
std::vector<TimeByClass> stage_times(const TrainingRun& run, const std::vector<double>& layers, const LayerTime& layer,
                                     const LayerTime& dense, const EndTimes& ends, const CostTerms& terms) {
  const auto sum = [](const LayerTime& t) { return t.forward + t.backward + t.recompute; };
  std::vector<TimeByClass> stages;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const double first = i == 0 ? std::min<double>(run.model.experts.dense_layers, layers[i]) : 0;
    const double embedding = !terms.uneven ? 1.0 / run.stages : i == 0 ? 1 : 0;
    const double head = !terms.uneven ? 1.0 / run.stages : i + 1 == layers.size() ? 1 : 0;
    stages.push_back((layers[i] - first) * sum(layer) + first * sum(dense) +
                     embedding * (ends.embedding_forward + ends.embedding_backward) +
                     head * (1 + run.model.next_tokens) * (ends.head_forward + ends.head_backward) +
                     head * run.model.next_tokens * (sum(layer) + ends.module_forward + ends.module_backward));
  }
  return stages;
}

/// Each tensor rank sends its part over its own card, then the group gathers it unless it stays divided.
Seconds message_time(const TrainingRun& run, const Accelerator& device) {
  if (run.stages == 1) return {};
  const Bytes activation{boundary_bytes(run)};
  const int tensor = run.degrees.tensor;
  const Bandwidth rate = run.devices() <= device.domain ? device.collectives.bus : kCardShare * run.card;
  const Seconds gather = run.sequence_parallel ? Seconds{}
                                               : collective_time(CollectiveKind::AllGather, tensor_group(run, device),
                                                                 activation, device.collectives, run.card);
  return activation / tensor / rate + kMessageLatency + gather;
}

/// Parameters on the device that has most of them.
LayerParameters fullest_parameters(const TrainingRun& run, const std::vector<double>& layers) {
  const double max_layers = std::ceil(*std::max_element(layers.begin(), layers.end()));
  LayerParameters sum{double(run.model.vocabulary) * run.model.hidden / run.degrees.tensor, 0};
  for (int l = 0; l < max_layers; ++l) {
    const LayerParameters layer = layer_parameters(run.model, l < run.model.experts.dense_layers);
    sum.divided += layer.divided / run.degrees.tensor;
    sum.experts += layer.experts / run.degrees.expert;
  }
  return sum;
}

Seconds gradient_time(const TrainingRun& run, const Accelerator& device, double parameters) {
  const auto wire = [&](CollectiveKind kind, double bytes) {
    return collective_time(kind, data_group(run, device), Bytes{bytes}, device.collectives, run.card);
  };
  const double gradient = run.software.gradient_bytes;
  Seconds time;
  if (run.sharding == StateSharding::None)
    time = wire(CollectiveKind::AllReduce, gradient * parameters);
  else if (run.sharding != StateSharding::Weights || run.stages > 1)
    time = wire(CollectiveKind::ReduceScatter, gradient * parameters) + wire(CollectiveKind::AllGather, 2 * parameters);
  time = (1 - run.software.data_overlap) * time;
  const TransformerShape& model = run.model;
  if (model.tied && run.stages > 1)  // The first and the last stage sum the gradients of the tied embedding.
    time += collective_time(CollectiveKind::AllReduce, {2, 1},
                            Bytes{gradient * model.vocabulary * model.hidden / run.degrees.tensor}, device.collectives,
                            run.card);
  return time;
}

Seconds optimizer_time(const TrainingRun& run, const Accelerator& device, const LayerParameters& parameters) {
  const double total = parameters.divided + parameters.experts;
  const double updated = run.sharding == StateSharding::None ? total : total / context_replicas(run);
  return Bytes{updated * run.software.optimizer_traffic + total * run.software.gradient_traffic} /
         device.streaming_rate();
}

}  // namespace

std::vector<int> chunks_of_layout(const TrainingRun& run) {
  const int chunks = run.stages * run.chunks;
  if (run.first_chunk < 0 || run.last_chunk < 0 || chunks < 2) return {};
  std::vector<int> counts(chunks, 0);
  counts.front() = run.first_chunk;
  counts.back() = run.last_chunk;
  const int between = run.model.layers - run.first_chunk - run.last_chunk;
  for (int c = 1; c + 1 < chunks; ++c) counts[c] = between / (chunks - 2);
  return counts;
}

std::vector<double> layers_per_stage(const TrainingRun& run) {
  const int stages = run.stages, layers = run.model.layers;
  const int units = run.ends_count ? layers + 2 : layers;
  std::vector<double> counts(stages, double(layers) / stages);
  if (stages == 1) return counts;
  if (const std::vector<int> given = chunks_of_layout(run); !given.empty()) {
    counts.assign(stages, 0);
    for (std::size_t c = 0; c < given.size(); ++c) counts[c % stages] += given[c];
    return counts;
  }
  const auto take_ends = [&] { counts.front() -= 1, counts.back() -= 1; };
  if (run.chunks > 1) {
    if (!run.ends_count || units % (stages * run.chunks) != 0) return counts;
    counts.assign(stages, double(units) / stages);
    take_ends();
  } else if (run.ends_count) {
    for (int i = 0; i < stages; ++i) counts[i] = units / stages + (i >= stages - units % stages ? 1 : 0);
    take_ends();
  } else {
    const int max_layers = (layers + stages - 1) / stages;
    int left = layers;
    for (double& count : counts) left -= static_cast<int>(count = std::min(max_layers, left));
  }
  return counts;
}

LayerParameters layer_parameters(const TransformerShape& model, bool dense) {
  const double h = model.hidden, a = model.heads;
  const LatentRanks& l = model.latent;
  double attention = 2 * h * (a + model.key_value_heads) * model.head();
  if (l.key > 0) {
    const double queries = l.query > 0 ? h * l.query + l.query * a * (l.nope + l.rope) : h * a * (l.nope + l.rope);
    attention = queries + h * (l.key + l.rope) + l.key * a * (l.nope + l.value) + a * l.value * h;
  }
  const double matrices = model.gated ? 3 : 2;
  const ExpertShape& e = model.experts;
  if (dense || e.count == 0) return {attention + matrices * h * model.width, 0};
  return {attention + matrices * h * e.shared + h * e.count, matrices * h * e.width * e.count};
}

IterationTime iteration_time(const TrainingRun& run, const Accelerator& device, const CostTerms& terms) {
  IterationTime time;
  time.layer = layer_time(run, device, run.model.experts.count == 0, terms);
  const LayerTime dense = run.model.experts.count > 0 ? layer_time(run, device, true, terms) : time.layer;
  const EndTimes ends = end_times(run, device, terms);
  std::vector<double> layers = layers_per_stage(run);
  if (!terms.uneven) layers.assign(layers.size(), double(run.model.layers) / run.stages);
  time.head_forward = ends.head_forward;
  time.head_backward = ends.head_backward;
  TimeByClass slowest;
  for (const TimeByClass& stage : stage_times(run, layers, time.layer, dense, ends, terms)) {
    time.all_stages += stage.total();
    if (stage.total() > slowest.total()) slowest = stage;
  }
  time.slowest_stage = slowest.total();
  if (terms.messages) time.message = message_time(run, device);
  const double p = run.stages, v = run.chunks, m = run.micro_batches;
  const double exposed = run.software.exposed_messages * (v > 1 ? m * v : m - 1);
  time.pipeline = (1 / v) * time.all_stages + (m - 1 / v) * time.slowest_stage + (2 * (p - 1) + exposed) * time.message;
  const LayerParameters parameters = fullest_parameters(run, layers);
  if (terms.data) time.gradients = gradient_time(run, device, parameters.divided);
  if (terms.memory_bound) time.optimizer = optimizer_time(run, device, parameters);
  time.spent = m * slowest;
  time.spent.data += time.gradients;
  time.spent.optimizer = time.optimizer;
  time.spent.messages = exposed * time.message;
  return time;
}

Flops iteration_flops(const TrainingRun& run, const Accelerator& device) {
  const bool has_experts = run.model.experts.count > 0;
  const int dense_layers = has_experts ? run.model.experts.dense_layers : run.model.layers;
  const double dense = layer_flops(run, device, true), sparse = has_experts ? layer_flops(run, device, false) : 0;
  const double layers = dense_layers * dense + (run.model.layers - dense_layers) * sparse;
  return Flops{run.micro_batches * (layers + head_flops(run)) / run.stages};
}

Seconds one_constant_time(const TrainingRun& run, const Accelerator& device, FlopRate rate) {
  const double bubble = double(run.stages - 1) / (run.micro_batches * run.chunks);
  return (1 + bubble) * (iteration_flops(run, device) / rate);
}

}  // namespace stagecraft
