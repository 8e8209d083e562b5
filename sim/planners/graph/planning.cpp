// Turns a scenario into the problem of planners of graphs, and their stages into a plan on devices.

#include "sim/planners/graph/planning.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "sim/core/diagnostic.hpp"
#include "sim/core/text.hpp"
#include "sim/cost/stage_cost.hpp"
#include "sim/planners/chain_partition/planning.hpp"

namespace stagecraft::graph {
namespace {

constexpr int kMostTypes = 4;
constexpr double kMostMixes = 1e5;
/// Partial partitions, times choices of replicas for the next stage. GraphPipe's partitioner takes some seconds.
constexpr double kMostSubproblems = 2e7;

/// Types of the cluster that replicas of a choice may be of.
using TypeChoice = std::vector<DeviceTypeId>;

/// Whether any layer has a backward. Models of inference have none.
bool has_gradients(const PlannerInput& input, const chain_partition::Types& types) {
  const auto ids = input.model.layers.ids();
  return std::any_of(ids.begin(), ids.end(), [&](LayerId layer) {
    return input.costs.at(layer, types.types.front(), input.costs.load_of(input.options.micro_batch_size))
               .backward()
               .value > 0;
  });
}

/// A layer on the slowest of the types of each choice. What it shares with other layers counts as its own: it reads all
/// of it.
Sums amounts_of(const PlannerInput& input, LayerId layer, const std::vector<int>& replicas,
                const std::vector<TypeChoice>& types, bool trains) {
  const Layer& model_layer = input.model.layers[layer];
  const int size = input.options.micro_batch_size;
  Sums sums;
  double parameters = model_layer.parameters;
  if (!model_layer.tie.empty())
    for (const Layer& other : input.model.layers)
      if (other.tie == model_layer.tie) parameters = std::max(parameters, other.parameters);
  for (std::size_t c = 0; c < replicas.size(); ++c) {
    const Load load = input.costs.load_of((size + replicas[c] - 1) / replicas[c]);
    for (const DeviceTypeId type : types[c]) {
      const LayerCost cost = input.costs.at(layer, type, load);
      sums.seconds[c] = std::max(sums.seconds[c], (cost.forward + cost.backward()).value);
    }
    const MemoryUnits memory = layer_memory(input.model, layer, Recomputation::None, load, {}, &input.costs.rules());
    sums.stash[c] = kept_memory(input, memory).stash.value;
  }
  const auto update = [&](std::size_t c) {
    double seconds = 0;
    if (!trains) return seconds;
    for (const DeviceTypeId type : types[c]) seconds = std::max(seconds, input.costs.update(parameters, type).value);
    return seconds;
  };
  const bool alike =
      std::all_of(types.begin(), types.end(), [&](const TypeChoice& one) { return one == types.front(); });
  if (alike) sums.update = update(0);
  for (std::size_t c = 0; c < replicas.size() && !alike; ++c) sums.seconds[c] += update(c) / input.micro_batches;
  const MemoryUnits memory = parameter_memory(parameters, input.model.precision);
  sums.weights = memory.weights.value;
  if (trains) sums.gradients = memory.gradients.value, sums.optimizer = memory.optimizer.value;
  return sums;
}

/// Rate of the slowest link between neighbors in whole groups of these devices.
double slowest_in_groups(const PlannerInput& input, std::vector<DeviceId> devices, int group) {
  devices.resize(devices.size() / group * group);
  return chain_partition::ring_bandwidth(input.cluster, devices, group);
}

/// The devices of each part, which takes the next free ones of each type. Parts with more replicas come first: powers
/// of two then start at multiples of themselves, so replicas stay within the groups whose links were considered. Parts
/// on several types come last.
std::vector<std::vector<DeviceId>> devices_for(const GraphPlanInput& plan_input, const std::vector<GraphStage>& parts) {
  const GraphProblem& p = plan_input.problem;
  const auto several = [](const GraphStage& part) {
    return std::count_if(part.of_type.begin(), part.of_type.end(), [](int n) { return n > 0; }) > 1;
  };
  std::vector<std::size_t> order(parts.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    if (several(parts[a]) != several(parts[b])) return several(parts[b]);
    return p.replicas[parts[a].choice] > p.replicas[parts[b].choice];
  });
  std::vector<char> taken(plan_input.devices.size(), 0);
  std::vector<std::vector<DeviceId>> groups(parts.size());
  for (const std::size_t s : order) {
    std::vector<int> needed = parts[s].of_type;
    if (needed.empty()) needed = {p.replicas[parts[s].choice]};
    for (std::size_t d = 0; d < taken.size(); ++d) {
      int& left = needed[p.of_type.empty() ? 0 : plan_input.type_of[d]];
      if (taken[d] || left == 0) continue;
      taken[d] = 1, --left;
      groups[s].push_back(plan_input.devices[d]);
    }
  }
  return groups;
}

/// The fewest devices of a type that stages have to take together, so that the search stays short: its subproblems have
/// a number of layers, a mix of free units, and a number of stages after them.
int unit_for(std::vector<int> counts, int layers, int most_replicas) {
  int unit = 1;
  for (;; unit *= 2) {
    double mixes = 1, units = 0, choices = 0;
    for (const int count : counts) {
      mixes *= count / unit + 1, units += count / unit;
      for (int r = unit; r <= std::min(count, most_replicas); r *= 2) ++choices;
    }
    if (mixes * layers * std::min<double>(layers, units) * choices <= kMostSubproblems) break;
    if (2 * unit > std::min(most_replicas, *std::min_element(counts.begin(), counts.end()))) break;
  }
  return unit;
}

/// Sets the choices of replicas: powers of two, and on several types one choice for each type and one for any type.
/// Units of several devices have one type.
std::vector<TypeChoice> set_choices(const chain_partition::Types& types, int most_replicas, GraphProblem& p) {
  const std::vector<int> counts = types.counts();
  const bool few_types = types.mixed() && counts.size() <= kMostTypes;
  p.unit = unit_for(few_types ? counts : std::vector<int>{p.devices}, p.layers.size(), most_replicas);
  std::vector<int> units = counts;
  for (int& count : units) count /= p.unit;
  const bool apart = few_types && DeviceMixes::count(units) <= kMostMixes;
  const int max_replicas = std::min(p.devices, most_replicas), each = apart ? static_cast<int>(counts.size()) + 1 : 1;
  std::vector<TypeChoice> any;
  for (int r = p.unit; r <= max_replicas && p.choices() + each <= kMostChoices; r *= 2) {
    for (std::size_t t = 0; t < counts.size() && apart; ++t)
      if (r <= counts[t])
        p.replicas.push_back(r), p.type.push_back(static_cast<int>(t)), any.push_back({types.types[t]});
    if (apart && (r == 1 || p.unit > 1)) continue;
    p.replicas.push_back(r), any.push_back(types.types);
    if (apart) p.type.push_back(kAnyType);
  }
  if (apart) p.of_type = counts;
  return any;
}

/// The slowest link that replicas of a choice cross.
double among(const PlannerInput& input, const GraphPlanInput& plan_input, int choice) {
  const GraphProblem& p = plan_input.problem;
  if (p.of_type.empty()) return slowest_in_groups(input, plan_input.devices, p.replicas[choice]);
  if (p.type[choice] == kAnyType) return chain_partition::slowest_between(input.cluster, plan_input.devices);
  std::vector<DeviceId> same_type;
  for (std::size_t d = 0; d < plan_input.devices.size(); ++d)
    if (plan_input.type_of[d] == p.type[choice]) same_type.push_back(plan_input.devices[d]);
  return slowest_in_groups(input, same_type, p.replicas[choice]);
}

}  // namespace

