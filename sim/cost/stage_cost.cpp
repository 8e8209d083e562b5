// Seconds of a stage, or of one of its layers, for one micro-batch and one update, from its layers, its groups and the
// software stack.

#include "sim/cost/stage_cost.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "sim/cost/layer_memory.hpp"
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
    cost.memory.workspace = std::max(
        cost.memory.workspace,
        backward_workspace(costs.model().layers[id], divided.degrees, load, costs.rules().software.workspace_bytes));
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
  cost.memory = stage_units(stage, model, costs.rules(), cost.entering, load);
  if (!stage.vocabulary.empty())
    cost.vocabulary = std::make_shared<const StageCost>(vocabulary_cost(costs, stage, type, load));
  return cost;
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
