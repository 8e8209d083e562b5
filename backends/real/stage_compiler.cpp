// Compiles the layers of a stage, one operation after the other, with the positions of their tensors and weights.

#include "backends/real/stage_compiler.hpp"

#include <algorithm>

#include <fmt/core.h>

#include "sim/core/diagnostic.hpp"

namespace stagecraft::real {
namespace {

/// Marks the products next to a GELU where no other operation reads the numbers between the two.
void mark_gelus(StageNet& net) {
  std::vector<bool> leaves(net.values.size());
  for (const Crossing& c : net.outputs)
    for (const int v : c.values) leaves[v] = true;
  const auto follows = [&](std::size_t n, OperationKind first, OperationKind second) {
    const Node &a = net.nodes[n], &b = net.nodes[n + 1];
    return a.operation->kind == first && b.operation->kind == second && a.layer == b.layer && a.routing < 0 &&
           a.exchange == Exchange::None && b.exchange == Exchange::None && b.inputs == std::vector{a.output} &&
           net.values[a.output].users == 1 && !leaves[a.output];
  };
  const auto is_alone = [&](int v) { return net.values[v].needs_gradient && net.values[v].users == 1 && !leaves[v]; };
  for (std::size_t n = 0; n + 1 < net.nodes.size(); ++n) {
    net.nodes[n].feeds_gelu = follows(n, OperationKind::Linear, OperationKind::Gelu);
    net.nodes[n + 1].reads_gelu =
        follows(n, OperationKind::Gelu, OperationKind::Linear) && is_alone(net.nodes[n].inputs.front());
  }
}

}  // namespace

StageNet StageCompiler::run() {
  inputs();
  if (!workload_.vocabulary.empty()) read_embedding();
  for (const LayerId layer : own_.layers) add_layer(layer);
  outputs();
  if (!workload_.vocabulary.empty()) leave_for_scores();
  net_.pass_nodes = net_.nodes.size();
  if (own_.vocabulary_rank >= 0) add_vocabulary();
  // A stage without weights has a few that no operation reads, so that it is no special case.
  if (net_.weights == 0) net_.weights = static_cast<std::int64_t>(64 / width_);
  put_experts_last();
  mark_gelus(net_);
  net_.width = width_;
  return std::move(net_);
}

void StageCompiler::inputs() {
  for (int e = 0; e < std::ssize(workload_.edges); ++e) {
    if (workload_.edges[e].to != stage_) continue;
    Crossing& c = net_.inputs.emplace_back();
    c.edge = e;
    for (const LayerId layer : workload_.tensors[e]) {
      require_operations(layer_of(layer.value));
      c.values.push_back(add_arriving(layer_of(layer.value).operations.back()));
      const auto last = layer_of(layer.value).operations.size() - 1;
      net_.values.back().is_wide = gives_words(layer, last);
      c.numbers += net_.values.back().numbers();
      output_of_[layer] = c.values.back();
    }
  }
}

int StageCompiler::add_arriving(const Operation& op) {
  if (!is_divided()) return add_value(op, true);
  Operation part = divide(op, {op.columns}, degrees_, place_, width_).operation;
  const Layout layout = degrees_.tensor > 1 ? output_layout(op, sequence()) : Layout::Whole;
  part.rows = rows_in(layout, op.rows);
  const int value = add_value(part, true);
  layouts_[value] = layout;
  return value;
}

void StageCompiler::outputs() {
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

void StageCompiler::add_layer(LayerId id) {
  const WorkloadLayer& layer = layer_of(id.value);
  require_operations(layer);
  layer_ = id.value;
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
    if (op.kind == OperationKind::Combine) node.inputs.front() = return_rows(node.inputs.front(), op.active);
    if (is_divided()) divide_node(node, layer);
    place_weights(node, layer);
    read(node);
    if (op.kind == OperationKind::Dispatch) require_all_rows(node, layer);
    int output = node.output;
    if (op.kind == OperationKind::Input) net_.values[output].is_wide = gives_words(id, place);
    require_narrow_inputs(node, layer);
    const std::vector<int> inputs = node.inputs;
    net_.nodes.push_back(std::move(node));
    if (is_divided() && output >= 0) output = leave(op, output);
    if (op.kind == OperationKind::Dispatch) output = send_rows(output, inputs[1], op);
    local.push_back(output);
  }
  if (!local.empty()) output_of_[id] = local.back();
}

bool StageCompiler::gives_words(LayerId id, std::size_t place) const {
  const std::vector<Operation>& operations = layer_of(id.value).operations;
  if (width_ != kMixedWidth || operations[place].kind != OperationKind::Input) return false;
  for (const WorkloadLayer& layer : workload_.layers)
    for (const Operation& op : layer.operations) {
      if (op.kind != OperationKind::Embedding) continue;
      const int input = op.inputs.front();
      if (input >= 0 ? &layer == &layer_of(id.value) && input == static_cast<int>(place)
                     : layer.inputs[-1 - input] == id && place + 1 == operations.size())
        return true;
    }
  return false;
}

void StageCompiler::require_narrow_inputs(const Node& node, const WorkloadLayer& layer) const {
  if (node.operation->kind == OperationKind::Embedding) return;
  for (const int v : node.inputs)
    if (net_.values[v].is_wide)
      throw InputError(fmt::format("layer '{}' of the model '{}' computes with words that an embedding looks up, which "
                                   "16 bits do not hold",
                                   layer.name, workload_.name),
                       "--set model.precision=fp32");
}

void StageCompiler::require_operations(const WorkloadLayer& layer) const {
  if (!layer.operations.empty()) return;
  throw InputError(fmt::format("the layer '{}' of the model '{}' is only known by its amounts, so it cannot be "
                               "computed",
                               layer.name, workload_.name),
                   "take a model of dense, gpt, vit or multi_branch layers, an ONNX file as {onnx: FILE}, or "
                   "run.compute: emulated");
}

void StageCompiler::read(Node& node) {
  const Keeps needs = keeps(*node.operation);
  bool gradient = node.count > 0;
  if (!node.inputs.empty()) node.routing = net_.values[node.inputs.front()].routing;
  for (const int v : node.inputs) {
    Value& value = net_.values[v];
    ++value.users;
    value.is_saved = value.is_saved || needs.inputs;
    gradient = gradient || value.needs_gradient;
  }
  if (node.operation->is_loss()) return;
  node.output = add_value(*node.operation, gradient);
  net_.values.back().is_saved = needs.output || node.exchange == Exchange::RingKeys;
  net_.values.back().routing = node.routing;
  if (node.rows > 0) net_.values.back().rows = node.rows;
}

void StageCompiler::place_weights(Node& node, const WorkloadLayer& layer) {
  const Blocks b = blocks(*node.operation, width_);
  if (b.total == 0) return;
  node.count = b.total;
  if (!workload_.vocabulary.empty() && node.slices.empty()) node.slices = {{0, 0, b.total}};
  if (const std::string& tie = tie_of(layer, *node.operation); !tie.empty()) {
    require_ties_here(layer, tie);
    if (const auto it = tied_.find(tie); it != tied_.end()) {
      node.weights = it->second;
      return;
    }
    tied_[tie] = net_.weights;
  }
  node.owns_weights = true;
  std::int64_t& end = is_apart(node) ? expert_weights_ : net_.weights;
  node.weights = end;
  end += b.total;
}

void StageCompiler::put_experts_last() {
  net_.dense_weights = net_.weights;
  for (Node& node : net_.nodes)
    if (node.count > 0 && is_apart(node)) node.weights += net_.dense_weights;
  net_.weights += expert_weights_;
}

bool StageCompiler::has_tie(const WorkloadLayer& layer, const std::string& tie) {
  return std::any_of(layer.operations.begin(), layer.operations.end(),
                     [&](const Operation& op) { return op.parameters() > 0 && tie_of(layer, op) == tie; });
}

void StageCompiler::require_ties_here(const WorkloadLayer& layer, const std::string& tie) const {
  const auto is_here = [&](LayerId id) {
    const std::vector<LayerId>& words = workload_.vocabulary;
    return std::binary_search(own_.layers.begin(), own_.layers.end(), id) ||
           (own_.vocabulary_rank >= 0 && std::find(words.begin(), words.end(), id) != words.end());
  };
  for (int l = 0; l < std::ssize(workload_.layers); ++l)
    if (has_tie(layer_of(l), tie) && !is_here(LayerId{l}))
      throw InputError(fmt::format("the layers '{}' and '{}' share their weights but are in different stages, which "
                                   "cannot be computed yet",
                                   layer.name, layer_of(l).name),
                       "model.tied: false gives each its own, or put them in one stage");
}

int StageCompiler::number_of_input(LayerId layer, int place) const {
  int number = 0;
  for (int l = 0; l < std::ssize(workload_.layers); ++l)
    for (int p = 0; p < std::ssize(layer_of(l).operations); ++p) {
      if (l == layer.value && p == place) return number;
      number += layer_of(l).operations[p].kind == OperationKind::Input;
    }
  return number;
}

}  // namespace stagecraft::real
