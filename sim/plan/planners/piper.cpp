// Piper without tensor parallelism, which plans do not have: each layer plain, or with its forward run again. A plan
// decides that for whole stages, and so does the search.

#include <fmt/core.h>

#include <algorithm>

#include "sim/core/text.hpp"
#include "sim/cost/stage_cost.hpp"
#include "sim/plan/msr/mixed.hpp"
#include "sim/plan/msr/piper.hpp"
#include "sim/plan/msr/planning.hpp"

namespace stagecraft::planners {
namespace {

using Strings = std::vector<std::string>;

const config::MapSpec kPiperFields{
    "Stages with replicas that fit into memory, by Piper's search.",
    {msr::micro_batch_field(), msr::devices_field(),
     config::choice("cuts", Strings{"all", "listed"})
         .fallback("all")
         .doc("Where stages may end. all: after any set of layers that contains their inputs. listed: between layers "
              "in the order of the model."),
     recompute_field(true),
     config::quantity("memory", config::Dimension::Size)
         .optional()
         .doc("Memory limit of a device. Default: the memory of its type, or no limit if that is unknown."),
     config::quantity("bandwidth", config::Dimension::Bandwidth)
         .optional()
         .doc("Bandwidth between any two devices. Default: the slowest link between neighbors.")}};

/// A layer that recomputes keeps its inputs, as in the paper; a stage of a plan keeps only what enters it, so it needs
/// less than this search counts.
msr::PiperLayer layer_of(const PlannerInput& input, const std::vector<msr::LayerAmounts>& amounts, std::size_t l,
                         DeviceTypeId type, int size) {
  const Layer& layer = input.model.layers[LayerId{l}];
  msr::Variant plain;
  plain.seconds = amounts[l].seconds;
  plain.parameters = amounts[l].parameters;
  for (const LayerId from : layer.inputs) plain.in.push_back(amounts[from.value].output);
  const LayerId id{l};
  const LayerCost cost = input.costs.at(id, type, size);
  std::vector<msr::Variant> variants;
  for (const Recomputation kind : recomputations(input.options, input.model)) {
    msr::Variant& one = variants.emplace_back(plain);
    one.seconds += recomputed_share(kind, cost) * cost.forward.value;
    one.memory = layer_memory(input.model, id, kind, size);
  }
  return {layer.name, {{1, std::move(variants)}}};
}

msr::PiperInput piper_input_of(const PlannerInput& input, const std::vector<DeviceId>& devices, DeviceTypeId type) {
  const int size = input.options.micro_batch_size;
  const std::vector<msr::LayerAmounts> amounts = msr::amounts_of(input.costs, type, size);
  msr::PiperInput piper_input;
  piper_input.graph = msr::layer_graph(input.model);
  for (std::size_t l = 0; l < amounts.size(); ++l) {
    piper_input.layers.push_back(layer_of(input, amounts, l, type, size));
    for (msr::Variant& variant : piper_input.layers.back().by_degree[1])
      variant.out.assign(piper_input.graph.next[l].size(), amounts[l].output);
  }
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
  piper_input.bandwidth = rate ? rate->value : msr::flat_bandwidth(input, devices);
  return piper_input;
}

std::optional<msr::PiperPlan> search(const PlannerInput& input, const std::vector<DeviceId>& devices,
                                     const msr::Types& types, const msr::Cuts& cuts) {
  std::vector<msr::PiperInput> questions;
  for (const DeviceTypeId type : types.types) questions.push_back(piper_input_of(input, devices, type));
  return types.mixed() ? msr::search_piper(questions, types.counts(), cuts)
                       : msr::search_piper(questions.front(), cuts);
}

[[noreturn]] void refuse(const PlannerInput& input, const std::vector<DeviceId>& devices, const msr::Types& types) {
  double largest = 0;
  for (const DeviceTypeId type : types.types) largest = std::max(largest, piper_input_of(input, devices, type).memory);
  throw Infeasible("memory",
                   fmt::format("no stages on {} with {}{} each hold the model and its micro-batches",
                               pluralize(std::ssize(devices), "device"), types.mixed() ? "up to " : "",
                               room_text(input, Bytes{largest})),
                   "more devices or memory, smaller micro-batches, or `recompute: auto`");
}

/// Devices of a stage: of each type those that come next.
std::vector<DeviceId> next_devices(const msr::PiperStage& stage, const std::vector<DeviceId>& devices,
                                   const msr::Types& types, std::vector<char>& taken) {
  std::vector<int> needed = stage.of_type.empty() ? std::vector<int>{stage.data} : stage.of_type;
  std::vector<DeviceId> chosen;
  for (std::size_t d = 0; d < devices.size(); ++d) {
    int& left = needed[types.type_of[d]];
    if (taken[d] || left == 0) continue;
    taken[d] = 1, --left;
    chosen.push_back(devices[d]);
  }
  return chosen;
}

std::shared_ptr<const PlannerOptions> read_piper_options(const config::Value& checked, const Cluster&) {
  auto read = std::make_shared<msr::CutOptions>();
  read->cuts = msr::read_cuts(checked);
  return read;
}

Planned plan_piper(const PlannerInput& input) {
  const std::vector<DeviceId> devices = msr::devices_of(input);
  const msr::Types types = msr::types_of(input.cluster, devices);
  const msr::Cuts cuts = msr::cuts_of(input);
  const std::vector<Recomputation> kinds = recomputations(input.options, input.model);
  const auto pipeline = search(input, devices, types, cuts);
  if (!pipeline) refuse(input, devices, types);
  Planned result;
  std::vector<char> taken(devices.size(), 0);
  for (const msr::PiperStage& one : pipeline->stages) {
    Stage stage;
    stage.name = fmt::format("s{}", result.plan.stage_count());
    stage.micro_batch_size = input.options.micro_batch_size;
    stage.shape.recomputation = kinds[one.variants.front()];
    for (const int layer : cuts.layers_between(one.from, one.to)) stage.shape.layers.push_back(LayerId{layer});
    stage.place_on(next_devices(one, devices, types, taken));
    result.memory = std::max(result.memory, Bytes{one.memory});
    result.plan.stages.push_back(std::move(stage));
  }
  finish_plan(result.plan, input, false);
  result.predicted = result.lower_bound = {pipeline->seconds};
  result.bound_reason = "the search was exhaustive";
  if (!pipeline->exhaustive) set_heuristic(result, input, msr::kLineOfDevices);
  msr::note_idle_devices(result, input);
  result.states = pipeline->states;
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
};

}  // namespace stagecraft::planners
