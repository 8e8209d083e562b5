// Time, bytes and memory of a stage whose layers all run in one variant, summed from the stage that is one layer
// shorter where there is one; Piper's searches read them.

#include "sim/planners/chain_partition/whole_stage.hpp"

#include <algorithm>

#include "sim/core/stop_point.hpp"

namespace stagecraft::chain_partition {
namespace {

const std::vector<PiperVariant> kNoVariants;

std::size_t number_of(int layer, const std::vector<int>& layers) {
  return std::find(layers.begin(), layers.end(), layer) - layers.begin();
}

}  // namespace

double WholeStage::seconds_with(double compute, int replicas, const PiperInput& input) const {
  const double d = replicas, reduced = 4.0 * (d - 1) * parameters / d / input.micro_batches;
  return ((bytes_in + bytes_out) / d + reduced) / input.bandwidth + compute / d;
}

WholeStages::WholeStages(const std::vector<const PiperInput*>& inputs, const Cuts& cuts, int tensor)
    : cuts_(cuts), graph_(inputs.front()->graph), added_(cuts.count(), -1), crossing_(cuts.count()) {
  for (const PiperInput* input : inputs) {
    std::vector<const std::vector<PiperVariant>*>& of_type = variants_.emplace_back();
    for (const PiperLayer& layer : input->layers) {
      const auto it = layer.by_degree.find(tensor);
      of_type.push_back(it == layer.by_degree.end() ? &kNoVariants : &it->second);
    }
  }
  for (int cut = 0; cut < cuts.count(); ++cut) {
    stop_point();
    if (cut > 0 && cuts.size_of(cut) == cuts.size_of(cut - 1) + 1 && cuts.contains(cut, cut - 1))
      added_[cut] = cuts.layers_between(cut - 1, cut).front();
    find_crossing(cut);
  }
}

void WholeStages::find_crossing(int cut) {
  for (int layer = 0; layer < cuts_.layers(); ++layer) {
    if (!cuts_.has(cut, layer)) continue;
    const std::vector<int>& readers = graph_.next[layer];
    for (std::size_t output = 0; output < readers.size(); ++output)
      if (const int reader = readers[output]; !cuts_.has(cut, reader))
        crossing_[cut].push_back({layer, reader, output, number_of(layer, graph_.previous[reader])});
  }
}

const std::vector<WholeStage>& WholeStages::between(int from, int to) {
  if (from != from_ || to < to_) from_ = to_ = from, is_empty_ = true;
  while (to_ < to && added_[to_ + 1] >= 0) add(added_[++to_]);
  if (to_ != to) {
    is_empty_ = true, to_ = to;
    for (const int layer : cuts_.layers_between(from, to)) add(layer);
  }
  set_bytes(from, to);
  return wholes_;
}

void WholeStages::add(int layer) {
  const std::vector<PiperVariant>& variants = *variants_.front()[layer];
  if (is_empty_) wholes_.assign(variants.size(), {.seconds = std::vector<double>(variants_.size(), 0)});
  is_empty_ = false;
  if (variants.size() < wholes_.size()) wholes_.resize(variants.size());
  for (std::size_t v = 0; v < wholes_.size(); ++v) {
    wholes_[v].parameters += variants[v].parameters;
    wholes_[v].units += variants[v].memory;
    for (std::size_t t = 0; t < variants_.size(); ++t) wholes_[v].seconds[t] += (*variants_[t][layer])[v].seconds;
  }
}

void WholeStages::set_bytes(int from, int to) {
  const auto& variants = variants_.front();
  for (WholeStage& whole : wholes_) whole.bytes_in = whole.bytes_out = 0;
  for (const CutEdge& edge : crossing_[from])
    for (std::size_t v = 0; v < wholes_.size() && cuts_.has(to, edge.to); ++v)
      wholes_[v].bytes_in += 2 * (*variants[edge.to])[v].in[edge.input];
  for (const CutEdge& edge : crossing_[to])
    for (std::size_t v = 0; v < wholes_.size() && !cuts_.has(from, edge.from); ++v)
      wholes_[v].bytes_out += 2 * (*variants[edge.from])[v].out[edge.output];
}

}  // namespace stagecraft::chain_partition