std::vector<config::Field> common_fields() {
  return {chain_partition::micro_batch_field(),
          config::list("devices", config::text("device"))
              .optional()
              .doc("Device names in the order of the stages, branch by branch, stages with more replicas first. "
                   "Default: all devices of the cluster. With several types, replicas of a stage are of one type, or "
                   "count as the slowest of all."),
          config::quantity("memory", config::Dimension::Size)
              .optional()
              .doc("Memory limit of a device. Default: the memory of its type, or no limit if that is unknown."),
          config::quantity("bandwidth", config::Dimension::Bandwidth)
              .optional()
              .doc("Bandwidth between stages and among replicas. Default: the slowest link between neighbors."),
          config::boolean("straight").fallback("false").doc("Whether every stage has one device.")};
}

namespace {

/// The common unit of the layers, in which all times and bandwidths of the problem are written.
CommonUnit put_in_common_unit(GraphProblem& p) {
  std::vector<double> times;
  for (const Sums& layer : p.amounts)
    times.insert(times.end(), layer.seconds.begin(), layer.seconds.begin() + p.choices());
  const CommonUnit unit(times);
  for (Sums& layer : p.amounts) {
    for (double& time : layer.seconds) time = unit(time);
    layer.update = unit(layer.update);
  }
  p.operations = unit(p.operations);
  for (double& time : p.own_operations) time = unit(time);
  p.bandwidth = unit.rate(p.bandwidth);
  for (double& rate : p.among_replicas) rate = unit.rate(rate);
  return unit;
}

}  // namespace

