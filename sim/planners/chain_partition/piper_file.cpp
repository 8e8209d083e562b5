// Reads an input file of the released Piper, for `stagecraft import piper` and tests.

#include "sim/planners/chain_partition/piper_file.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <unordered_map>

#include "sim/config/fields.hpp"
#include "sim/core/text.hpp"

namespace stagecraft::chain_partition {
namespace {

using config::Value;

constexpr double kMost = 1e30;

const config::MapSpec kVariant{
    "One way to run a node.",
    {config::text("id").doc("What it is called."), config::real("timePerSample", 0, kMost).doc("Seconds."),
     config::real("parameterSize", 0, kMost).doc("Bytes that replicas reduce."),
     config::real("memoryUsageA", 0, kMost).doc("Bytes for each micro-batch in flight."),
     config::real("memoryUsageB", 0, kMost).doc("Other bytes."),
     config::table("syncTimeFw", config::real("bytes", 0, kMost)).doc("Bytes for each input node."),
     config::table("syncTimeBw", config::real("bytes", 0, kMost)).doc("Bytes for each reader.")}};

const config::MapSpec kNode{
    "A layer.",
    {config::integer("id", 0, 1e9).doc("What edges call it."), config::text("name").optional().doc("For people."),
     config::table("TMPCs", config::list("variants", config::map("variant", kVariant)))
         .doc("Variants by the degree of tensor parallelism.")}};

const config::MapSpec kEdge{"A tensor.",
                            {config::integer("sourceId", 0, 1e9).doc("The node that makes it."),
                             config::integer("destId", 0, 1e9).doc("The node that reads it."),
                             config::real("communicationCost", 0, kMost).doc("Bytes.")}};

const config::MapSpec kFile{"An input of Piper.",
                            {config::integer("maxDevices", 1, 1e4).doc("Devices."),
                             config::real("maxMemoryPerDevice", 1e-9, kMost).doc("Bytes."),
                             config::real("bandwidth", 1e-9, kMost).doc("Bytes a second."),
                             config::integer("mbsInBatch", 1, 1e9).doc("Micro-batches in a batch."),
                             // Each is checked alone: two may have one name, which a list of maps forbids.
                             config::list("nodes", config::any("node")).doc("Layers."),
                             config::list("edges", config::map("edge", kEdge)).doc("Tensors.")}};

class Reader {
 public:
  explicit Reader(const Value& file) : file_(file) {
    input_.devices = config::as_int(file.at("maxDevices"));
    input_.memory = config::as_real(file.at("maxMemoryPerDevice"));
    input_.bandwidth = config::as_real(file.at("bandwidth"));
    input_.micro_batches = config::as_int(file.at("mbsInBatch"));
    read_edges();
    if (!topological_order(input_.graph))
      problems_.add(file.at("edges").where, "edges", "the nodes wait for each other in a circle", {}, "cycle");
    for (std::size_t n = 0; n < nodes().size(); ++n) read_node(n);
    problems_.throw_if_any();
  }

  PiperFile finish() {
    std::vector<std::string> doubts = warnings();
    return {std::move(input_), std::move(doubts)};
  }

 private:
  const std::vector<Value>& nodes() const { return file_.at("nodes").items; }

  void read_edges() {
    for (const Value& node : nodes())
      if (!index_.emplace(node.at("id").text, static_cast<int>(index_.size())).second)
        problems_.add(node.at("id").where, "nodes", fmt::format("there are two nodes {}", node.at("id").text),
                      "no two nodes have the same id", "duplicate-id");
    problems_.throw_if_any();
    input_.graph = Digraph(static_cast<int>(nodes().size()));
    for (const Value& edge : file_.at("edges").items) {
      const int from = look_up(edge.at("sourceId")), to = look_up(edge.at("destId"));
      if (from < 0 || to < 0) continue;
      input_.graph.add(from, to);
      if (!bytes_.emplace(std::pair(from, to), config::as_real(edge.at("communicationCost"))).second)
        problems_.add(
            edge.where, "edges",
            fmt::format("there are two edges from {} to {}", edge.at("sourceId").text, edge.at("destId").text),
            "add their bytes up", "duplicate-edge");
    }
    problems_.throw_if_any();
  }

