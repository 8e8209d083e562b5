// `import pipeedge`: reads PipeEdge's three YAML files, plans with the planner `edgepipe`, and writes a model, a
// cluster, a scenario and a schedule.yml for PipeEdge.

#include "tools/stagecraft/foreign_files.hpp"

#include <fmt/core.h>

#include <map>
#include <set>
#include <utility>

#include "sim/config/value.hpp"
#include "sim/core/file.hpp"
#include "sim/core/quantity.hpp"
#include "sim/core/text.hpp"
#include "sim/planners/edgepipe/pipeedge_files.hpp"
#include "sim/planners/edgepipe/search.hpp"
#include "tools/stagecraft/command.hpp"

namespace stagecraft {
namespace {

using pipeedge::HostType;
using pipeedge::SchedulerInput;

std::string quoted(const std::string& name) {
  config::Value value = config::Value::scalar(name, {});
  value.quoted = true;
  return std::string(trim(config::to_yaml(value, false)));
}

std::string layer_name(int layer) { return fmt::format("layer{}", layer + 1); }

std::string model_yaml(const SchedulerInput& p) {
  std::string text = fmt::format(
      "# `parameters` stand for all memory that PipeEdge counts for a layer: its mem_MB, 4 bytes each.\n"
      "schema: model/1\ntitle: {}\nname: {}\nbuilder: measured\nlayers:\n",
      quoted(p.model + ", measured by PipeEdge"), quoted(p.model));
  for (int l = 0; l < p.layers(); ++l) {
    const std::size_t i = l;
    std::map<std::string, std::string> forward;
    for (const HostType& type : p.types) forward[type.name] = shortest(type.seconds[i] / p.batch);
    text += fmt::format("  - name: {}\n    forward: {{", layer_name(l));
    const char* separator = "";
    for (const auto& [type, seconds] : forward)
      text += fmt::format("{}{}: {} s", std::exchange(separator, ", "), quoted(type), seconds);
    text +=
        fmt::format("}}\n    parameters: {}\n    output: {} B\n", shortest(p.weights[i] / 4), shortest(p.outputs[i]));
  }
  return text;
}

/// "switch", or more of it where a host is called that.
std::string switch_name(const SchedulerInput& p) {
  std::set<std::string> hosts;
  for (const HostType& type : p.types) hosts.insert(type.hosts.begin(), type.hosts.end());
  std::string name = "switch";
  while (hosts.count(name) != 0) name += "-";
  return name;
}

std::string cluster_yaml(const SchedulerInput& p, bool medium) {
  std::string devices, types, links, host_list;
  std::set<std::string> written;
  const std::string hub = quoted(switch_name(p));
  for (const HostType& type : p.types) {
    if (written.insert(type.name).second)
      types += fmt::format("  {}: {{peak: 1 GFLOP/s, memory_bandwidth: 1 GB/s, memory: {} B}}\n", quoted(type.name),
                           shortest(type.memory));
    for (const std::string& host : type.hosts) {
      devices += fmt::format("  - {{name: {}, type: {}}}\n", quoted(host), quoted(type.name));
      host_list += (host_list.empty() ? "" : ", ") + quoted(host);
      if (!medium && type.bandwidth > 0)
        links += fmt::format("  - {{name: {}, between: [{}, {}], bandwidth: {} B/s}}\n", quoted(host + ".link"),
                             quoted(host), hub, shortest(type.bandwidth));
    }
  }
  if (medium)
    links = fmt::format("  - {{name: medium, among: [{}], bandwidth: {} B/s, duplex: half}}\n", host_list,
                        shortest(p.types.front().bandwidth));
  return fmt::format(
      "# No time here depends on peak and memory_bandwidth, which PipeEdge does not know.\nschema: cluster/1\ntitle: "
      "PipeEdge's hosts\ngenerator: explicit\ntypes:\n{}devices:\n{}{}{}",
      types, devices, medium ? "" : fmt::format("switches: [{}]\n", hub), links.empty() ? "" : "links:\n" + links);
}

std::string scenario_yaml(const SchedulerInput& p, const edgepipe::ChainProblem& problem, bool medium) {
  std::string data;
  for (const HostType& type : p.types)
    if (type.has_data) data = fmt::format("  data_device: {}\n", quoted(type.hosts.front()));
  return fmt::format(
      "schema: scenario/2\ntitle: {}\nmodel: model.yaml\ncluster: cluster.yaml\nplan:\n  planner: edgepipe\n"
      "  objective: {}\n  micro_batch_size: {}\n  buffers_in: {}\n  buffers_out: {}\n  input: {} B\n{}"
      "run:\n  schedule: inference\n  micro_batches: 16\nsoftware: none\n",
      quoted(p.model + " on PipeEdge's hosts"), medium ? "shared" : "bottleneck", p.batch, shortest(problem.buffers_in),
      shortest(problem.buffers_out), shortest(p.input), data);
}

/// Drops hosts without a link: in a cluster every device reaches every other, so such a host runs all layers or none.
SchedulerInput connected(SchedulerInput p, const edgepipe::Chain& plan) {
  const HostType first = p.types[plan.front().machines];
  std::erase_if(p.types, [](const HostType& type) { return type.bandwidth == 0; });
  if (first.bandwidth > 0) return p;
  p.types = {first};
  p.types.front().hosts.resize(1);
  return p;
}

void warn(const std::string& warning) { print_error("{}\n", warning); }

void warn_of_lost(const SchedulerInput& complete, const SchedulerInput& usable) {
  const auto hosts = [](const SchedulerInput& p) {
    std::size_t count = 0;
    for (const HostType& type : p.types) count += type.hosts.size();
    return count;
  };
  if (const auto lost = hosts(complete) - hosts(usable); lost > 0)
    warn(fmt::format("warning: {} host{} not in cluster.yaml, where all have a link or one is alone (bw_Mbps: 0)", lost,
                     lost == 1 ? " is" : "s are"));
}

void require_one_bandwidth(const SchedulerInput& p) {
  std::size_t hosts = 0;
  for (const HostType& type : p.types) {
    hosts += type.hosts.size();
    if (type.bandwidth == p.types.front().bandwidth && type.bandwidth > 0) continue;
    throw InputError(
        fmt::format("--medium shared: hosts of '{}' have {} and hosts of '{}' {}", p.types.front().name,
                    to_text(Bandwidth{p.types.front().bandwidth}), type.name, to_text(Bandwidth{type.bandwidth})),
        "one medium has one bandwidth for all; write it as bw_Mbps of each type");
  }
  if (hosts < 2) throw InputError("--medium shared needs two hosts", "leave it out");
}

bool word_of(const Arguments& a, const std::string& name, const std::string& no, const std::string& yes) {
  if (a.text(name) == yes) return true;
  if (!a.has(name) || a.text(name) == no) return false;
  throw InputError(fmt::format("--{}: '{}' is not known here", name, a.text(name)), fmt::format("{} or {}", no, yes));
}

std::string summary(const edgepipe::ChainProblem& problem, const edgepipe::ChainPlan& result) {
  const edgepipe::ChainFigures f = edgepipe::figures_of(problem, result.chain);
  const char* const holder = result.period > f.slowest_stage ? "messages" : "the slowest stage";
  return fmt::format("{} stage{}, {} a micro-batch, limited by {}; {} through all stages, at most {} on a host\n",
                     result.chain.size(), result.chain.size() == 1 ? "" : "s", to_text(Seconds{result.period}), holder,
                     to_text(Seconds{f.latency}), to_text(Bytes{f.memory}));
}

}  // namespace

int import_pipeedge(const Arguments& a) {
  const std::vector<std::string> files = a.list("FILE");
  if (files.size() != 3 || !a.has("model") || !a.has("out"))
    throw InputError("PipeEdge's models, device types and devices, --model NAME and --out FOLDER are needed",
                     "stagecraft import pipeedge models.yml device_types.yml devices.yml --model NAME --out FOLDER");
  const bool medium = word_of(a, "medium", "switch", "shared");
  const SchedulerInput profiles =
      pipeedge::read({files[0], files[1], files[2]}, {.model = a.text("model"),
                                                      .batch = a.has("batch") ? a.count("batch", 1, 1000000) : 8,
                                                      .dtype = a.has("dtype") ? a.text("dtype") : "torch.float32",
                                                      .data_host = a.text("data-host"),
                                                      .binary = !word_of(a, "units", "compat", "si")});
  for (const std::string& warning : profiles.warnings) warn(warning);
  if (medium) require_one_bandwidth(profiles);

  const auto buffers = [&](const char* side) { return a.has(side) ? a.number(side) : 2; };
  const edgepipe::ChainProblem problem = pipeedge::problem_of(profiles, buffers("buffers-in"), buffers("buffers-out"));
  const auto objective = medium ? edgepipe::Objective::Shared : edgepipe::Objective::Bottleneck;
  const auto result = edgepipe::search(problem, objective, 1);
  if (!result) {
    std::vector<std::string> names;
    for (int l = 0; l < profiles.layers(); ++l) names.push_back(layer_name(l));
    throw Infeasible(edgepipe::why_none(problem, names));
  }
  const SchedulerInput hosts = connected(profiles, result->chain);
  warn_of_lost(profiles, hosts);
  const std::string folder = a.text("out");
  make_folder(a, {"model.yaml", "cluster.yaml", "scenario.yaml", "schedule.yml"});
  FolderUpdate update(folder, overwrite_of(a));
  update.add("model.yaml", model_yaml(hosts));
  update.add("cluster.yaml", cluster_yaml(hosts, medium));
  update.add("scenario.yaml", scenario_yaml(hosts, problem, medium));
  update.add("schedule.yml", pipeedge::to_schedule(result->chain, profiles));
  update.commit();
  print(summary(problem, *result));
  print(fmt::format("wrote {0}/scenario.yaml with its model.yaml and cluster.yaml, and {0}/schedule.yml\n", folder));
  return 0;
}

}  // namespace stagecraft
