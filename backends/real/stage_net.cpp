#include "backends/real/stage_net.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>

#include "sim/core/diagnostic.hpp"
#include "sim/training/random.hpp"

namespace stagecraft::real {
namespace {

class Compiler {
 public:
  Compiler(const Workload& workload, StageId stage, std::size_t width)
      : workload_(workload), own_(workload.stages[stage]), stage_(stage), width_(width) {}

  StageNet run() {
    inputs();
    for (const LayerId layer : own_.layers) add_layer(layer);
    outputs();
    // A stage without weights has a few that no operation reads, so that it is no special case.
    if (net_.weights == 0) net_.weights = static_cast<std::int64_t>(64 / width_);
    return std::move(net_);
  }

 private:
  const WorkloadLayer& layer_of(int id) const { return workload_.layers[LayerId{id}]; }

  int add_value(const Operation& op, bool needs_gradient) {
    net_.values.push_back({op.rows, op.columns, false, needs_gradient, 0});
    return static_cast<int>(net_.values.size()) - 1;
  }

  void require_operations(const WorkloadLayer& layer) const {
    if (!layer.operations.empty()) return;
    throw InputError(fmt::format("the layer '{}' of the model '{}' is only known by its amounts, so it cannot be "
                                 "computed",
                                 layer.name, workload_.name),
                     "take a model of dense, gpt or multi_branch layers, or run.compute: emulated");
  }

  void inputs() {
    for (int e = 0; e < std::ssize(workload_.edges); ++e) {
      if (workload_.edges[e].to != stage_) continue;
      Crossing& c = net_.inputs.emplace_back();
      c.edge = e;
      for (const LayerId layer : workload_.tensors[e]) {
        require_operations(layer_of(layer.value));
        c.values.push_back(add_value(layer_of(layer.value).operations.back(), true));
        c.numbers += net_.values.back().numbers();
        output_of_[layer] = c.values.back();
      }
    }
  }

  void outputs() {
    for (int e = 0; e < std::ssize(workload_.edges); ++e) {
      if (workload_.edges[e].from != stage_) continue;
      Crossing& c = net_.outputs.emplace_back();
      c.edge = e;
      for (const LayerId layer : workload_.tensors[e]) {
        c.values.push_back(output_of_.at(layer));
        c.numbers += net_.values[c.values.back()].numbers();
      }
    }
    std::stable_sort(net_.outputs.begin(), net_.outputs.end(), [&](const Crossing& a, const Crossing& b) {
      return workload_.edges[a.edge].to > workload_.edges[b.edge].to;
    });
  }

  void add_layer(LayerId id) {
    const WorkloadLayer& layer = layer_of(id.value);
    require_operations(layer);
    std::vector<int> local;
    for (std::size_t place = 0; place < layer.operations.size(); ++place) {
      const Operation& op = layer.operations[place];
      Node node;
      node.operation = &op;
      node.layer = id.value;
      node.place = static_cast<int>(place);
      for (const int input : op.inputs)
        node.inputs.push_back(input < 0 ? output_of_.at(layer.inputs[-1 - input]) : local[input]);
      if (op.kind == OperationKind::Input) node.input_number = number_of_input(id, node.place);
      place_weights(node, layer);
      read(node);
      local.push_back(node.output);
      net_.nodes.push_back(std::move(node));
    }
    if (!local.empty()) output_of_[id] = local.back();
  }

  /// Marks what the node reads, and makes its output.
  void read(Node& node) {
    const Keeps needs = keeps(*node.operation);
    bool gradient = node.count > 0;
    for (const int v : node.inputs) {
      Value& value = net_.values[v];
      ++value.users;
      value.is_saved = value.is_saved || needs.inputs;
      gradient = gradient || value.needs_gradient;
    }
    if (node.operation->is_loss()) return;
    node.output = add_value(*node.operation, gradient);
    net_.values.back().is_saved = needs.output;
  }

