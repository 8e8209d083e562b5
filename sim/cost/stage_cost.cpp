// Seconds and memory of a stage, or of one of its layers, for one micro-batch and one update, from its layers, its
// groups and the software stack.

#include "sim/cost/stage_cost.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "sim/cost/offloaded_arrays.hpp"
#include "sim/cost/recomputed_operations.hpp"

namespace stagecraft {
namespace {

/// What enters the stage for one sample of the load: each foreign tensor once, and what the loader puts into the
/// model's inputs.
Bytes entering(const StageShape& stage, const ModelGraph& model, const Load& load) {
  const std::set<LayerId> stage_layers(stage.layers.begin(), stage.layers.end());
  std::set<LayerId> seen;
  Bytes total;
  for (LayerId id : stage.layers) {
    const Layer& layer = model.layers[id];
    for (LayerId input : layer.inputs)
      if (stage_layers.count(input) == 0 && seen.insert(input).second)
        total += output_of_sample(model.layers[input], load);
    const bool loaded = layer.inputs.empty() && layer.parameters == 0 && layer.forward.value == 0 && !layer.times &&
                        layer.times_on.empty();
    if (loaded) total += output_of_sample(layer, load);
  }
  return total;
}

/// Devices that share the rows of an array which every operation reads whole.
double rows_divided(const Degrees& d) { return d.context * (d.sequence ? d.tensor : 1); }

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

/// The gradient of the largest matrix, and a copy of the scores of words, with `each` bytes of a number.
Bytes workspace(const Layer& layer, const Degrees& d, const Load& load, double each) {
  double largest = 0, scores = 0;
  for (const Operation& op : layer.operations) {
    if (op.kind == OperationKind::Linear && op.division != Division::Vocabulary)
      largest = std::max(largest, parameters_by_class(op)[ParameterClass::Divided] / d.tensor);
    if (op.kind == OperationKind::CrossEntropy) scores += load.rows_of(op) * op.columns / d.group();
  }
  return Bytes{each * largest + each * scores};
}

/// A stage that recomputes all keeps what enters it, if that is less than its stash.
MemoryUnits memory_of(const StageShape& stage, const ModelGraph& model, const CostRules& rules, Bytes entering,
                      const Load& load) {
  const SoftwareStack& software = rules.software;
  const Degrees& d = stage.degrees;
  const Precision& p = model.precision;
  MemoryUnits memory = resident_memory(stage, model, software);
  Bytes largest_layer;
  const LayerShapes shapes(stage, model);
  for (const LayerId id : stage.layers) {
    const MemoryUnits layer = layer_memory(model, id, shapes.shape_of(id).recomputation, load, d, &rules);
    memory.stash += layer.stash;
    memory.recompute_stash += layer.recompute_stash;
    memory.recompute_peak = std::max(memory.recompute_peak, layer.recompute_peak);
    memory.workspace = std::max(memory.workspace, workspace(model.layers[id], d, load, software.workspace_bytes));
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

/// Without sequence parallelism each device of a tensor group gets its part of a message, and the group gathers it in
/// front of the op that needs it, where the stack does not hide messages.
void add_gathers(const CostTable& costs, const StageShape& stage, DeviceTypeId type, const Load& load,
                 const MinTime& min_time, EachPass<TimeByClass>& passes, EachPass<Collectives>& lists) {
  const Degrees& d = stage.degrees;
  const CostRules& rules = costs.rules();
  if (d.tensor == 1 || d.sequence || rules.software.overlap[Overlap::Messages]) return;
  const ModelGraph& model = costs.model();
  const std::set<LayerId> inside(stage.layers.begin(), stage.layers.end());
  std::set<LayerId> enters, leaves;
  for (const LayerId id : model.layers.ids())
    for (const LayerId input : model.layers[id].inputs) {
      if (inside.count(id) > 0 && inside.count(input) == 0) enters.insert(input);
      if (inside.count(id) == 0 && inside.count(input) > 0) leaves.insert(input);
    }
  const auto add_gather = [&](const std::set<LayerId>& layers, TimeByClass& pass, Collectives& list) {
    Collective c{.kind = CollectiveKind::AllGather};
    for (const LayerId id : layers) c.bytes += output_of_sample(model.layers[id], load) * (load.samples / d.context);
    if (c.bytes.value == 0) return;
    c.cost = not_below_floor(rules.price_by_shape(c, stage, type).time, c, min_time);
    pass.tensor += c.cost;
    list.push_back(c);
  };
  add_gather(enters, passes.forward, lists.forward);
  add_gather(leaves, passes.input_gradient, lists.input_gradient);
  add_gather(leaves, passes.backward, lists.backward);
}

void set_written(const CostRules& rules, const StageShape& stage, DeviceTypeId type, StageCollectives& c) {
  c.written = written_collectives(rules, stage);
  c.pair_overlap = rules.software.pair_overlap;
  c.braids = rules.braids;
  if (const int multiprocessors = rules.accelerators[type].multiprocessors; multiprocessors > 0)
    c.taken = std::min(1.0, rules.software.exchange_multiprocessors / multiprocessors);
}

/// The time of each op from its classes.
void set_totals(StageCost& cost) {
  const EachPass<TimeByClass>& sum = cost.passes;
  cost.forward = sum.forward.total();
  cost.input_gradient = sum.input_gradient.total();
  cost.weight_gradient = sum.weight_gradient.total();
  cost.backward = sum.backward.total();
  cost.recompute = sum.recompute.total();
  cost.update = cost.update_parts.total();
}

/// Adds what the layers of a stage take. A whole forward of the stage that runs again is a separate op.
void add_layers(const CostTable& costs, const StageShape& stage, DeviceTypeId type, const Load& load,
                const MinTime& min_time, StageCost& cost, EachPass<Collectives>& lists) {
  const bool in_order = costs.rules().lists_rounds, is_inside = !stage.recomputes_all();
  EachPass<TimeByClass>& sum = cost.passes;
  const LayerShapes shapes(stage, costs.model());
  Seconds input_gradients, weight_gradients;                      // Layers without shapes do both one after the other.
  std::map<std::pair<LayerId, bool>, EachPass<PassCost>> passes;  // Most layers are alike.
  for (const LayerId id : stage.layers) {
    const StageShape& shape = shapes.shape_of(id);
    const auto [entry, is_new] = passes.try_emplace({costs.alike(id), shapes.runs_again(id)});
    if (is_new) entry->second = costs.passes(id, shape, type, load, min_time);
    const EachPass<PassCost>& one = entry->second;
    const bool has_shapes = costs.has_shapes(id, shape, type, load);
    sum.forward += one.forward.time;
    sum.input_gradient += one.input_gradient.time;
    sum.weight_gradient += one.weight_gradient.time;
    if (has_shapes) sum.backward += one.backward.time;
    input_gradients += has_shapes ? Seconds{} : one.input_gradient.time.other;
    weight_gradients += has_shapes ? Seconds{} : one.weight_gradient.time.other;
    cost.traffic += costs.traffic(id, shape, type, load);
    append(lists.forward, one.forward.collectives, in_order);
    append(lists.weight_gradient, one.weight_gradient.collectives, in_order);
    if (is_inside) {
      sum.input_gradient += one.recompute.time;
      if (has_shapes) sum.backward += one.recompute.time;
      input_gradients += has_shapes ? Seconds{} : one.recompute.time.other;
      append(lists.input_gradient, one.recompute.collectives, in_order);
      append(lists.backward, one.recompute.collectives, in_order);
    }
    append(lists.input_gradient, one.input_gradient.collectives, in_order);
    append(lists.backward, one.backward.collectives, in_order);
  }
  sum.backward.other += input_gradients + weight_gradients;
}

/// Bytes of a layer of the vocabulary on a device of t p, of which the group of t alone divides rows. An array of A
/// bytes by rows and one of B by words are A/t + B/tp: between A/tp + B/tp, with rows over all of them, and A + B/tp
/// without.
Bytes stash_of_words(const CostTable& costs, LayerId id, const StageShape& divided, int ranks, const Load& load) {
  Degrees degrees = divided.degrees;
  const Bytes by_rows = layer_memory(costs.model(), id, Recomputation::None, load, degrees).stash;
  if (!degrees.sequence || degrees.tensor == ranks) return by_rows;
  degrees.sequence = false;
  const Bytes whole_rows = layer_memory(costs.model(), id, Recomputation::None, load, degrees).stash;
  return by_rows + (ranks - 1.0) / (degrees.tensor - 1.0) * (whole_rows - by_rows);
}

/// StageCost::vocabulary. A layer that shapes do not price is divided evenly. What the devices of a tensor group
/// exchange for their words, as Megatron-LM's vocabulary parallelism does, is in S and T; the exchanges of all ranks
/// are not.
StageCost vocabulary_cost(const CostTable& costs, const StageShape& stage, DeviceTypeId type, const Load& load) {
  const StageShape divided = vocabulary_shape(stage);
  StageShape whole = divided;
  whole.degrees = stage.degrees;
  StageCost cost;
  for (const LayerId id : stage.vocabulary) {
    const bool has_shapes = costs.has_shapes(id, divided, type, load);
    const EachPass<PassCost> layer = costs.passes(id, has_shapes ? divided : whole, type, load);
    const EachPass<PassCost> in_group =
        has_shapes && stage.degrees.tensor > 1 ? costs.passes(id, whole, type, load) : EachPass<PassCost>{};
    const auto part = [&](const PassCost& pass, const PassCost& group) {
      TimeByClass time = (has_shapes ? 1.0 : 1.0 / stage.vocabulary_ranks) * in_op(pass.time, Written::All);
      time.tensor += group.time.tensor;
      return time;
    };
    cost.passes.forward += part(layer.forward, in_group.forward);
    cost.passes.input_gradient += part(layer.input_gradient, in_group.input_gradient);
    cost.passes.weight_gradient += part(layer.weight_gradient, in_group.weight_gradient);
    cost.memory.stash += stash_of_words(costs, id, divided, stage.vocabulary_ranks, load);
    cost.memory.workspace = std::max(cost.memory.workspace, workspace(costs.model().layers[id], divided.degrees, load,
                                                                      costs.rules().software.workspace_bytes));
  }
  // Parts of an array may end within a byte, and sums of such numbers do not come back to zero.
  for (Bytes* const part : {&cost.memory.stash, &cost.memory.workspace}) part->value = std::round(part->value);
  set_totals(cost);
  return cost;
}

/// Sums of gradients and gathers of weights; nothing where the software does not price them.
void add_collectives(const CostTable& costs, const StageShape& stage, DeviceTypeId type,
                     const DeviceParameters& parameters, EachPass<Collectives> passes, StageCost& cost) {
  const CostRules& rules = costs.rules();
  if (!rules.software.prices) return;
  StageCollectives collectives{.passes = std::move(passes)};
  collectives.update = gather_of_weights(parameters, stage, rules, type);
  collectives.gradient_sum = sum_of_gradients(parameters, stage, rules, type);
  cost.update_parts.data = exposed_of(collectives.update);
  set_written(rules, stage, type, collectives);
  cost.collectives = std::make_shared<const StageCollectives>(std::move(collectives));
}

Seconds update_time(const CostTable& costs, const StageShape& stage, DeviceTypeId type,
                    const DeviceParameters& parameters) {
  if (costs.rules().software.prices && !costs.is_profiled(type))
    return optimizer_time(parameters, stage, costs.rules(), type);
  return costs.update(parameters.dense / stage.shards() + parameters.experts / stage.expert_shards(), type);
}

bool tells_classes(const StageCost& c) {
  return (c.passes.forward.total() + c.passes.backward.total() + c.update_parts.total()).value > 0;
}

/// The ops and the update without collectives that are written so. Times without classes contain none.
OpTimes times_without(const StageCost& c, Written written) {
  const EachPass<TimeByClass>& p = c.passes;
  if (written == Written::None || !tells_classes(c))
    return {c.forward, c.input_gradient, c.weight_gradient, c.backward, c.recompute, c.update};
  const auto rest = [&](const TimeByClass& pass) { return in_op(pass, written).total(); };
  return {rest(p.forward),  rest(p.input_gradient), rest(p.weight_gradient),
          rest(p.backward), rest(p.recompute),      rest(c.update_parts)};
}

}  // namespace

Written written_collectives(const CostRules& rules, const StageShape& stage) {
  if (rules.flows) return Written::All;
  if (rules.braids && stage.degrees.tensor > 1) return Written::Braided;
  return rules.software.pair_overlap > 0 && stage.degrees.expert > 1 ? Written::Exchanges : Written::None;
}

Collectives StageCollectives::joined() const {
  Collectives list;
  for (const Collectives* some :
       {&passes.forward, &passes.input_gradient, &passes.weight_gradient, &gradient_sum, &update})
    append(list, *some, false);
  return list;
}

bool StageCollectives::writes(const Collective& c) const {
  if (written == Written::None || written == Written::All) return written == Written::All;
  const bool is_of_pairs = c.is_exchange() || (written == Written::Braided && c.axis == Axis::Tensor);
  return is_of_pairs && c.part != GroupPart::AcrossNodes;
}

double StageCollectives::hidden_share(const Collective& c) const {
  if (c.axis == Axis::Tensor) return braids ? 1 : 0;
  return c.is_exchange() ? pair_overlap : 0;
}

/// Exchanges that a pair hides take a share of the multiprocessors while they run. The slowdown of a pair is that of
/// both ops together, so the sum over its ops is at most what the pair takes.
Seconds StageCollectives::least_time(const TimeByClass& pass, const Collectives& list) const {
  const Seconds compute = in_op(pass, written).total();
  if (written != Written::Exchanges && written != Written::Braided) return compute;
  const Seconds exposed = exposed_on(Axis::Expert, list), hidden = pair_overlap * exposed;
  const Seconds time = std::min(compute + taken * hidden, compute / (1 - taken)) + exposed - hidden;
  return written == Written::Braided && !braids ? time + exposed_on(Axis::Tensor, list) : time;
}

OpTimes times_in_op(const StageCost& c) { return times_without(c, c.written()); }

OpTimes computation_times(const StageCost& c) { return times_without(c, Written::All); }

OpTimes least_times(const StageCost& c) {
  OpTimes times = times_in_op(c);
  if (c.written() == Written::None) return times;
  const EachPass<TimeByClass>& p = c.passes;
  const EachPass<Collectives>& lists = c.collectives->passes;
  times.forward = c.collectives->least_time(p.forward, lists.forward);
  times.input_gradient = c.collectives->least_time(p.input_gradient, lists.input_gradient);
  times.weight_gradient = c.collectives->least_time(p.weight_gradient, lists.weight_gradient);
  times.backward = c.collectives->least_time(p.backward, lists.backward);
  times.recompute = c.collectives->least_time(p.recompute, lists.recompute);
  return times;
}

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

StageCost layer_cost(const CostTable& costs, const StageShape& stage, LayerId id, DeviceTypeId type, const Load& load) {
  StageCost cost;
  EachPass<PassCost> one = costs.passes(id, LayerShapes(stage, costs.model()).shape_of(id), type, load);
  cost.passes = {one.forward.time, one.input_gradient.time, one.weight_gradient.time, one.backward.time,
                 one.recompute.time};
  set_totals(cost);
  if (!costs.rules().software.prices) return cost;
  auto collectives = std::make_shared<StageCollectives>();
  collectives->passes = {std::move(one.forward.collectives), std::move(one.input_gradient.collectives),
                         std::move(one.weight_gradient.collectives), std::move(one.backward.collectives),
                         std::move(one.recompute.collectives)};
  set_written(costs.rules(), stage, type, *collectives);
  cost.collectives = std::move(collectives);
  return cost;
}

StageCost stage_cost(const CostTable& costs, const StageShape& stage, DeviceTypeId type, const Load& load,
                     const MinTime& min_time) {
  const ModelGraph& model = costs.model();
  StageCost cost;
  EachPass<TimeByClass>& sum = cost.passes;
  EachPass<Collectives> lists;
  add_layers(costs, stage, type, load, min_time, cost, lists);
  add_gathers(costs, stage, type, load, min_time, sum, lists);
  sum.recompute = sum.forward;  // As an op, which repeats the whole forward.
  lists.recompute = lists.forward;
  for (TimeByClass* pass :
       {&sum.forward, &sum.input_gradient, &sum.weight_gradient, &sum.backward, &sum.recompute, &cost.update_parts})
    pass->other += costs.operation(type);
  const DeviceParameters parameters = device_parameters(stage, model);
  cost.update_parts.optimizer = update_time(costs, stage, type, parameters);
  add_collectives(costs, stage, type, parameters, std::move(lists), cost);
  set_totals(cost);
  const double count = parameters.dense + parameters.experts;
  cost.touch = costs.touch(count, type);
  cost.update_traffic = costs.update_traffic(count, type);
  cost.touch_traffic = costs.touch_traffic(count, type);
  cost.entering = entering(stage, model, load) * (load.samples / rows_divided(stage.degrees));
  cost.memory = memory_of(stage, model, costs.rules(), cost.entering, load);
  if (!stage.vocabulary.empty())
    cost.vocabulary = std::make_shared<const StageCost>(vocabulary_cost(costs, stage, type, load));
  return cost;
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

Flops recomputed_work(Recomputation recomputation, const Layer& layer) {
  if (recomputation == Recomputation::None) return {};
  if (recomputation == Recomputation::Half) return 0.5 * layer.forward;
  if (!recomputes_by_modules(recomputation)) return layer.forward;
  Flops sum;
  if (recomputes(recomputation, Recomputation::Selective)) sum += layer.core.forward;
  const std::vector<bool> again = recomputed_operations(layer.operations, recomputation);
  for (std::size_t i = 0; i < again.size(); ++i)
    if (again[i]) sum += flops(layer.operations[i], Pass::Forward);
  return sum;
}

}  // namespace stagecraft