GraphPlanInput plan_input_of(const PlannerInput& input) {
  GraphPlanInput plan_input;
  plan_input.devices = chain_partition::devices_of(input);
  const chain_partition::Types types = chain_partition::types_of(input.cluster, plan_input.devices);
  plan_input.type_of = types.type_of;
  GraphProblem& p = plan_input.problem;
  const int size = input.options.micro_batch_size;
  p.layers = chain_partition::layer_graph(input.model);
  p.devices = static_cast<int>(plan_input.devices.size());
  p.micro_batches = input.micro_batches;
  p.trains = has_gradients(input, types);
  const std::vector<TypeChoice> any = set_choices(types, input.options.straight ? 1 : size, p);
  plan_input.slowest = types.mixed() && p.of_type.empty();
  for (const LayerId layer : input.model.layers.ids()) {
    p.amounts.push_back(amounts_of(input, layer, p.replicas, any, p.trains));
    p.output.push_back(input.model.layers[layer].output.value * size);
  }
  const std::optional<Bytes> memory = input.options.memory;
  const std::optional<Bandwidth> rate = input.options.bandwidth;
  for (int c = 0; c < p.choices(); ++c) {
    for (const DeviceTypeId type : any[c]) {
      const int operations = input.trains ? 2 : 1;  // F and B, or F.
      p.own_operations[c] = std::max(p.own_operations[c], operations * input.costs.operation(type).value);
      const Bytes usable = input.cluster.types[type].usable_memory();
      if (!memory && usable.value > 0) p.memory_by_choice[c] = std::min(p.memory_by_choice[c], usable.value);
    }
    p.among_replicas[c] = rate ? rate->value : among(input, plan_input, c);
  }
  p.memory = memory ? memory->value : 0;
  for (int c = 0; c < p.choices() && !memory; ++c) p.memory = std::max(p.memory, p.memory_by_choice[c]);
  p.bandwidth = rate                ? rate->value
                : p.of_type.empty() ? slowest_in_groups(input, plan_input.devices, p.devices)
                                    : chain_partition::slowest_between(input.cluster, plan_input.devices);
  plan_input.unit = put_in_common_unit(p);
  return plan_input;
}

std::string units_text(const GraphProblem& p) {
  return fmt::format("stages take devices of one type in groups of {}", p.unit);
}

std::string reason_for(const GraphPlanInput& plan_input, const std::string& reason) {
  if (plan_input.slowest) return reason + ", with every device as slow as the slowest";
  if (plan_input.problem.of_type.empty()) return reason;
  return reason + ", with replicas of one type, or as slow as the slowest";
}

std::vector<GraphStage> branch_by_branch(const GraphProblem& p, const std::vector<GraphStage>& parts) {
  const Digraph graph = stage_graph(p, parts, false);
  std::vector<int> waiting, ready;
  for (int s = graph.size() - 1; s >= 0; --s)
    if (graph.previous[s].empty()) ready.push_back(s);
  for (const auto& previous : graph.previous) waiting.push_back(static_cast<int>(previous.size()));
  std::vector<GraphStage> ordered;
  while (!ready.empty()) {
    const int s = ready.back();
    ready.pop_back();
    ordered.push_back(parts[s]);
    for (const int next : graph.next[s])
      if (--waiting[next] == 0) ready.push_back(next);
  }
  return ordered;
}

Planned planned(const PlannerInput& input, const GraphPlanInput& plan_input, const std::vector<GraphStage>& parts,
                bool sequential) {
  Planned result;
  const std::vector<std::vector<DeviceId>> devices = devices_for(plan_input, parts);
  for (std::size_t s = 0; s < parts.size(); ++s) {
    Stage stage;
    stage.name = fmt::format("s{}", s);
    stage.micro_batch_size = input.options.micro_batch_size;
    for (const int layer : parts[s].layers) stage.shape.layers.emplace_back(layer);
    stage.place_on(devices[s]);
    result.plan.stages.push_back(std::move(stage));
  }
  finish_plan(result.plan, input, sequential);
  result.memory = {figures_of(plan_input.problem, parts, sequential).memory};
  return result;
}

void refuse(const PlannerInput& input, const GraphPlanInput& plan_input, const std::string& kind,
            const std::string& help) {
  const Where where = input.options.memory ? input.options.where("memory") : Where{};
  throw Infeasible(
      {where, "plan.memory",
       fmt::format("no {} on {} with {} each hold the model and its micro-batches", kind,
                   pluralize(plan_input.problem.devices, "device"), room_text(input, Bytes{plan_input.problem.memory})),
       help, "memory"});
}

}  // namespace stagecraft::graph
