// For `stagecraft import dnn-partitioning`: reads the JSON of the released dnn-partitioning as a model and a scenario.

#include "models/dnn_partitioning.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include <fmt/core.h>

#include "models/pipedream_graph.hpp"
#include "sim/config/fields.hpp"
#include "sim/core/dag.hpp"
#include "sim/core/text.hpp"

namespace stagecraft {
namespace {

using config::Value;

constexpr double kMost = 1e30;
// Bytes of a parameter: its weight, and in training its gradient and two moments too.
constexpr double kWeightBytes = 4, kStateBytes = 16;

const config::MapSpec kNode{
    "An operation.",
    {config::integer("id", 0, 1e9).doc("What edges call it."), config::text("name").optional().doc("For people."),
     config::any("supportedOnFpga").optional().doc("Whether an accelerator runs it."),
     config::real("cpuLatency", 0, kMost).optional().doc("Milliseconds on a CPU, which no stage has."),
     config::real("fpgaLatency", 0, kMost).doc("Milliseconds on an accelerator."),
     config::any("isBackwardNode").optional().doc("Whether it belongs to the backward."),
     config::integer("colorClass", -1e9, 1e9).optional().doc("Nodes of one class share a device."),
     config::real("size", 0, kMost).fallback("0").doc("Bytes of a device.")}};

const config::MapSpec kEdge{"A tensor.",
                            {config::integer("sourceId", 0, 1e9).doc("The node that makes it."),
                             config::integer("destId", 0, 1e9).doc("The node that reads it."),
                             config::real("cost", 0, kMost).doc("Milliseconds to the memory of the host, or from it."),
                             config::real("size", 0, kMost).optional().doc("Bytes.")}};

const config::MapSpec kFile{"An input of dnn-partitioning.",
                            {config::real("maxSizePerFPGA", 1e-9, kMost).doc("Bytes of an accelerator."),
                             config::integer("maxFPGAs", 1, 1e4).doc("Accelerators."),
                             config::integer("maxCPUs", 0, 1e4).optional().doc("CPUs, which no stage uses."),
                             // Each is checked alone: two may have one name, which a list of maps forbids.
                             config::list("nodes", config::any("node")).doc("Operations."),
                             config::list("edges", config::map("edge", kEdge)).doc("Tensors.")}};

bool is_true(const Value* flag) { return flag && (flag->text == "1" || flag->text == "true"); }

/// Each node's strongly connected component; components are numbered from 0 in no order (Kosaraju, Sharir).
std::vector<int> components_of(const Digraph& graph) {
  std::vector<int> finished, component(graph.size(), -1);
  std::vector<char> seen(graph.size(), 0);
  const auto walk = [](int start, const std::vector<std::vector<int>>& edges, const auto& enter, const auto& leave) {
    if (!enter(start)) return;
    std::vector<std::pair<int, std::size_t>> path{{start, 0}};
    while (!path.empty()) {
      auto& [node, at] = path.back();
      if (at == edges[node].size()) {
        leave(node);
        path.pop_back();
      } else if (const int next = edges[node][at++]; enter(next)) {
        path.emplace_back(next, 0);
      }
    }
  };
  for (int n = 0; n < graph.size(); ++n)
    walk(
        n, graph.next, [&](int node) { return seen[node] ? false : (seen[node] = 1, true); },
        [&](int node) { finished.push_back(node); });
  int count = 0;
  for (auto n = finished.rbegin(); n != finished.rend(); ++n) {
    if (component[*n] >= 0) continue;
    walk(
        *n, graph.previous, [&](int node) { return component[node] < 0 ? (component[node] = count, true) : false; },
        [](int) {});
    ++count;
  }
  return component;
}

struct Node {
  std::string name;
  double milliseconds = 0, size = 0;
  bool backward = false;
  int color = 0;  ///< Number of the color class, from 0.
};

struct Edge {
  int from = 0, to = 0;
  double cost = 0, size = 0;
};

class DnnPartitioningReader {
 public:
  explicit DnnPartitioningReader(const Value& file) {
    read_.devices = config::as_int(file.at("maxFPGAs"));
    read_.memory = Bytes{config::as_real(file.at("maxSizePerFPGA"))};
    for (const Value& node : file.at("nodes").items) read_node(node);
    problems_.throw_if_any();
    if (nodes_.empty()) problems_.add(file.at("nodes").where, "nodes", "there are no nodes", {}, "empty");
    for (const Value& edge : file.at("edges").items) read_edge(edge);
    problems_.throw_if_any();
    make_layers();
    warn();
  }

