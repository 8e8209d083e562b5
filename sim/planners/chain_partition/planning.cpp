// Between planners and the searches of this folder: shared fields, devices and bandwidths, the model with its costs as
// a problem, and PipeDream's pipeline as a plan. Planners of graphs and `spp` use parts of it.

#include "sim/planners/chain_partition/planning.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <set>

#include "sim/cluster/link_table.hpp"
#include "sim/core/diagnostic.hpp"
#include "sim/core/numbers.hpp"
#include "sim/core/text.hpp"
#include "sim/cost/stage_cost.hpp"

namespace stagecraft::chain_partition {
namespace {

constexpr int kMostCuts = 5000;

using Strings = std::vector<std::string>;

}  // namespace

config::Field micro_batch_field() {
  return config::integer("micro_batch_size", 1, 1e6)
      .fallback("1")
      .doc("Samples of one micro-batch. If replicas divide samples, a stage has at most this number of replicas.");
}

config::Field devices_field() {
  return config::list("devices", config::text("device"))
      .optional()
      .doc(
          "Device names in the order of the stages. The order counts only among devices of one type. Default: all "
          "devices of the cluster.");
}

config::Field cuts_field() {
  return config::choice("cuts", Strings{"all", "released", "listed"})
      .fallback("all")
      .doc(
          "Where stages may end. all: after any set of layers that contains their inputs. released: where PipeDream's "
          "code looks, with its sizes. listed: between layers in the order of the model.");
}

std::vector<DeviceId> devices_of(const PlannerInput& input) {
  const std::vector<DeviceId> devices = available_devices(input);
  const std::set<DeviceId> different(devices.begin(), devices.end());
  if (!devices.empty() && different.size() == devices.size()) return devices;
  const Where where = input.options.devices ? input.options.where("devices") : Where{};
  throw InputError({{where, "plan.devices", devices.empty() ? "there is no device to use" : "a device is named twice",
                     "name each device once, or leave plan.devices out", "devices"}});
}

Types types_of(const Cluster& cluster, const std::vector<DeviceId>& devices) {
  Types types;
  for (const DeviceId device : devices) {
    const DeviceTypeId type = cluster.devices[device].type;
    const auto it = std::find(types.types.begin(), types.types.end(), type);
    types.type_of.push_back(static_cast<int>(it - types.types.begin()));
    if (it == types.types.end()) types.types.push_back(type);
  }
  return types;
}

std::vector<int> Types::counts() const {
  std::vector<int> counts(types.size(), 0);
  for (const int type : type_of) ++counts[type];
  return counts;
}

std::vector<std::vector<double>> bandwidths_of(const Cluster& cluster, const std::vector<DeviceId>& devices) {
  const LinkTable links(cluster);
  std::vector<std::vector<double>> bandwidths(devices.size(), std::vector<double>(devices.size(), 0));
  for (std::size_t a = 0; a < devices.size(); ++a)
    for (std::size_t b = 0; b < devices.size(); ++b)
      if (a != b) bandwidths[a][b] = links.bandwidth(devices[a], devices[b]).value;
  return bandwidths;
}

double slowest_between(const Cluster& cluster, const std::vector<DeviceId>& devices) {
  const std::vector<std::vector<double>> bandwidths = bandwidths_of(cluster, devices);
  double slowest = kInfinity;
  for (std::size_t a = 0; a < bandwidths.size(); ++a)
    for (std::size_t b = 0; b < bandwidths.size(); ++b)
      if (a != b) slowest = std::min(slowest, bandwidths[a][b]);
  return slowest;
}

double ring_bandwidth(const Cluster& cluster, const std::vector<DeviceId>& devices, std::size_t group,
                      std::size_t step) {
  const LinkTable links(cluster);
  double slowest = kInfinity;
  for (std::size_t d = 0; d < devices.size(); ++d) {
    const std::size_t first = d / group * group, next_place = first + (d - first + step) % group;
    const DeviceId next = devices[next_place];
    if (next != devices[d]) slowest = std::min(slowest, links.bandwidth(devices[d], next).value);
  }
  return slowest;
}

double flat_bandwidth(const PlannerInput& input, const std::vector<DeviceId>& devices) {
  return types_of(input.cluster, devices).mixed() ? slowest_between(input.cluster, devices)
                                                  : ring_bandwidth(input.cluster, devices, devices.size());
}

int devices_of_node(const Cluster& cluster, const std::vector<DeviceId>& devices) {
  const std::vector<int> nodes = nodes_of(devices, cluster);  // Numbered in the order of the devices.
  const std::size_t each = std::count(nodes.begin(), nodes.end(), 0);
  bool is_even = devices.size() % each == 0;
  for (std::size_t d = 0; d < nodes.size(); ++d) is_even = is_even && nodes[d] == static_cast<int>(d / each);
  return static_cast<int>(is_even ? each : devices.size());
}

CutChoice read_cuts(const config::Value& checked) {
  const std::string& word = checked.at("cuts").text;
  return word == "listed" ? CutChoice::Listed : word == "released" ? CutChoice::Released : CutChoice::All;
}

Cuts cuts_of(const PlannerInput& input, CutChoice choice) {
  const Digraph graph = layer_graph(input.model);
  switch (choice) {
    case CutChoice::Listed:
      return listed_cuts(graph.size());
    case CutChoice::Released:
      return cuts_after_first(graph, kMostCuts);
    case CutChoice::All:
      break;
  }
  return all_cuts(graph, kMostCuts);
}

CommonUnit common_unit(const PlannerInput& input, const Types& types, int samples) {
  std::vector<double> times;
  for (const DeviceTypeId type : types.types)
    for (const LayerAmounts& layer : amounts_of(input.costs, type, input.costs.load_of(samples)))
      times.push_back(layer.seconds);
  return CommonUnit(times);
}

WorkInUnit workload_of(const PlannerInput& input, const Types& types) {
  const CutChoice choice = input.options.options<PipeDreamPlannerOptions>().cuts;
  const Crossing crossing = choice == CutChoice::Released ? Crossing::Frontier : Crossing::Read;
  const int size = input.options.micro_batch_size;
  const Digraph graph = layer_graph(input.model);
  const Cuts cuts = cuts_of(input, choice);
  WorkInUnit result{common_unit(input, types, size), {{}, types.type_of}};
  for (const DeviceTypeId type : types.types) {
    std::vector<LayerAmounts> amounts = amounts_of(input.costs, type, input.costs.load_of(size));
    for (LayerAmounts& layer : amounts) layer.seconds = result.unit(layer.seconds);
    result.mixed.by_type.push_back(sum_up(amounts, graph, cuts, crossing));
  }
  return result;
}

std::vector<config::Field> pipedream_fields() {
  return {
      micro_batch_field(),
      share_field(),
      devices_field(),
      cuts_field(),
      config::choice("formula", Strings{"released", "paper"})
          .fallback("released")
          .doc("Time of a stage with replicas. released: computation plus all-reduce, as in PipeDream's code. paper: "
               "the longer of the two."),
      config::real("transfers", 0, 1)
          .fallback("1")
          .doc("Share of the bytes between stages that is sent; less than 1 if they are compressed."),
      config::boolean("straight").fallback("false").doc("Whether every stage has one device."),
      config::boolean("fewer").fallback("false").doc("Whether the plan may leave devices unused."),
      config::quantity("memory", config::Dimension::Size)
          .optional()
          .doc("Most memory that a stage may use for stashes, counted as in PipeDream's code, which ignores the "
               "micro-batch that the stage works on. Default: no limit."),
  };
}

PlannerOptions read_pipedream(const config::Value& checked, const Cluster&) {
  auto read = std::make_shared<PipeDreamPlannerOptions>();
  read->cuts = read_cuts(checked);
  read->rules.formula = checked.at("formula").text == "paper" ? Formula::Paper : Formula::Released;
  read->rules.transfers = config::as_real(checked.at("transfers"));
  read->rules.straight = config::as_bool(checked.at("straight"));
  read->rules.fewer = config::as_bool(checked.at("fewer"));
  if (const config::Value* memory = checked.find("memory")) read->rules.memory = config::as_bytes(*memory).value;
  if (const config::Value* machines = checked.find("machines")) {
    read->machines.emplace();
    for (const config::Value& count : machines->items) read->machines->push_back(config::as_int(count));
  }
  if (const config::Value* rates = checked.find("bandwidth")) {
    read->bandwidth.emplace();
    for (const config::Value& rate : rates->items) read->bandwidth->push_back(config::as_bandwidth(rate));
  }
  return read;
}

PipeDreamOptions pipedream_rules(const PlannerInput& input) {
  PipeDreamOptions rules = input.options.options<PipeDreamPlannerOptions>().rules;
  rules.trains = input.trains;
  if (input.options.share == Share::Samples)
    rules.most_replicas = input.options.micro_batch_size;
  else
    rules.shared = input.micro_batches;
  return rules;
}

Planned planned(const PlannerInput& input, const WorkInUnit& work, const FoundPipeline& pipeline,
                const std::vector<DeviceId>& devices) {
  Planned result;
  const Cuts& cuts = work.mixed.by_type.front().cuts;
  const int size = input.options.micro_batch_size;
  int devices_after = 0;
  for (const FoundStage& stage : pipeline.stages) devices_after += static_cast<int>(stage.devices.size());
  for (const FoundStage& one : pipeline.stages) {
    Stage stage;
    stage.name = fmt::format("s{}", result.plan.stage_count());
    stage.share = input.options.share;
    stage.micro_batch_size = size;
    const auto replicas = static_cast<int>(one.devices.size());
    const int in_flight = (devices_after + replicas - 1) / replicas;
    devices_after -= replicas;
    MemoryUnits units;
    const Load load = input.costs.load_of(size);
    for (const int layer : cuts.layers_between(one.from, one.to)) {
      stage.shape.layers.push_back(LayerId{layer});
      units += kept_memory(
          input, layer_memory(input.model, LayerId{layer}, Recomputation::None, load, {}, &input.costs.rules()));
    }
    std::vector<DeviceId> placed;
    for (const int device : one.devices) placed.push_back(devices[device]);
    stage.place_on(std::move(placed));
    const int versions = input.trains ? in_flight : 1;
    result.memory = std::max(result.memory, stage_memory(units, in_flight, versions).total());
    result.plan.stages.push_back(std::move(stage));
  }
  finish_plan(result.plan, input, false);
  result.predicted = {work.unit.seconds(pipeline.seconds)};
  result.states = pipeline.states;
  return result;
}

void note_idle_devices(Planned& result, const PlannerInput& input) {
  std::set<DeviceId> used;
  for (const Stage& stage : result.plan.stages) used.insert(stage.leaders.begin(), stage.leaders.end());
  const auto idle = std::ssize(available_devices(input)) - std::ssize(used);
  if (idle > 0)
    result.limit_reason += fmt::format(
        "; {} idle: {}", pluralize(idle, "device"),
        result.heuristic.empty() ? "they make no such plan faster" : "this search found no faster plan that uses them");
}

void refuse(const PlannerInput& input, const Workload& work, std::size_t devices) {
  const bool limited = input.options.memory.has_value();
  const Where where = input.options.where(limited ? "memory" : "micro_batch_size");
  throw Infeasible({where, limited ? "plan.memory" : "plan.micro_batch_size",
                    fmt::format("no pipeline of {} uses all of {} within the limits",
                                pluralize(work.cuts.layers(), "layer"), pluralize(devices, "device")),
                    limited ? "more memory, or `fewer: true` to let devices stand idle"
                            : "larger micro-batches allow more replicas; or `fewer: true` lets devices stand idle",
                    limited ? "memory" : "devices"});
}

}  // namespace stagecraft::chain_partition
