// How flops, kept arrays and outputs of a layer grow with the load of a micro-batch, also where sequences are packed.

#include "sim/cost/load.hpp"

#include <fmt/core.h>

#include "sim/core/diagnostic.hpp"

namespace stagecraft {
namespace {

double flops_factor(const Operation& op, const Load& load) {
  return op.kind == OperationKind::Attention ? pairs_factor(op, load) : load.rows_factor(op);
}

/// The mean over the operations that are counted, by their floating-point operations.
template <class IsCounted>
double mean_flops_factor(const Layer& layer, Pass pass, const Load& load, IsCounted is_counted) {
  if (load.has_whole_samples()) return 1;
  if (!layer.has_shapes()) require_whole_samples(layer, load);
  double whole = 0, here = 0;
  for (const Operation& op : layer.operations) {
    if (!is_counted(op)) continue;
    const double amount = flops(op, pass).value;
    whole += amount;
    here += amount * flops_factor(op, load);
  }
  return whole > 0 ? here / whole : 1;
}

}  // namespace

void require_whole_samples(const Layer& layer, const Load& load) {
  if (!load.has_whole_samples())
    throw InputError(fmt::format("layer '{}' has amounts or times of whole samples, so what it takes for packed "
                                 "sequences is not known",
                                 layer.name),
                     "a model that lists its operations and has no given times");
}

double pairs_factor(const Operation& attention, const Load& load) {
  if (!attention.per_token) return 1;
  if (attention.window == 0 || !attention.fused) return load.pairs;
  const double length = attention.rows * load.pairs / load.rows, sequences = load.rows * load.rows / load.pairs;
  return sequences * attention_pairs(attention, length) / attention_pairs(attention, attention.rows);
}

double flops_factor(const Layer& layer, Pass pass, const Load& load) {
  return mean_flops_factor(layer, pass, load, [](const Operation&) { return true; });
}

double core_factor(const Layer& layer, const Load& load) {
  return mean_flops_factor(layer, Pass::Forward, load,
                           [](const Operation& op) { return op.kind == OperationKind::Attention && !op.fused; });
}

double kept_factor(const std::vector<Operation>& operations, const KeptArray& array, const Load& load) {
  const Operation& maker = operations[array.producer >= 0 ? array.producer : array.operation];
  return array.probabilities ? pairs_factor(maker, load) : load.rows_factor(maker);
}

bool has_rows_of_tokens(const Layer& layer) {
  return !layer.has_shapes() || (layer.operations.back().per_token && !layer.operations.back().is_loss());
}

Bytes output_of_sample(const Layer& layer, const Load& load) {
  if (!layer.has_shapes()) {
    require_whole_samples(layer, load);
    return layer.output;
  }
  const Operation& last = layer.operations.back();
  return last.is_loss() ? layer.output : layer.output * load.rows_factor(last);
}

}  // namespace stagecraft