  DnnPartitioning finish() { return std::move(read_); }

 private:
  void read_node(const Value& node) {
    const std::string& id = node.at("id").text;
    if (!index_.emplace(id, static_cast<int>(nodes_.size())).second)
      problems_.add(node.at("id").where, "nodes", fmt::format("there are two nodes {}", id),
                    "no two nodes have the same id", "duplicate-id");
    if (const Value* supported = node.find("supportedOnFpga"); supported && !is_true(supported))
      problems_.add(supported->where, "nodes", fmt::format("node {} runs on a CPU only", id),
                    "stages run on accelerators: give it a time on one", "cpu-only");
    const Value *name = node.find("name"), *color = node.find("colorClass");
    // A node without a class has one alone.
    const std::string key = color ? color->text : "node " + id;
    nodes_.push_back({name ? name->text : "node" + id, config::as_real(node.at("fpgaLatency")),
                      config::as_real(node.at("size")), is_true(node.find("isBackwardNode")),
                      colors_.emplace(key, static_cast<int>(colors_.size())).first->second});
    read_.trains |= nodes_.back().backward;
  }

  void read_edge(const Value& edge) {
    const int from = look_up(edge.at("sourceId")), to = look_up(edge.at("destId"));
    if (from < 0 || to < 0) return;
    const Value* size = edge.find("size");
    edges_.push_back({from, to, config::as_real(edge.at("cost")), size ? config::as_real(*size) : 0});
  }

  int look_up(const Value& id) {
    const auto it = index_.find(id.text);
    if (it != index_.end()) return it->second;
    problems_.add(id.where, "edges", fmt::format("there is no node {}", id.text), "the id of a node", "unknown-node");
    return -1;
  }

  /// Whether edges among backward nodes lead from the end of the model to its start, as gradients do. Some files have
  /// them in the direction of the forward.
  bool backward_is_reversed(const std::set<std::pair<int, int>>& forward) const {
    int along = 0, against = 0;
    for (const Edge& e : edges_) {
      if (!nodes_[e.from].backward || !nodes_[e.to].backward) continue;
      along += forward.contains({nodes_[e.from].color, nodes_[e.to].color});
      against += forward.contains({nodes_[e.to].color, nodes_[e.from].color});
    }
    return against >= along;
  }

  /// The edges among color classes, in the direction of the forward, with their costs.
  std::map<std::pair<int, int>, double> class_edges() const {
    std::set<std::pair<int, int>> forward;
    for (const Edge& e : edges_)
      if (!nodes_[e.from].backward && !nodes_[e.to].backward)
        forward.insert({nodes_[e.from].color, nodes_[e.to].color});
    const bool reversed = backward_is_reversed(forward);
    std::map<std::pair<int, int>, double> costs;
    for (const Edge& e : edges_) {
      const bool backward = nodes_[e.from].backward, leaves = backward != nodes_[e.to].backward;
      std::pair<int, int> ends{nodes_[e.from].color, nodes_[e.to].color};
      if (backward && reversed) std::swap(ends.first, ends.second);
      // What the backward reads of a forward comes with the activation that the forward sent the same way.
      if (ends.first == ends.second || (leaves && !forward.contains(ends))) continue;
      double& cost = costs[ends];
      cost = std::max(cost, e.cost);
    }
    return costs;
  }

