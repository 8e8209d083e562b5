#include "backends/real/stage_net.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>

#include "sim/core/diagnostic.hpp"
#include "sim/plan/gradient_groups.hpp"
#include "sim/training/random.hpp"

namespace stagecraft::real {
namespace {

class Compiler {
 public:
  Compiler(const ModelGraph& model, const Plan& plan, StageId stage, std::size_t width)
      : model_(model), plan_(plan), groups_(plan), stage_(stage), width_(width), stage_of_(model.layers.size(), -1) {
    for (int s = 0; s < plan.stage_count(); ++s)
      for (const LayerId layer : plan.stage(StageId{s}).layers) stage_of_[layer] = groups_.of(StageId{s});
  }

  StageNet run() {
    inputs();
    std::vector<LayerId> layers = plan_.stage(stage_).layers;
    std::sort(layers.begin(), layers.end());
    for (const LayerId layer : layers) add_layer(layer);
    outputs();
    // A stage without weights has a few that nobody reads, so that it is no special case.
    if (net_.weights == 0) net_.weights = static_cast<std::int64_t>(64 / width_);
    return std::move(net_);
  }

 private:
  const Layer& layer_of(int id) const { return model_.layers[id]; }

  int add_value(const Operation& op, bool needs_gradient) {
    net_.values.push_back({op.rows, op.columns, false, needs_gradient, 0});
    return static_cast<int>(net_.values.size()) - 1;
  }

  /// Layers of `from` that a layer of `to` reads, in model order.
  std::vector<int> crossing(StageId from, StageId to) const {
    std::vector<int> layers;
    for (const LayerId layer : plan_.stage(to).layers)
      for (const LayerId input : layer_of(layer).inputs)
        if (stage_of_[input] == groups_.of(from)) layers.push_back(input);
    std::sort(layers.begin(), layers.end());
    layers.erase(std::unique(layers.begin(), layers.end()), layers.end());
    return layers;
  }

  void require_operations(const Layer& layer) const {
    if (!layer.operations.empty()) return;
    throw InputError(fmt::format("the layer '{}' of the model '{}' is only known by its amounts, so it cannot be "
                                 "computed",
                                 layer.name, model_.name),
                     "take a model of dense, gpt or multi_branch layers, or run.compute: emulated");
  }

  void inputs() {
    for (std::size_t e = 0; e < plan_.edges.size(); ++e) {
      if (plan_.edges[e].to != stage_) continue;
      Crossing& c = net_.inputs.emplace_back();
      c.edge = static_cast<int>(e);
      for (const int layer : crossing(plan_.edges[e].from, stage_)) {
        require_operations(layer_of(layer));
        c.values.push_back(add_value(layer_of(layer).operations.back(), true));
        c.numbers += net_.values.back().numbers();
        output_of_[layer] = c.values.back();
      }
    }
  }

  void outputs() {
    for (std::size_t e = 0; e < plan_.edges.size(); ++e) {
      if (plan_.edges[e].from != stage_) continue;
      Crossing& c = net_.outputs.emplace_back();
      c.edge = static_cast<int>(e);
      for (const int layer : crossing(stage_, plan_.edges[e].to)) {
        c.values.push_back(output_of_.at(layer));
        c.numbers += net_.values[c.values.back()].numbers();
      }
    }
    std::stable_sort(net_.outputs.begin(), net_.outputs.end(), [&](const Crossing& a, const Crossing& b) {
      return plan_.edges[a.edge].to > plan_.edges[b.edge].to;
    });
  }

  void add_layer(LayerId id) {
    const Layer& layer = layer_of(id);
    require_operations(layer);
    std::vector<int> local;
    for (std::size_t place = 0; place < layer.operations.size(); ++place) {
      const Operation& op = layer.operations[place];
      Node node;
      node.operation = &op;
      node.layer = id;
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
      value.kept = value.kept || needs.inputs;
      gradient = gradient || value.needs_gradient;
    }
    if (node.operation->is_loss()) return;
    node.output = add_value(*node.operation, gradient);
    net_.values.back().kept = needs.output;
  }