  void place_weights(Node& node, const WorkloadLayer& layer) {
    const Blocks b = blocks(*node.operation, width_);
    if (b.total == 0) return;
    node.count = b.total;
    if (!layer.tie.empty()) {
      require_ties_here(layer);
      if (const auto it = tied_.find(layer.tie); it != tied_.end()) {
        node.weights = it->second;
        return;
      }
      tied_[layer.tie] = net_.weights;
    }
    node.owns_weights = true;
    node.weights = net_.weights;
    net_.weights += b.total;
  }

  void require_ties_here(const WorkloadLayer& layer) const {
    for (int l = 0; l < std::ssize(workload_.layers); ++l)
      if (layer_of(l).tie == layer.tie && !std::binary_search(own_.layers.begin(), own_.layers.end(), LayerId{l}))
        throw InputError(fmt::format("the layers '{}' and '{}' share their weights but are in different stages, which "
                                     "cannot be computed yet",
                                     layer.name, layer_of(l).name),
                         "model.tied: false gives each its own, or put them in one stage");
  }

  int number_of_input(LayerId layer, int place) const {
    int number = 0;
    for (int l = 0; l < std::ssize(workload_.layers); ++l)
      for (int p = 0; p < std::ssize(layer_of(l).operations); ++p) {
        if (l == layer.value && p == place) return number;
        number += layer_of(l).operations[p].kind == OperationKind::Input;
      }
    return number;
  }

  const Workload& workload_;
  const StageWorkload& own_;
  StageId stage_;
  std::size_t width_;
  std::map<LayerId, int> output_of_;          ///< Value of each layer.
  std::map<std::string, std::int64_t> tied_;  ///< Tie to place of weights.
  StageNet net_;
};

}  // namespace

std::size_t width_of(const Workload& workload) {
  const Precision& p = workload.precision;
  const bool whole = p.weight == p.activation && p.weight == p.gradient && (p.weight == 4 || p.weight == 8);
  if (!whole)
    throw InputError(
        fmt::format("the model '{}' mixes 16-bit and 32-bit numbers, which this backend does not compute with",
                    workload.name),
        "--set model.precision=fp32, or fp64");
  return static_cast<std::size_t>(p.weight);
}

StageNet compile_stage(const Workload& workload, StageId stage, std::size_t width) {
  return Compiler(workload, stage, width).run();
}

// Variance 1 / inputs (Glorot and Bengio, 2010), 2 / inputs before a ReLU (He et al., 2015); embeddings 0.02 as GPT-2.
std::vector<double> initial_weights(const StageNet& net, const Workload& workload, bool whole) {
  std::vector<double> weights(net.weights, 0);
  for (std::size_t n = 0; n < net.nodes.size(); ++n) {
    const Node& node = net.nodes[n];
    if (!node.owns_weights) continue;
    const Operation& op = *node.operation;
    double* const numbers = weights.data() + node.weights;
    const std::string& layer = workload.layers[LayerId{node.layer}].name;
    Rng rng(workload.training.seed, fmt::format("weights of {}.{}", layer, node.place));
    const auto inner = static_cast<std::int64_t>(op.inner), columns = static_cast<std::int64_t>(op.columns);
    if (op.kind == OperationKind::LayerNorm || op.kind == OperationKind::RmsNorm) {
      std::fill_n(numbers, columns, 1.0);
      continue;
    }
    const bool relu = n + 1 < net.nodes.size() && net.nodes[n + 1].operation->kind == OperationKind::Relu;
    const bool words = op.kind == OperationKind::Embedding;
    const double deviation = words ? 0.02 : std::sqrt((relu ? 2.0 : 1.0) / static_cast<double>(inner));
    const std::int64_t drawn = words ? node.count : inner * columns;
    for (std::int64_t i = 0; i < drawn; ++i) numbers[i] = whole ? rng.integer(-1, 1) : deviation * normal(rng);
  }
  return weights;
}

}  // namespace stagecraft::real