  void make_layers() {
    const auto costs = class_edges();
    Digraph classes(static_cast<int>(colors_.size()));
    for (const auto& [ends, cost] : costs) classes.add(ends.first, ends.second);
    // Classes that wait for each other cannot be on different devices of a pipeline.
    const std::vector<int> layer_of = components_of(classes);
    const int count = 1 + *std::max_element(layer_of.begin(), layer_of.end());
    Digraph graph(count);
    std::vector<double> output(count, 0), forward(count, 0), backward(count, 0), size(count, 0);
    for (const auto& [ends, cost] : costs) {
      const int from = layer_of[ends.first], to = layer_of[ends.second];
      if (from == to) continue;
      graph.add(from, to);
      output[from] = std::max(output[from], cost);
    }
    std::vector<std::string> names(count), backward_names(count);
    for (const Node& node : nodes_) {
      const int layer = layer_of[node.color];
      (node.backward ? backward : forward)[layer] += node.milliseconds;
      size[layer] += node.size;
      std::string& name = node.backward ? backward_names[layer] : names[layer];
      if (name.empty()) name = node.name;
    }
    const auto order = topological_order(graph);
    STAGECRAFT_CHECK(order.has_value());
    std::vector<LayerId> ids(count);
    std::set<std::string> taken;
    for (const int l : *order) {
      ids[l] = LayerId{read_.model.layers.size()};
      Layer layer;
      layer.name = names[l].empty() ? backward_names[l] : names[l];
      while (!taken.insert(layer.name).second) layer.name += fmt::format(".{}", ids[l].value);
      layer.type = "timed";
      for (const int from : graph.previous[l]) layer.inputs.push_back(ids[from]);
      const Seconds gradients{backward[l] / 1000};
      layer.times = size[l] > 0 ? LayerTimes{{forward[l] / 1000}, gradients / 2, gradients / 2}
                                : LayerTimes{{forward[l] / 1000}, gradients, {}};
      layer.parameters = size[l] / (read_.trains ? kStateBytes : kWeightBytes);
      layer.output = Bytes{output[l] / 1000 * kHostBandwidth};
      read_.model.layers.push_back(std::move(layer));
    }
    read_.model.name = "timed";
    check_graph(read_.model);
  }

  /// throughput-inputs/LayerGraphs of the release have costs in seconds next to latencies in milliseconds.
  void warn() {
    double bytes = 0, milliseconds = 0;
    for (const Edge& e : edges_)
      if (e.size > 0 && e.cost > 0) bytes += e.size, milliseconds += e.cost;
    if (milliseconds > 0 && bytes > 100 * milliseconds / 1000 * kHostBandwidth)
      read_.warnings.push_back(
          fmt::format("edges with {} cost {} ms in all, {} a second: are the costs seconds? Then transfers count for a "
                      "thousandth of what they take",
                      to_text(Bytes{bytes}), shortest(milliseconds), to_text(Bytes{bytes / milliseconds * 1000})));
  }

  DnnPartitioning read_;
  config::Problems problems_;
  std::map<std::string, int> index_, colors_;
  std::vector<Node> nodes_;
  std::vector<Edge> edges_;
};

}  // namespace

DnnPartitioning read_dnn_partitioning(std::string_view json, const std::string& file) {
  config::Problems problems;
  const Value tree = config::parse_json(json, file, problems);
  problems.throw_if_any();
  Value checked = config::check(tree, kFile, "", problems);
  problems.throw_if_any();
  std::vector<Value>& nodes = checked.find("nodes")->items;
  for (std::size_t n = 0; n < nodes.size(); ++n)
    nodes[n] = config::check(nodes[n], kNode, fmt::format("nodes[{}]", n), problems);
  problems.throw_if_any();
  return DnnPartitioningReader(checked).finish();
}

std::string dnn_partitioning_scenario(const DnnPartitioning& input) {
  std::string text =
      "schema: scenario/2\n"
      "title: The least latency of a sample, from an input of dnn-partitioning\n"
      "model:\n";
  const std::string model = timed_model_yaml(input.model, "");
  for (const std::string& line : split(model.substr(model.find("builder:")), '\n'))
    if (!line.empty()) text += "  " + line + "\n";
  text += fmt::format(
      "cluster:\n"
      "  generator: uniform\n"
      "  devices: {}\n"
      "  network: star\n"
      "  type: accelerator\n"
      "  types: {{accelerator: {{peak: 1 TFLOP/s, memory: {} B, memory_bandwidth: 1e9 TB/s}}}}\n"
      "  link: {{bandwidth: {} B/s, latency: 0 s}}  # A tensor takes its cost twice: into the memory of the host, and "
      "out.\n"
      "plan: {{planner: graph-exact, micro_batch_size: 1}}\n"
      "run: {{schedule: {}, micro_batches: 1}}\n"
      "software: none\n",
      input.devices, shortest(input.memory.value), shortest(kHostBandwidth / 2), input.trains ? "graph" : "inference");
  return text;
}

}  // namespace stagecraft
