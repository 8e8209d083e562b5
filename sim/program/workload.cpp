// What the instructions of a program compute (layers, samples, tensors of messages), for real backends.

#include "sim/program/workload.hpp"

#include <algorithm>

#include "sim/plan/overlap.hpp"
#include "sim/plan/vocabulary.hpp"

namespace stagecraft {
namespace {

std::int64_t tokens_of(std::span<const Sequence> pack) {
  std::int64_t tokens = 0;
  for (const Sequence& s : pack) tokens += s.length;
  return tokens;
}

/// The first stage that holds each layer; not valid: none does.
IdVector<LayerId, StageId> first_holders(const Workload& w) {
  IdVector<LayerId, StageId> first(w.layers.size());
  for (const StageId s : w.stages.ids())
    for (const LayerId layer : w.stages[s].layers)
      if (!first[layer].valid()) first[layer] = s;
  return first;
}

/// A stage and its twin hold the same layers, and count as the first of them.
std::vector<LayerId> crossing(const Workload& w, const IdVector<LayerId, StageId>& first, const EdgeEnds& edge) {
  const auto group = [&](StageId s) {
    const StageId twin = w.stages[s].twin;
    return twin.valid() ? std::min(s, twin) : s;
  };
  std::vector<LayerId> layers;
  for (const LayerId layer : w.stages[edge.to].layers)
    for (const LayerId input : w.layers[layer].inputs)
      if (first[input] == group(edge.from)) layers.push_back(input);
  std::sort(layers.begin(), layers.end());
  layers.erase(std::unique(layers.begin(), layers.end()), layers.end());
  return layers;
}

StageWorkload stage_workload(const Stage& stage) {
  StageWorkload w;
  w.name = stage.name;
  w.layers = stage.shape.layers;
  std::sort(w.layers.begin(), w.layers.end());
  w.micro_batch_size = stage.micro_batch_size;
  w.interleave = stage.turns();
  w.recomputes = stage.shape.recomputes_all();
  w.recomputes_cores = stage.shape.recomputes_attention();
  w.twin = stage.twin;
  for (int r = 0; r < std::ssize(stage.leaders); ++r) {
    const int first = r % stage.turns();  // A micro-batch that the replica works on.
    const SampleRange range = samples_of(stage, first, r);
    w.replicas.push_back(
        {stage.leaders[r], {range.low - std::int64_t{first} * stage.micro_batch_size, range.high - range.low}});
  }
  return w;
}

void set_vocabulary(Workload& w, std::vector<LayerId> layers, const std::vector<StageId>& stages) {
  w.vocabulary = std::move(layers);
  w.vocabulary_ranks = static_cast<int>(std::ssize(stages));
  for (int rank = 0; rank < w.vocabulary_ranks; ++rank) w.stages[stages[rank]].vocabulary_rank = rank;
}

}  // namespace

int StageWorkload::replica_on(DeviceId device) const {
  const auto it =
      std::find_if(replicas.begin(), replicas.end(), [&](const StageReplica& r) { return r.device == device; });
  return it == replicas.end() ? -1 : static_cast<int>(it - replicas.begin());
}

Workload make_workload(const ModelGraph& model, const Plan& plan, const WeightsRule& rule, const Training& training) {
  Workload w;
  w.name = model.name;
  for (const Layer& layer : model.layers) w.layers.push_back({layer.name, layer.inputs, layer.operations, layer.tie});
  for (const Stage& stage : plan.stages) w.stages.push_back(stage_workload(stage));
  if (plan.vocabulary) set_vocabulary(w, vocabulary_layers(model), vocabulary_stages(plan));
  for (const StageEdge& edge : plan.edges) w.edges.push_back({edge.from, edge.to});
  const IdVector<LayerId, StageId> first = first_holders(w);
  for (const EdgeEnds& edge : w.edges) w.tensors.push_back(crossing(w, first, edge));
  w.precision = model.precision;
  w.parameters = model.parameters();
  w.task = task_shape(model, plan.mini_batch);
  w.training = training;
  w.weights = rule;
  return w;
}

std::span<const Sequence> Workload::pack(int micro_batch, int replica) const {
  if (packs.empty()) return {};
  const std::size_t replicas = stages.front().replicas.size();
  return packs[(micro_batch * replicas + replica) % packs.size()];
}

double Workload::tokens_of_iteration(int micro_batch) const {
  const std::size_t replicas = stages.front().replicas.size(), each = iteration_packs;
  const std::size_t first = micro_batch * replicas / each * each;
  double tokens = 0;
  for (std::size_t i = first; i < first + each; ++i) tokens += static_cast<double>(tokens_of(packs[i % packs.size()]));
  return tokens;
}

std::int64_t Workload::rows_of(std::int64_t rows_of_sample, std::int64_t samples, int micro_batch, int replica) const {
  if (packs.empty()) return samples * rows_of_sample;
  return tokens_of(pack(micro_batch, replica)) * rows_of_sample / tokens_of_sample;
}

void set_packs(Workload& w, const PackedBatches& batches, int tokens_of_sample) {
  w.tokens_of_sample = tokens_of_sample;
  w.iteration_packs = batches.replicas * batches.micro_batches;
  for (const Pack& pack : batches.packs)
    for (std::vector<Sequence>& sequences = w.packs.emplace_back(); const int length : pack)
      sequences.push_back({0, length});
  for (std::size_t first = 0; first < w.packs.size(); first += w.iteration_packs) {
    std::vector<Sequence*> sequences;
    for (int i = 0; i < w.iteration_packs; ++i)
      for (Sequence& s : w.packs[first + i]) sequences.push_back(&s);
    std::stable_sort(sequences.begin(), sequences.end(),
                     [](const Sequence* a, const Sequence* b) { return a->length > b->length; });
    for (std::size_t n = 0; n < sequences.size(); ++n) sequences[n]->number = static_cast<int>(n);
  }
}

Workload as_one_stage(const Workload& w) {
  Workload one = w;
  one.packs.clear();
  one.vocabulary.clear();
  one.edges.clear();
  one.tensors.clear();
  one.stages.resize(1);
  StageWorkload& stage = one.stages.front() = {};
  for (int l = 0; l < std::ssize(w.layers); ++l) stage.layers.emplace_back(l);
  stage.micro_batch_size = static_cast<int>(w.task.mini_batch);
  stage.replicas = {{w.stages.front().replicas.front().device, {0, stage.micro_batch_size}}};
  return one;
}

std::vector<Handover> handovers(const Workload& w, StageId from, int micro_batch, int replica, TensorRole role) {
  std::vector<Handover> transfers;
  const bool gradient = role == TensorRole::Gradient;
  const RowRange rows = w.stages[from].samples(micro_batch, replica);
  for (int e = 0; e < std::ssize(w.edges); ++e) {
    if ((gradient ? w.edges[e].to : w.edges[e].from) != from) continue;
    const StageId to = gradient ? w.edges[e].from : w.edges[e].to;
    const StageWorkload& other = w.stages[to];
    const int there = other.replica_on(w.stages[from].replicas[replica].device);
    if (there < 0) continue;
    for (auto m = static_cast<int>(rows.first / other.micro_batch_size);
         std::int64_t{m} * other.micro_batch_size < rows.first + rows.count; ++m) {
      if (!other.works_on(m, there)) continue;
      const RowRange theirs = other.samples(m, there);
      const std::int64_t low = std::max(rows.first, theirs.first);
      const std::int64_t high = std::min(rows.first + rows.count, theirs.first + theirs.count);
      if (low < high) transfers.push_back({e, to, m, there, {low, high - low}});
    }
  }
  return transfers;
}

}  // namespace stagecraft
