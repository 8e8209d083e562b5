// The planner `piper`: the layers as Piper's problem, with the tensor degrees of the option `tensor` and each layer
// plain or recomputed, and Piper's stages as a plan. A plan decides both for whole stages, and so does the search
// (chain_partition/piper.cpp).

#include <fmt/core.h>

#include <algorithm>
#include <numeric>

#include "sim/core/text.hpp"
#include "sim/cost/stage_cost.hpp"
#include "sim/planners/chain_partition/mixed.hpp"
#include "sim/planners/chain_partition/piper.hpp"
#include "sim/planners/chain_partition/planning.hpp"
#include "sim/planners/shared/group.hpp"

namespace stagecraft::planners {
namespace {

using Strings = std::vector<std::string>;

const config::MapSpec kPiperFields{
    "Stages with replicas that fit into memory, by Piper's search.",
    {chain_partition::micro_batch_field(), chain_partition::devices_field(),
     config::choice("cuts", Strings{"all", "listed"})
         .fallback("all")
         .doc("Where stages may end. all: after any set of layers that contains their inputs. listed: between layers "
              "in the order of the model."),
     config::list("tensor", config::integer("degree", 1, 1 << 20))
         .optional()
         .or_alone()
         .doc("Degrees of tensor parallelism, of which each stage gets one; with `software`. Default: 1 alone."),
     config::boolean("sequence").fallback("false").doc("Sequence parallelism in each tensor group."),
     recompute_field(true),
     config::quantity("memory", config::Dimension::Size)
         .optional()
         .doc("Memory limit of a device. Default: the memory of its type, or no limit if that is unknown."),
     config::quantity("bandwidth", config::Dimension::Bandwidth)
         .optional()
         .doc("Bandwidth between any two devices. Default: the slowest link between neighbors.")}};

struct PiperOptions {
  chain_partition::CutChoice cuts = chain_partition::CutChoice::All;
  std::vector<int> tensor{1};  ///< Ascending.
  bool sequence = false;
};

StageShape shape_of(const PlannerInput& input, int tensor) {
  StageShape shape;
  shape.degrees.tensor = tensor;
  shape.degrees.sequence = tensor > 1 && input.options.options<PiperOptions>().sequence;
  return shape;
}

/// A layer that recomputes keeps its inputs, as in the paper; a stage of a plan keeps only what enters it, so it needs
/// less than this search counts.
std::vector<chain_partition::PiperVariant> plain_variants(const PlannerInput& input, LayerId id, DeviceTypeId type,
                                                          const Load& load,
                                                          const chain_partition::PiperVariant& plain) {
  std::vector<chain_partition::PiperVariant> variants;
  for (const Recomputation kind : recomputations(input.options, input.model)) {
    const StageShape shape{.recomputation = kind};
    chain_partition::PiperVariant& one = variants.emplace_back(plain);
    one.seconds += input.costs.passes(id, shape, type, load).recompute.time.total().value;
    one.memory = layer_memory(input.model, id, kind, load, {}, &input.costs.rules());
  }
  return variants;
}

/// Each device of a group sends its part of a message, and sums its part of the gradients.
std::vector<chain_partition::PiperVariant> divided_variants(const PlannerInput& input, LayerId id, DeviceTypeId type,
                                                            const Load& load, int tensor,
                                                            chain_partition::PiperVariant plain) {
  StageShape shape = shape_of(input, tensor);
  shape.layers = {id};
  const DeviceParameters p = device_parameters(shape.layers, shape.degrees, input.model);
  plain.parameters = (p.dense + p.experts) * input.model.precision.weight;
  for (double& bytes : plain.in) bytes /= tensor;
  for (double& bytes : plain.out) bytes /= tensor;
  std::vector<chain_partition::PiperVariant> variants;
  for (const Recomputation kind : recomputations(input.options, input.model)) {
    shape.recomputation = kind;
    const EachPass<PassCost> passes = input.costs.passes(id, shape, type, load);
    chain_partition::PiperVariant& one = variants.emplace_back(plain);
    one.seconds = (passes.forward.time + passes.backward.time + passes.recompute.time).total().value;
    one.memory = stage_cost(input.costs, shape, type, load).memory;
  }
  return variants;
}

chain_partition::PiperLayer layer_of(const PlannerInput& input,
                                     const std::vector<chain_partition::LayerAmounts>& amounts, std::size_t l,
                                     DeviceTypeId type, const Load& load, std::size_t readers) {
  const LayerId id{l};
  const Layer& layer = input.model.layers[id];
  chain_partition::PiperVariant plain;
  plain.seconds = amounts[l].seconds;
  plain.parameters = amounts[l].parameters;
  for (const LayerId from : layer.inputs) plain.in.push_back(amounts[from.value].output);
  plain.out.assign(readers, amounts[l].output);
  chain_partition::PiperLayer result{layer.name, {}};
  for (const int tensor : input.options.options<PiperOptions>().tensor)
    result.by_degree[tensor] = tensor == 1 ? plain_variants(input, id, type, load, plain)
                                           : divided_variants(input, id, type, load, tensor, plain);
  return result;
}

chain_partition::PiperInput piper_input_of(const PlannerInput& input, const std::vector<DeviceId>& devices,
                                           DeviceTypeId type) {
  const int size = input.options.micro_batch_size;
  const Load load = input.costs.load_of(size);
  const std::vector<chain_partition::LayerAmounts> amounts = chain_partition::amounts_of(input.costs, type, load);
  chain_partition::PiperInput piper_input;
  piper_input.graph = chain_partition::layer_graph(input.model);
  for (std::size_t l = 0; l < amounts.size(); ++l)
    piper_input.layers.push_back(layer_of(input, amounts, l, type, load, piper_input.graph.next[l].size()));
  piper_input.devices = static_cast<int>(devices.size());
  piper_input.micro_batches = input.micro_batches;
  piper_input.most_replicas = size;
  piper_input.whole_stages = true;
  const std::optional<Bytes> memory = input.options.memory;
  const std::optional<Bandwidth> rate = input.options.bandwidth;
  const Bytes usable = input.cluster.types[type].usable_memory();
  if (memory)
    piper_input.memory = memory->value;
  else if (usable.value > 0)
    piper_input.memory = usable.value;
  piper_input.bandwidth = rate ? rate->value : chain_partition::flat_bandwidth(input, devices);
  return piper_input;
}

/// Writes times and bandwidths of all types in the common unit of the variants of all layers.
CommonUnit put_in_common_unit(std::vector<chain_partition::PiperInput>& questions) {
  std::vector<chain_partition::PiperVariant*> variants;
  for (chain_partition::PiperInput& question : questions)
    for (chain_partition::PiperLayer& layer : question.layers)
      for (auto& [degree, list] : layer.by_degree)
        for (chain_partition::PiperVariant& variant : list) variants.push_back(&variant);
  std::vector<double> times;
  for (const chain_partition::PiperVariant* variant : variants) times.push_back(variant->seconds);
  const CommonUnit unit(times);
  for (chain_partition::PiperVariant* variant : variants) variant->seconds = unit(variant->seconds);
  for (chain_partition::PiperInput& question : questions) question.bandwidth = unit.rate(question.bandwidth);
  return unit;
}

/// These cuts if the search among them is short enough; else so few of them, or of those in the order of the model,
/// that it is.
chain_partition::Cuts short_enough(const chain_partition::PiperInput& question, const chain_partition::Cuts& cuts) {
  if (chain_partition::why_too_long(question, cuts).empty()) return cuts;
  const bool has_branches = cuts.count() > cuts.layers() + 1;
  const chain_partition::Cuts nested = has_branches ? chain_partition::listed_cuts(cuts.layers()) : cuts;
  std::vector<double> seconds;
  for (const chain_partition::PiperLayer& layer : question.layers)
    seconds.push_back(layer.by_degree.begin()->second.front().seconds);
  chain_partition::Cuts fewer = nested;
  for (int count = nested.count() - 1; count > 1 && !chain_partition::why_too_long(question, fewer).empty();
       count = count * 3 / 4)
    fewer = chain_partition::evenly_spaced(nested, seconds, count);
  return fewer;
}

struct PiperAnswer {
  chain_partition::PiperPlan pipeline;
  double seconds;              ///< Seconds between two micro-batches.
  chain_partition::Cuts cuts;  ///< Where stages may end.
  std::string heuristic;       ///< How another plan may be better; empty: none is.
};

/// Nothing if no plan fits into memory. Infeasible if there are too many plans, and none of those that are looked at
/// fits.
std::optional<PiperAnswer> search(const PlannerInput& input, const std::vector<DeviceId>& devices,
                                  const chain_partition::Types& types) {
  const chain_partition::Cuts every_cut = chain_partition::cuts_of(input, input.options.options<PiperOptions>().cuts);
  std::vector<chain_partition::PiperInput> questions;
  for (const DeviceTypeId type : types.types) questions.push_back(piper_input_of(input, devices, type));
  const CommonUnit unit = put_in_common_unit(questions);
  if (types.mixed()) {
    auto pipeline = chain_partition::search_piper(questions, types.counts(), every_cut);
    if (!pipeline) return {};
    const bool exhaustive = pipeline->exhaustive;
    const double seconds = unit.seconds(pipeline->seconds);
    return PiperAnswer{std::move(*pipeline), seconds, every_cut, exhaustive ? "" : chain_partition::kLineOfDevices};
  }
  const chain_partition::Cuts cuts = short_enough(questions.front(), every_cut);
  const bool exhaustive = cuts.count() == every_cut.count();
  auto pipeline = chain_partition::search_piper(questions.front(), cuts);
  if (!pipeline && exhaustive) return {};
  if (!pipeline)
    throw Infeasible("size", chain_partition::why_too_long(questions.front(), every_cut),
                     "merge layers, or use fewer micro-batches");
  const double seconds = unit.seconds(pipeline->seconds);
  return PiperAnswer{
      std::move(*pipeline), seconds, cuts,
      exhaustive ? "" : fmt::format("stages end at {} of {} places", cuts.count() - 2, every_cut.count() - 2)};
}

[[noreturn]] void refuse(const PlannerInput& input, const std::vector<DeviceId>& devices,
                         const chain_partition::Types& types) {
  double largest = 0;
  for (const DeviceTypeId type : types.types) largest = std::max(largest, piper_input_of(input, devices, type).memory);
  throw Infeasible("memory",
                   fmt::format("no stages on {} with {}{} each hold the model and its micro-batches",
                               pluralize(std::ssize(devices), "device"), types.mixed() ? "up to " : "",
                               room_text(input, Bytes{largest})),
                   "more devices or memory, smaller micro-batches, or `recompute: auto`");
}

/// Devices of a stage: of each type those that come next.
std::vector<DeviceId> next_devices(const chain_partition::PiperStage& stage, const std::vector<DeviceId>& devices,
                                   const chain_partition::Types& types, std::vector<char>& taken) {
  std::vector<int> needed = stage.of_type.empty() ? std::vector<int>{stage.tensor * stage.data} : stage.of_type;
  std::vector<DeviceId> chosen;
  for (std::size_t d = 0; d < devices.size(); ++d) {
    int& left = needed[types.type_of[d]];
    if (taken[d] || left == 0) continue;
    taken[d] = 1, --left;
    chosen.push_back(devices[d]);
  }
  return chosen;
}

PlannerOptions read_piper_options(const config::Value& checked, const Cluster&) {
  auto read = std::make_shared<PiperOptions>();
  read->cuts = chain_partition::read_cuts(checked);
  read->sequence = config::as_bool(checked.at("sequence"));
  if (const config::Value* tensor = checked.find("tensor")) {
    read->tensor.clear();
    for (const config::Value& degree : tensor->items) read->tensor.push_back(config::as_int(degree));
    std::sort(read->tensor.begin(), read->tensor.end());
    read->tensor.erase(std::unique(read->tensor.begin(), read->tensor.end()), read->tensor.end());
    if (read->tensor.empty())
      throw InputError({{tensor->where, "plan.tensor", "there is no degree to choose from", "[1, 2, 4, 8]", "group"}});
  }
  return read;
}

/// Every degree has to divide the model, whether a stage gets it or not.
void check_tensor(const PlannerInput& input, const std::vector<DeviceId>& devices,
                  const chain_partition::Types& types) {
  const PiperOptions& options = input.options.options<PiperOptions>();
  if (options.tensor.back() == 1) return;
  const auto refuse_tensor = [&](const char* what, const char* help) {
    throw InputError({{input.options.where("tensor"), "plan.tensor", what, help, "group"}});
  };
  if (!input.costs.rules().software.prices)
    refuse_tensor("only a software stack says what tensor parallelism costs", "software: plain");
  if (types.mixed()) refuse_tensor("devices of several types are not divided into tensor groups", "tensor: [1]");
  for (const int tensor : options.tensor) {
    if (tensor > std::ssize(devices)) continue;
    Stage whole;
    whole.shape = shape_of(input, tensor);
    for (const LayerId id : input.model.layers.ids()) whole.shape.layers.push_back(id);
    whole.place_on({devices.begin(), devices.begin() + tensor});
    PlanSpec division = input.options;
    division.group = whole.shape.degrees;
    check_own_group(input, whole, division, "plan.tensor");
  }
}

/// Devices of each stage. The largest tensor groups come first, so that groups fill nodes from their first device.
std::vector<std::vector<DeviceId>> devices_of_stages(const chain_partition::PiperPlan& pipeline,
                                                     const std::vector<DeviceId>& devices,
                                                     const chain_partition::Types& types) {
  std::vector<std::size_t> order(pipeline.stages.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return pipeline.stages[a].tensor > pipeline.stages[b].tensor; });
  std::vector<char> taken(devices.size(), 0);
  std::vector<std::vector<DeviceId>> chosen(order.size());
  for (const std::size_t s : order) chosen[s] = next_devices(pipeline.stages[s], devices, types, taken);
  return chosen;
}

Planned plan_piper(const PlannerInput& input) {
  const std::vector<DeviceId> devices = chain_partition::devices_of(input);
  const chain_partition::Types types = chain_partition::types_of(input.cluster, devices);
  const std::vector<Recomputation> kinds = recomputations(input.options, input.model);
  check_tensor(input, devices, types);
  const std::optional<PiperAnswer> answer = search(input, devices, types);
  if (!answer) refuse(input, devices, types);
  const auto& [pipeline, seconds, cuts, heuristic] = *answer;
  Planned result;
  const std::vector<std::vector<DeviceId>> chosen = devices_of_stages(pipeline, devices, types);
  for (const chain_partition::PiperStage& one : pipeline.stages) {
    Stage stage;
    stage.shape = shape_of(input, one.tensor);
    stage.divides_itself = one.tensor > 1;
    stage.name = fmt::format("s{}", result.plan.stage_count());
    stage.micro_batch_size = input.options.micro_batch_size;
    stage.shape.recomputation = kinds[one.variants.front()];
    for (const int layer : cuts.layers_between(one.from, one.to)) stage.shape.layers.push_back(LayerId{layer});
    stage.place_on(chosen[result.plan.stages.size()]);
    result.memory = std::max(result.memory, Bytes{one.memory});
    result.plan.stages.push_back(std::move(stage));
  }
  finish_plan(result.plan, input, false);
  result.predicted = result.model_limit = {seconds};
  result.limit_reason = "the search was exhaustive";
  if (!heuristic.empty()) set_heuristic(result, input, heuristic);
  chain_partition::note_idle_devices(result, input);
  result.states = pipeline.states;
  return result;
}

}  // namespace

extern const PlannerDef piper{
    .name = "piper",
    .summary = "Piper's search: stages with replicas and recomputation that fit into memory, on devices of any types.",
    .source = "Tarnawski, Narayanan and Phanishayee, Piper, NeurIPS 2021",
    .fields = &kPiperFields,
    .plan = plan_piper,
    .read = read_piper_options,
    .training_alone = "weighs gradients, stashes and recomputation",
};

}  // namespace stagecraft::planners