  void place_weights(Node& node, const Layer& layer) {
    const Blocks b = blocks(*node.operation, width_);
    if (b.total == 0) return;
    node.count = b.total;
    if (!layer.tie.empty()) {
      require_ties_here(layer);
      if (const auto known = tied_.find(layer.tie); known != tied_.end()) {
        node.weights = known->second;
        return;
      }
      tied_[layer.tie] = net_.weights;
    }
    node.owns_weights = true;
    node.weights = net_.weights;
    net_.weights += b.total;
  }

  void require_ties_here(const Layer& layer) const {
    for (std::size_t l = 0; l < model_.layers.size(); ++l)
      if (model_.layers[l].tie == layer.tie && stage_of_[l] != groups_.of(stage_))
        throw InputError(fmt::format("the layers '{}' and '{}' share their weights but are in different stages, which "
                                     "cannot be computed yet",
                                     layer.name, model_.layers[l].name),
                         "model.tied: false gives each its own, or put them in one stage");
  }

  int number_of_input(LayerId layer, int place) const {
    int number = 0;
    for (std::size_t l = 0; l < model_.layers.size(); ++l)
      for (std::size_t p = 0; p < model_.layers[l].operations.size(); ++p) {
        if (static_cast<int>(l) == layer && static_cast<int>(p) == place) return number;
        number += model_.layers[l].operations[p].kind == OperationKind::Input;
      }
    return number;
  }

  const ModelGraph& model_;
  const Plan& plan_;
  GradientGroups groups_;
  StageId stage_;
  std::size_t width_;
  std::vector<int> stage_of_;                 ///< Of each layer: the first that has it.
  std::map<int, int> output_of_;              ///< Layer to value.
  std::map<std::string, std::int64_t> tied_;  ///< Tie to place of weights.
  StageNet net_;
};

}  // namespace

std::size_t width_of(const ModelGraph& model) {
  const Precision& p = model.precision;
  const bool whole = p.weight == p.activation && p.weight == p.gradient && (p.weight == 4 || p.weight == 8);
  if (!whole)
    throw InputError(
        fmt::format("the model '{}' mixes 16-bit and 32-bit numbers, which this backend does not compute with",
                    model.name),
        "--set model.precision=fp32, or fp64");
  return static_cast<std::size_t>(p.weight);
}

StageNet compile_stage(const ModelGraph& model, const Plan& plan, StageId stage, std::size_t width) {
  return Compiler(model, plan, stage, width).run();
}

// Variance 1 / inputs (Glorot and Bengio, 2010), 2 / inputs before a ReLU (He et al., 2015); embeddings 0.02 as GPT-2.
std::vector<double> initial_weights(const StageNet& net, const ModelGraph& model, std::uint64_t seed, bool whole) {
  std::vector<double> all(static_cast<std::size_t>(net.weights), 0);
  for (std::size_t n = 0; n < net.nodes.size(); ++n) {
    const Node& node = net.nodes[n];
    if (!node.owns_weights) continue;
    const Operation& op = *node.operation;
    double* const numbers = all.data() + node.weights;
    const std::string& layer = model.layers[node.layer].name;
    Rng rng(seed, fmt::format("weights of {}.{}", layer, node.place));
    const auto inner = static_cast<std::int64_t>(op.inner), columns = static_cast<std::int64_t>(op.columns);
    if (op.kind == OperationKind::LayerNorm) {
      std::fill_n(numbers, columns, 1.0);
      continue;
    }
    const bool relu = n + 1 < net.nodes.size() && net.nodes[n + 1].operation->kind == OperationKind::Relu;
    const bool words = op.kind == OperationKind::Embedding;
    const double deviation = words ? 0.02 : std::sqrt((relu ? 2.0 : 1.0) / static_cast<double>(inner));
    const std::int64_t drawn = words ? node.count : inner * columns;
    for (std::int64_t i = 0; i < drawn; ++i) numbers[i] = whole ? rng.integer(-1, 1) : deviation * normal(rng);
  }
  return all;
}

}  // namespace stagecraft::real
