#include "sim/plan/graph/planning.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "sim/core/diagnostic.hpp"
#include "sim/plan/msr/planning.hpp"

namespace stagecraft::graph {
namespace {

std::size_t at(int i) { return static_cast<std::size_t>(i); }

std::set<int> types_of(const PlannerInput& input, const std::vector<DeviceId>& devices) {
  std::set<int> types;
  for (const DeviceId device : devices) types.insert(input.cluster.devices[static_cast<std::size_t>(device)].type);
  return types;
}

std::vector<DeviceId> devices_of(const PlannerInput& input) {
  const std::vector<DeviceId> devices = available_devices(input);
  const std::set<DeviceId> different(devices.begin(), devices.end());
  if (!devices.empty() && different.size() == devices.size()) return devices;
  const Where where = input.options.has("devices") ? input.options.at("devices").where : Where{};
  throw InputError({{where, "plan.devices", devices.empty() ? "there is no device to use" : "a device is named twice",
                     "name each device once, or leave plan.devices out", "devices"}});
}

/// A layer on the slowest of these types. What it shares with other layers counts as its own: it reads all of it.
Sums amounts_of(const PlannerInput& input, int layer, const std::set<int>& types, const std::vector<int>& replicas) {
  const Layer& known = input.model.layers[at(layer)];
  const Precision& precision = input.model.precision;
  const int size = config::as_int(input.options.at("micro_batch_size"));
  Sums sums;
  for (std::size_t c = 0; c < replicas.size(); ++c) {
    const double samples = (size + replicas[c] - 1) / replicas[c];
    for (const int type : types) {
      const LayerCost cost = input.costs.at(LayerId{layer}, type, samples);
      sums.seconds[c] = std::max(sums.seconds[c], (cost.forward + cost.backward()).value);
    }
    sums.stash[c] = known.stash.value * samples;
  }
  double parameters = known.parameters;
  if (!known.tie.empty())
    for (const Layer& other : input.model.layers)
      if (other.tie == known.tie) parameters = std::max(parameters, other.parameters);
  for (const int type : types) sums.update = std::max(sums.update, input.costs.update(parameters, type).value);
  sums.kept = parameters * (precision.weight + precision.gradient + precision.optimizer);
  sums.gradients = parameters * precision.gradient;
  return sums;
}

/// The slowest link between neighbours in whole groups of these devices.
double slowest_in_groups(const PlannerInput& input, std::vector<DeviceId> devices, int group) {
  devices.resize(devices.size() / at(group) * at(group));
  return msr::ring_bandwidth(input.cluster, devices, at(group));
}

/// Where the devices of each part begin. Those with more replicas come first: powers of two then start at multiples of
/// themselves, so replicas stay within the groups whose links were looked at.
std::vector<std::size_t> first_devices(const Problem& p, const std::vector<Part>& parts) {
  std::vector<std::size_t> order(parts.size()), first(parts.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return parts[a].choice > parts[b].choice; });
  std::size_t next = 0;
  for (const std::size_t s : order) {
    first[s] = next;
    next += at(p.replicas[at(parts[s].choice)]);
  }
  return first;
}

}  // namespace

std::vector<config::Field> common_fields() {
  return {
      msr::micro_batch_field(),
      config::list("devices", config::text("device"))
          .optional()
          .doc("Device names in the order of the stages, branch by branch, those with more replicas first; left out: "
               "all of the cluster. Devices of several types all count as the slowest of them, with the least memory."),
      config::quantity("memory", config::Dimension::Size)
          .optional()
          .doc("Of a device; left out: what its type has, or no limit where that is not known."),
      config::quantity("bandwidth", config::Dimension::Bandwidth)
          .optional()
          .doc("Between stages and among replicas; left out: the slowest link that neighbours cross.")};
}

Question question_of(const PlannerInput& input) {
  Question question{{}, devices_of(input), false};
  Problem& p = question.problem;
  const std::set<int> types = types_of(input, question.devices);
  question.mixed = types.size() > 1;
  const int size = config::as_int(input.options.at("micro_batch_size"));
  p.layers = msr::layer_graph(input.model);
  p.devices = static_cast<int>(question.devices.size());
  p.micro_batches = input.micro_batches;
  for (int r = 1; r <= std::min(p.devices, size) && p.choices() < kMostChoices; r *= 2) p.replicas.push_back(r);
  for (int layer = 0; layer < p.size(); ++layer) {
    p.amounts.push_back(amounts_of(input, layer, types, p.replicas));
    p.output.push_back(input.model.layers[at(layer)].output.value * size);
  }
  for (const int type : types) {
    p.operations = std::max(p.operations, 2 * input.costs.operation(type).value);  // One forward, one backward.
    if (const Bytes known = input.cluster.types[at(type)].memory; known.value > 0)
      p.memory = std::min(p.memory, known.value);
  }
  if (const config::Value* memory = input.options.find("memory")) p.memory = config::as_bytes(*memory).value;
  const config::Value* rate = input.options.find("bandwidth");
  const auto slowest = [&](int group) {
    return rate ? config::as_bandwidth(*rate).value : slowest_in_groups(input, question.devices, group);
  };
  p.bandwidth = slowest(p.devices);
  for (int c = 0; c < p.choices(); ++c) p.among_replicas[at(c)] = slowest(p.replicas[at(c)]);
  return question;
}

std::string reason_for(const Question& question, const std::string& reason) {
  return question.mixed ? reason + ", with every device as slow as the slowest" : reason;
}

std::vector<Part> branch_by_branch(const Problem& p, const std::vector<Part>& parts) {
  const Digraph graph = stage_graph(p, parts, false);
  std::vector<int> waiting, ready;
  for (int s = graph.size() - 1; s >= 0; --s)
    if (graph.previous[at(s)].empty()) ready.push_back(s);
  for (const auto& previous : graph.previous) waiting.push_back(static_cast<int>(previous.size()));
  std::vector<Part> ordered;
  while (!ready.empty()) {
    const int s = ready.back();
    ready.pop_back();
    ordered.push_back(parts[at(s)]);
    for (const int next : graph.next[at(s)])
      if (--waiting[at(next)] == 0) ready.push_back(next);
  }
  return ordered;
}

Planned planned(const PlannerInput& input, const Question& question, const std::vector<Part>& parts, bool sequential) {
  Planned result;
  const std::vector<std::size_t> first = first_devices(question.problem, parts);
  for (std::size_t s = 0; s < parts.size(); ++s) {
    Stage stage;
    stage.name = fmt::format("s{}", s);
    stage.micro_batch_size = config::as_int(input.options.at("micro_batch_size"));
    for (const int layer : parts[s].layers) stage.layers.push_back(LayerId{layer});
    const auto begin = question.devices.begin() + static_cast<std::ptrdiff_t>(first[s]);
    stage.devices.assign(begin, begin + question.problem.replicas[at(parts[s].choice)]);
    result.plan.stages.push_back(std::move(stage));
  }
  finish_plan(result.plan, input, sequential);
  result.memory = {figures_of(question.problem, parts, sequential).memory};
  return result;
}

void refuse(const PlannerInput& input, const Question& question, const std::string& kind, const std::string& help) {
  const Where where = input.options.has("memory") ? input.options.at("memory").where : Where{};
  throw Infeasible({where, "plan.memory",
                    fmt::format("no {} on {} devices with {} each hold the model and its micro-batches", kind,
                                question.problem.devices, to_text(Bytes{question.problem.memory})),
                    help, "memory"});
}

}  // namespace stagecraft::graph