  int look_up(const Value& id) {
    const auto it = index_.find(id.text);
    if (it != index_.end()) return it->second;
    problems_.add(id.where, "edges", fmt::format("there is no node {}", id.text), "the id of a node", "unknown-node");
    return -1;
  }

  void read_node(std::size_t n) {
    PiperLayer layer;
    if (const Value* name = nodes()[n].find("name")) layer.name = name->text;
    for (const config::Member& degree : nodes()[n].at("TMPCs").members) {
      std::string_view digits = degree.key;
      const auto number = read_number(digits);
      if (!number || *number < 1 || !digits.empty()) {
        problems_.add(degree.where, "TMPCs", fmt::format("'{}' is not a degree of tensor parallelism", degree.key),
                      "write a whole number from 1", "degree");
        continue;
      }
      for (const Value& variant : degree.value.items)
        layer.by_degree[*number].push_back(read_variant(variant, static_cast<int>(n)));
    }
    input_.layers.push_back(std::move(layer));
  }

  PiperVariant read_variant(const Value& value, int node) {
    PiperVariant variant{
        value.at("id").text,
        config::as_real(value.at("timePerSample")),
        config::as_real(value.at("parameterSize")),
        // The file has one number for weights, gradients and optimizer together.
        {.weights = {config::as_real(value.at("memoryUsageB"))}, .stash = {config::as_real(value.at("memoryUsageA"))}},
        {},
        {}};
    const std::size_t n = node;
    const Value &forward = value.at("syncTimeFw"), &backward = value.at("syncTimeBw");
    for (const int from : input_.graph.previous[n]) variant.in.push_back(bytes_.at({from, node}) + sync(forward, from));
    for (const int to : input_.graph.next[n]) variant.out.push_back(bytes_.at({node, to}) + sync(backward, to));
    if (forward.members.size() > variant.in.size() || backward.members.size() > variant.out.size())
      problems_.add(value.where, "TMPCs", "it synchronizes with a node that it has no edge with",
                    "syncTimeFw names input nodes, syncTimeBw names readers", "sync");
    return variant;
  }

  double sync(const Value& table, int neighbor) {
    const std::string& id = nodes()[neighbor].at("id").text;
    if (const Value* bytes = table.find(id)) return config::as_real(*bytes);
    problems_.add(table.where, "TMPCs", fmt::format("the edge to or from node {} is missing", id),
                  "name every edge of the node, with 0 where nothing has to be synchronized", "sync");
    return 0;
  }

  /// Layers of a network move gigabytes of weights and activations a second on any accelerator. gnmt.json and
  /// resnet.json, which come with Piper, have milliseconds where seconds belong.
  std::vector<std::string> warnings() const {
    constexpr double kSlowest = 5e8;
    double bytes = 0, seconds = 0;
    for (const auto& [edge, size] : bytes_) bytes += size;
    for (const PiperLayer& layer : input_.layers) {
      if (layer.by_degree.empty() || layer.by_degree.begin()->second.empty()) continue;
      const PiperVariant& plain = layer.by_degree.begin()->second.front();
      bytes += plain.parameters, seconds += plain.seconds;
    }
    if (bytes >= kSlowest * seconds) return {};
    return {
        fmt::format("the layers take {} for a micro-batch with {} of weights and activations, {} a second: are the "
                    "times milliseconds? Then transfers count for a thousandth of what they take",
                    to_text(Seconds{seconds}), to_text(Bytes{bytes}), to_text(Bytes{bytes / seconds}))};
  }

  const Value& file_;
  PiperInput input_;
  config::Problems problems_;
  std::unordered_map<std::string, int> index_;
  std::map<std::pair<int, int>, double> bytes_;
};

}  // namespace

PiperFile read_piper(std::string_view json, const std::string& file) {
  config::Problems problems;
  const Value tree = config::parse_json(json, file, problems);
  problems.throw_if_any();
  Value checked = config::check(tree, kFile, "", problems);
  problems.throw_if_any();
  std::vector<Value>& nodes = checked.find("nodes")->items;
  for (std::size_t n = 0; n < nodes.size(); ++n)
    nodes[n] = config::check(nodes[n], kNode, fmt::format("nodes[{}]", n), problems);
  problems.throw_if_any();
  return Reader(checked).finish();
}

}  // namespace stagecraft::chain_partition
