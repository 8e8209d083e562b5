// The planner `spp` puts devices in a line that crosses slow links as seldom as possible, divides layers and replicas
// over it by dynamic programming over the slowest stage or channel, and takes the number of stages with the shortest
// iteration when its blocks are taken in list order (the schedule spp-pe).

#include <fmt/core.h>

#include <bit>
#include <map>

#include "sim/cluster/link_table.hpp"
#include "sim/core/numbers.hpp"
#include "sim/core/stop_point.hpp"
#include "sim/core/text.hpp"
#include "sim/plan/overlap.hpp"
#include "sim/planners/chain_partition/planning.hpp"
#include "sim/planners/shared/planner.hpp"
#include "sim/planners/spp/partition.hpp"

namespace stagecraft::planners {
namespace {

const config::MapSpec kSppFields{
    "Optimal synchronous pipelining over the links that are there.",
    {config::integer("micro_batch_size", 1, 1e6).fallback("1").doc("Samples of one micro-batch."),
     config::integer("stages", 1, 1e6)
         .optional()
         .doc("Number of stages. Default: the number with the shortest iteration."),
     config::list("devices", config::text("device"))
         .optional()
         .doc("Names of the devices to use. Default: all devices of the cluster.")}};

constexpr double kMostCells = 2e9;
constexpr double kSame = 1 + 1e-9;
constexpr std::size_t kMostEnds = 2048;  // Four million links take about two seconds.

/// Bytes of one sample that enter layer l from layers before it, whichever they are.
std::vector<double> cuts_of(const ModelGraph& model) {
  std::vector<double> cut(model.layers.size(), 0);
  for (const LayerId from : model.layers.ids()) {
    LayerId last = from;
    for (const LayerId to : model.layers.ids())
      for (const LayerId input : model.layers[to].inputs)
        if (input == from) last = to;
    for (int l = from.value + 1; l <= last.value; ++l) cut[l] += model.layers[from].output.value;
  }
  return cut;
}

spp::Bandwidths bandwidths_of(const LinkTable& links, const std::vector<DeviceId>& devices, const CommonUnit& unit) {
  spp::Bandwidths bandwidths(devices.size(), std::vector<double>(devices.size(), 0));
  for (std::size_t a = 0; a < devices.size(); ++a, stop_point())
    for (std::size_t b = 0; b < devices.size(); ++b)
      if (a != b) {
        const double there = links.bandwidth(devices[a], devices[b]).value;
        bandwidths[a][b] = a < b ? there : std::min(there, bandwidths[b][a]);
        bandwidths[b][a] = bandwidths[a][b];
      }
  for (std::vector<double>& row : bandwidths)
    for (double& rate : row) rate = unit.rate(rate);
  return bandwidths;
}

/// How many neighbors one device stands for, where links between all devices would be too many to look at.
int group_for(std::size_t devices) {
  int group = 1;
  while (devices / group > kMostEnds) group *= 2;
  return group;
}

std::vector<DeviceId> first_of_each(const std::vector<DeviceId>& devices, int group) {
  std::vector<DeviceId> firsts;
  for (std::size_t d = 0; d < devices.size(); d += group) firsts.push_back(devices[d]);
  return firsts;
}

/// Devices in a line that crosses slow links seldom, and the links between groups of neighbors in it.
struct DeviceLine {
  std::vector<DeviceId> devices;
  int group = 1;
  spp::Bandwidths bandwidth = {};   ///< Between the first devices of groups.
  std::vector<double> inside = {};  ///< [group]: its slowest link; empty for groups of one device.
};

/// `longest`: no division reaches farther devices, which makes a difference where links are too many alone.
DeviceLine line_of(const Cluster& cluster, const std::vector<DeviceId>& devices, const CommonUnit& unit,
                   std::size_t longest) {
  const LinkTable links(cluster);
  DeviceLine line{.devices = {}, .group = group_for(devices.size())};
  const spp::Bandwidths bandwidth = bandwidths_of(links, first_of_each(devices, line.group), unit);
  const std::vector<int> order = spp::order_devices(bandwidth);
  for (const int i : order)
    for (int d = i * line.group; d < std::min((i + 1) * line.group, static_cast<int>(devices.size())); ++d)
      line.devices.push_back(devices[d]);
  const bool is_whole = line.group == 1 || (devices.size() % line.group == 0 && devices.size() <= longest);
  if (is_whole) {
    for (const int a : order) {
      auto& row = line.bandwidth.emplace_back();
      for (const int b : order) row.push_back(bandwidth[a][b]);
    }
  } else {
    line.devices.resize(std::min(devices.size(), longest));
    line.group = group_for(line.devices.size());
    line.devices.resize(line.devices.size() / line.group * line.group);
    line.bandwidth = bandwidths_of(links, first_of_each(line.devices, line.group), unit);
  }
  for (std::size_t d = 0; line.group > 1 && d < line.devices.size(); d += line.group) {
    double slowest = kInfinity;
    for (const std::vector<double>& row :
         bandwidths_of(links, {line.devices.begin() + d, line.devices.begin() + d + line.group}, unit))
      for (const double rate : row)
        if (rate > 0) slowest = std::min(slowest, rate);
    line.inside.push_back(slowest);
  }
  return line;
}

/// Steps of the search, most of which it skips.
double steps_of(double layers, double units, double choices) {
  return std::min(layers, units) * layers * layers * units * choices * choices;
}

/// The fewest neighboring devices that stages have to take together, so that the search takes seconds.
int unit_for(int devices, int layers, int most_replicas, int stages) {
  int unit = 1;
  for (; 2 * unit <= std::min(devices / stages, most_replicas); unit *= 2) {
    double choices = 0;
    for (int r = unit; r <= std::min(devices, most_replicas); r *= 2) ++choices;
    if (steps_of(layers, devices / unit, choices) <= kMostCells) break;
  }
  return unit;
}

CommonUnit unit_of_passes(const PlannerInput& input, const std::vector<DeviceId>& devices, const Load& load) {
  std::vector<double> times;
  for (const DeviceTypeId type : chain_partition::types_of(input.cluster, devices).types)
    for (const LayerId l : input.model.layers.ids()) {
      const LayerCost cost = input.costs.at(l, type, load);
      times.insert(times.end(), {cost.forward.value, cost.backward().value});
    }
  return CommonUnit(times);
}

/// The problem with all times in `unit`, in which the bandwidths are.
spp::LineProblem problem_of(const PlannerInput& input, const CommonUnit& unit, DeviceLine line, int size) {
  spp::LineProblem p;
  const auto devices = static_cast<int>(line.devices.size());
  p.micro_batches = input.micro_batches;
  p.trains = input.trains;
  p.group = line.group;
  p.unit = std::max(line.group, unit_for(devices, static_cast<int>(input.model.layers.size()), size,
                                         input.options.stages.value_or(1)));
  for (int r = p.unit; r <= std::min(devices, size); r *= 2) p.replicas.push_back(r);
  const ModelGraph& model = input.model;
  std::map<std::pair<DeviceTypeId, int>, std::pair<std::vector<double>, std::vector<double>>>
      sums;  // Key: type and number of replicas.
  for (const DeviceId d : line.devices) {
    auto &forward = p.forward.emplace_back(), &backward = p.backward.emplace_back();
    const DeviceTypeId type = input.cluster.devices[d].type;
    for (const int r : p.replicas) {
      auto& [f, b] = sums[{type, r}];
      if (f.empty()) {
        f = b = {0};
        const Load load = input.costs.load_of((size + r - 1) / r);
        for (const LayerId l : model.layers.ids()) {
          const LayerCost cost = input.costs.at(l, type, load);
          f.push_back(f.back() + unit(cost.forward.value));
          b.push_back(b.back() + unit(cost.backward().value));
        }
      }
      forward.push_back(f), backward.push_back(b);
    }
  }
  p.cut = cuts_of(model);
  for (double& bytes : p.cut) bytes *= size;
  p.gradients = {0};
  for (const Layer& layer : model.layers)
    p.gradients.push_back(p.gradients.back() + (p.trains ? layer.parameters * model.precision.gradient : 0));
  p.bandwidth = std::move(line.bandwidth);
  p.inside = std::move(line.inside);
  return p;
}

void add_stages(const std::vector<spp::LineStage>& parts, const std::vector<DeviceId>& line, int micro_batch_size,
                Plan& plan) {
  for (std::size_t s = 0; s < parts.size(); ++s) {
    const spp::LineStage& part = parts[s];
    Stage stage;
    stage.name = fmt::format("s{}", s);
    for (int l = part.first_layer; l < part.last_layer; ++l) stage.shape.layers.push_back(LayerId{l});
    stage.place_on({line.begin() + part.first_device, line.begin() + part.first_device + part.replicas});
    stage.micro_batch_size = micro_batch_size;
    plan.stages.push_back(std::move(stage));
  }
}

Planned plan_spp(const PlannerInput& input) {
  const int size = input.options.micro_batch_size;
  const std::vector<DeviceId> devices = available_devices(input);
  if (devices.empty()) throw InputError("there is no device to use", "leave plan.devices out");
  const CommonUnit unit = unit_of_passes(input, devices, input.costs.load_of(size));
  const std::size_t most_parts = std::min(input.model.layers.size(), kMostEnds);
  DeviceLine line = line_of(input.cluster, devices, unit, most_parts * std::bit_floor(static_cast<unsigned>(size)));
  const std::vector<DeviceId> in_line = line.devices;
  const spp::LineProblem problem = problem_of(input, unit, std::move(line), size);
  const double cells = steps_of(problem.layers(), problem.units(), static_cast<double>(problem.replicas.size()));
  if (cells > kMostCells)
    throw Infeasible(
        "size",
        fmt::format("the search over {} and {} has {:.2g} steps; {:.2g} are the most",
                    pluralize(problem.layers(), "layer"), pluralize(problem.devices(), "device"), cells, kMostCells),
        "fewer devices, or a model cut less finely");

  Planned planned;
  const std::vector<spp::Division> divisions = spp::divide(problem, planned.states);
  const std::optional<int> asked = input.options.stages;
  const spp::Division* best = nullptr;
  double shortest = kInfinity, bottleneck = shortest;
  for (const spp::Division& d : divisions) {
    if (d.parts.empty() || (asked && *asked != static_cast<int>(d.parts.size()))) continue;
    bottleneck = std::min(bottleneck, d.bottleneck);
    // Iterations of forwards alone follow each other without a drain, so the slowest part or channel is their period.
    if (problem.micro_batches * d.bottleneck > shortest * kSame) continue;  // No order is shorter.
    const double time = problem.trains ? spp::play(problem, d.parts) : problem.micro_batches * d.bottleneck;
    if (time < shortest) shortest = time, best = &d;
  }
  if (!best)
    throw Infeasible({input.options.where("stages"), "plan.stages",
                      fmt::format("{} on {} cannot make {}", pluralize(problem.layers(), "layer"),
                                  pluralize(problem.devices(), "device"), pluralize(*asked, "stage")),
                      "leave plan.stages out", "stages"});
  add_stages(best->parts, in_line, size, planned.plan);
  finish_plan(planned.plan, input, false);
  planned.predicted = Seconds{unit.seconds(shortest / input.micro_batches)};
  planned.model_limit = Seconds{unit.seconds(bottleneck)};
  planned.limit_reason = "the slowest stage or channel of the best division along this line of devices";
  if (problem.unit > 1)
    set_heuristic(
        planned, input,
        fmt::format("stages take neighbors in groups of {}", problem.unit) +
            (problem.group > 1 ? fmt::format(", and one link stands for the links of {} neighbors", problem.group)
                               : ""));
  chain_partition::note_idle_devices(planned, input);
  return planned;
}

}  // namespace

extern const PlannerDef spp{
    .name = "spp",
    .summary =
        "SPP's search: orders devices by minimum cuts, divides layers by the slowest stage, and chooses the number of "
        "stages by the end of the iteration.",
    .source = "Luo et al., Efficient Pipeline Planning for Expedited Distributed DNN Training, INFOCOM 2022",
    .fields = &kSppFields,
    .plan = plan_spp,
};

}  // namespace stagecraft::planners
