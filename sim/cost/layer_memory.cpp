// The memory of a layer and of a stage: weights and their states, what a micro-batch keeps, and what a backward takes
// for itself.

#include "sim/cost/layer_memory.hpp"

#include <algorithm>
#include <utility>

#include "sim/cost/device_parameters.hpp"
#include "sim/cost/offloaded_arrays.hpp"
#include "sim/cost/recomputed_operations.hpp"

namespace stagecraft {
namespace {

/// Numbers of a sample that a layer keeps in addition to the arrays of its operations: masks of dropout on the sums of
/// a layer of GPT. They have the rows of the sums.
double mask_numbers(const Layer& layer, double number_bytes) {
  double listed = 0;
  for (const KeptArray& array : kept_arrays(layer.operations))
    if (!array.probabilities) listed += array.numbers;
  return listed > 0 ? std::max(0.0, (layer.stash - layer.core.stash).value / number_bytes - listed) : 0;
}

/// Numbers of an array that a layer keeps under these rules, in numbers of activations.
double numbers_under(const CostRules* rules, const KeptArray& array, const Layer& layer, double number_bytes) {
  if (!rules) return array.numbers;
  const SoftwareStack& software = rules->software;
  const bool is_combined =
      array.division == ArrayDivision::Expert && layer.operations[array.operation].kind == OperationKind::Combine;
  if (is_combined && software.weights_in_experts) return 0;
  const bool is_copied = software.sequence_first && software.attention_kernel != AttentionKernel::CuDnn &&
                         array.producer >= 0 && layer.operations[array.producer].kind == OperationKind::Attention;
  if (is_copied && layer.operations[array.producer].fused) return 2 * array.numbers;
  const bool is_cast = software.keeps_casts && array.of_one_product && is_narrow(rules->format);
  return is_cast ? array.numbers * scaled_bytes_of(rules->format) / number_bytes : array.numbers;
}

/// Whether a layer keeps anything else under these rules than its arrays in the format of activations.
bool keeps_others(const CostRules* rules, const Layer& layer, double number_bytes) {
  if (!rules) return false;
  const std::vector<KeptArray> arrays = kept_arrays(layer.operations);
  return std::any_of(arrays.begin(), arrays.end(), [&](const KeptArray& array) {
    return numbers_under(rules, array, layer, number_bytes) != array.numbers;
  });
}

/// What each device has for the load, over what a layer keeps of whole samples: arrays are divided as the operations
/// that read them, so without sequence parallelism each of t devices keeps s b h (10 + 24 / t) bytes of a layer of GPT
/// (Korthikanti et al., MLSys 2023, table 2). The inside of attention, which selective recomputation drops, is divided
/// by heads.
double kept_share(const Layer& layer, const Degrees& d, const Load& load, double number_bytes, bool core,
                  const CostRules* rules) {
  const double rows = rows_divided(d), parts = d.context * d.tensor;
  const double masks = core ? 0 : mask_numbers(layer, number_bytes);
  double total = masks, here = masks > 0 ? masks * load.rows_factor(layer.operations.back()) / rows : 0;
  for (const KeptArray& array : kept_arrays(layer.operations)) {
    if (array.probabilities != core) continue;
    total += array.numbers;
    here += numbers_under(rules, array, layer, number_bytes) * kept_factor(layer.operations, array, load) /
            (array.division == ArrayDivision::Sequence ? rows : parts);
  }
  return total > 0 ? here / total : 1 / (core ? parts : rows);
}

/// The share of what a layer keeps on each device, without the inside of attention, that these arrays are.
template <class Predicate>
double stash_share(const Layer& layer, const Predicate& is_counted, const Degrees& d, const Load& load,
                   double number_bytes, const CostRules* rules) {
  const double rows = rows_divided(d), parts = d.context * d.tensor, masks = mask_numbers(layer, number_bytes);
  double total = masks > 0 ? masks * load.rows_factor(layer.operations.back()) / rows : 0, counted = 0;
  for (const KeptArray& array : kept_arrays(layer.operations)) {
    if (array.probabilities) continue;
    const double here = numbers_under(rules, array, layer, number_bytes) * kept_factor(layer.operations, array, load) /
                        (array.division == ArrayDivision::Sequence ? rows : parts);
    total += here;
    if (is_counted(array)) counted += here;
  }
  return total > 0 ? counted / total : 0;
}

/// What a layer keeps on each device for a load where nothing is recomputed, and the inside of attention alone.
std::pair<Bytes, Bytes> whole_and_core(const Layer& layer, const Degrees& d, const Load& load, double number_bytes,
                                       const CostRules* rules) {
  Bytes whole = layer.stash * load.samples, core = layer.core.stash * load.samples;
  if (d.group() > 1 || !load.has_whole_samples() || keeps_others(rules, layer, number_bytes)) {
    core = core * kept_share(layer, d, load, number_bytes, true, rules);
    whole =
        core + (layer.stash - layer.core.stash) * load.samples * kept_share(layer, d, load, number_bytes, false, rules);
  }
  return {whole, core};
}

/// Whether two layers of a stage need as much memory each. Most are equal to the one before.
bool need_as_much(const Layer& a, const Layer& b, const ModelGraph& model) {
  const auto brings_as_much = [&](LayerId from_a, LayerId from_b) {
    const Layer &x = model.layers[from_a], &y = model.layers[from_b];
    return x.output == y.output && has_rows_of_tokens(x) == has_rows_of_tokens(y);
  };
  return a.parameters == b.parameters && a.stash == b.stash && a.core == b.core && a.tie.empty() && b.tie.empty() &&
         a.has_shapes() == b.has_shapes() && a.operations == b.operations &&
         std::equal(a.inputs.begin(), a.inputs.end(), b.inputs.begin(), b.inputs.end(), brings_as_much);
}

}  // namespace

LayerShapes::LayerShapes(const StageShape& stage, const ModelGraph& model) : stage_(stage) {
  if (stage.recomputed_layers == 0) return;
  without_ = stage;
  without_.recomputation = Recomputation::None;
  without_.recomputed_layers = 0;
  const auto has_attention = [](const Layer& layer) {
    return std::any_of(layer.operations.begin(), layer.operations.end(),
                       [](const Operation& op) { return op.kind == OperationKind::Attention; });
  };
  const bool all_count = std::none_of(model.layers.begin(), model.layers.end(), has_attention);
  for (const LayerId id : stage.layers)
    if (std::ssize(again_) < stage.recomputed_layers && (all_count || has_attention(model.layers[id])))
      again_.insert(id);
}

double rows_divided(const Degrees& d) { return d.context * (d.sequence ? d.tensor : 1); }

Bytes backward_workspace(const Layer& layer, const Degrees& d, const Load& load, double each) {
  double largest = 0, scores = 0;
  for (const Operation& op : layer.operations) {
    if (op.kind == OperationKind::Linear && op.division != Division::Vocabulary)
      largest = std::max(largest, parameters_by_class(op)[ParameterClass::Divided] / d.tensor);
    if (op.kind == OperationKind::CrossEntropy) scores += load.rows_of(op) * op.columns / d.group();
  }
  return Bytes{each * largest + each * scores};
}

MemoryUnits resident_memory(const StageShape& stage, const ModelGraph& model, const SoftwareStack& software) {
  const Precision& p = model.precision;
  const DeviceParameters parameters = device_parameters(stage, model);
  const auto bytes = [&](double each, bool sharded) {
    const double dense = sharded ? stage.shards() : 1, experts = sharded ? stage.expert_shards() : 1;
    return Bytes{each * (parameters.dense / dense + parameters.experts / experts)};
  };
  const bool drops_weights = stage.gathers_each_pass();
  const double gradient = std::max(p.gradient, software.gradient_bytes + software.gradient_copy_bytes);
  return {.weights = bytes(p.weight, drops_weights),
          .gradients = bytes(gradient, stage.sums_each_pass()),
          .optimizer = bytes(p.optimizer, stage.sharding != StateSharding::None)};
}

MemoryUnits parameter_memory(double parameters, const Precision& precision) {
  return {.weights = {parameters * precision.weight},
          .gradients = {parameters * precision.gradient},
          .optimizer = {parameters * precision.optimizer}};
}

MemoryUnits layer_memory(const ModelGraph& model, LayerId id, Recomputation recomputation, const Load& load,
                         const Degrees& d, const CostRules* rules) {
  const Layer& layer = model.layers[id];
  MemoryUnits memory = parameter_memory(layer.parameters, model.precision);
  if (!layer.has_shapes()) require_whole_samples(layer, load);
  const double number_bytes = model.precision.activation;
  const auto [whole, core] = whole_and_core(layer, d, load, number_bytes, rules);
  memory.stash = whole;
  if (recomputation == Recomputation::None) return memory;
  Bytes dropped;
  if (recomputes(recomputation, Recomputation::Selective)) dropped += core;
  if (recomputes(recomputation, kModulesOfOperations)) {
    const std::vector<bool> again = recomputed_operations(layer.operations, recomputation);
    const auto is_dropped = [&](const KeptArray& a) { return a.producer >= 0 && again[a.producer]; };
    dropped += stash_share(layer, is_dropped, d, load, number_bytes, rules) * (whole - core);
  }
  if (!recomputes_by_modules(recomputation)) {  // It keeps its inputs, which are divided by rows alone.
    Bytes inputs;
    for (const LayerId from : layer.inputs)
      inputs += output_of_sample(model.layers[from], load) * (load.samples / rows_divided(d));
    dropped = (recomputation == Recomputation::Half ? 0.5 : 1) * (whole - std::min(inputs, whole));
  }
  (recomputation == Recomputation::Full ? memory.recompute_stash : memory.recompute_peak) = dropped;
  memory.stash -= dropped;
  return memory;
}

MemoryUnits stage_units(const StageShape& stage, const ModelGraph& model, const CostRules& rules, Bytes entering,
                        const Load& load) {
  const SoftwareStack& software = rules.software;
  const Degrees& d = stage.degrees;
  const Precision& p = model.precision;
  MemoryUnits memory = resident_memory(stage, model, software);
  Bytes largest_layer;
  const LayerShapes shapes(stage, model);
  LayerId before;
  MemoryUnits layer;
  for (const LayerId id : stage.layers) {
    const bool as_before = before.valid() && shapes.runs_again(before) == shapes.runs_again(id) &&
                           need_as_much(model.layers[before], model.layers[id], model);
    if (!as_before) layer = layer_memory(model, id, shapes.shape_of(id).recomputation, load, d, &rules);
    before = id;
    memory.stash += layer.stash;
    memory.recompute_stash += layer.recompute_stash;
    if (as_before) continue;  // The rest are maxima.
    memory.recompute_peak = std::max(memory.recompute_peak, layer.recompute_peak);
    memory.workspace =
        std::max(memory.workspace, backward_workspace(model.layers[id], d, load, software.workspace_bytes));
    const DeviceParameters of_layer = device_parameters({id}, d, model);
    largest_layer = std::max(largest_layer, Bytes{p.weight * (of_layer.dense + of_layer.experts)});
  }
  if (stage.gathers_each_pass()) memory.weights += 2 * largest_layer;  // The layer that runs, and the next one.
  if (!stage.recomputes_all()) return memory;
  const Bytes whole = memory.whole_stash(), input_stash = std::min(entering, whole);
  memory.recompute_stash = whole - input_stash;
  memory.stash = input_stash;
  return memory;
}

Bytes keys_and_values(const CostTable& costs, const StageShape& stage, LayerId id, const Load& load) {
  const Degrees& d = stage.degrees;
  double numbers = 0;
  for (const Operation& op : costs.model().layers[id].operations) {
    if (op.kind != OperationKind::Attention) continue;
    const HeadShape shape = head_shape(op);
    numbers += load.rows_of(op) * shape.key_value_heads * (shape.query + shape.value);
  }
  return Bytes{numbers * costs.model().precision.activation / (d.context * d.tensor)};
}

void keep_keys_and_values(const CostTable& costs, const StageShape& stage, const Load& load, MemoryUnits& memory) {
  const bool keeps_them = stage.recomputation == Recomputation::None || recomputes_by_modules(stage.recomputation);
  if (keeps_them) return;  // What attention reads is in the stash.
  const double dropped = stage.recomputes_half() ? 0.5 : 1;
  const LayerShapes shapes(stage, costs.model());
  Bytes sum, largest;
  for (const LayerId id : stage.layers) {
    if (!shapes.runs_again(id)) continue;
    const Bytes of_layer = dropped * keys_and_values(costs, stage, id, load);
    sum += of_layer, largest = std::max(largest, of_layer);
  }
  memory.stash += sum;
  memory.recompute_stash = std::max(Bytes{}, memory.recompute_stash - sum);
  memory.recompute_peak = std::max(Bytes{}, memory.recompute_peak - largest);
}

Bytes module_inputs(const ModelGraph& model, const StageShape& stage, const Load& load,
                    const std::vector<std::string>& modules, const CostRules* rules) {
  const double number_bytes = model.precision.activation;
  Bytes sum;
  for (const LayerId id : stage.layers) {
    const Layer& layer = model.layers[id];
    if (!layer.has_shapes()) continue;
    const std::vector<bool> again = recomputed_operations(layer.operations, stage.recomputation);
    const auto is_kept_input = [&](const KeptArray& a) {
      return !(a.producer >= 0 && again[a.producer]) && is_input_of(modules, a, layer.operations);
    };
    const auto [whole, core] = whole_and_core(layer, stage.degrees, load, number_bytes, rules);
    sum += stash_share(layer, is_kept_input, stage.degrees, load, number_bytes, rules) * (whole - core);
  }
  return sum;
}

}  // namespace stagecraft
