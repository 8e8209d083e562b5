// Compiles a stage, or the part of it on one device of a group, to a list of operations with the positions of tensors
// and weights.

#include "backends/real/stage_net.hpp"

#include <algorithm>
#include <map>

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

class Compiler {
 public:
  /// `word_parts`: how many parts the words of a vocabulary have that all ranks divide.
  Compiler(const Workload& workload, StageId stage, std::size_t width, const Degrees& degrees, const GroupPlace& place,
           int word_parts)
      : workload_(workload),
        own_(workload.stages[stage]),
        stage_(stage),
        width_(width),
        degrees_(degrees),
        place_(place),
        word_parts_(word_parts) {}

  StageNet run() {
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

 private:
  const WorkloadLayer& layer_of(int id) const { return workload_.layers[LayerId{id}]; }

  int add_value(const Operation& op, bool needs_gradient) {
    net_.values.push_back({op.rows, op.columns, false, needs_gradient, 0, -1});
    layouts_.push_back(Layout::Whole);
    return static_cast<int>(net_.values.size()) - 1;
  }
  bool is_divided() const { return degrees_.divides(); }
  static bool is_latent(const Operation& op) { return op.kind == OperationKind::Attention && op.inputs.size() == 3; }
  bool sequence() const { return degrees_.sequence && degrees_.tensor > 1; }

  /// Whether an embedding anywhere in the model looks up what this operation gives.
  bool gives_words(LayerId id, std::size_t place) const {
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

  void require_narrow_inputs(const Node& node, const WorkloadLayer& layer) const {
    if (node.operation->kind == OperationKind::Embedding) return;
    for (const int v : node.inputs)
      if (net_.values[v].is_wide)
        throw InputError(
            fmt::format("layer '{}' of the model '{}' computes with words that an embedding looks up, which "
                        "16 bits do not hold",
                        layer.name, workload_.name),
            "--set model.precision=fp32");
  }

  void require_operations(const WorkloadLayer& layer) const {
    if (!layer.operations.empty()) return;
    throw InputError(fmt::format("the layer '{}' of the model '{}' is only known by its amounts, so it cannot be "
                                 "computed",
                                 layer.name, workload_.name),
                     "take a model of dense, gpt, vit or multi_branch layers, an ONNX file as {onnx: FILE}, or "
                     "run.compute: emulated");
  }

  static void require_whole_rows(const Operation& op, const WorkloadLayer& layer) {
    if (op.kind == OperationKind::Prepend || op.kind == OperationKind::FirstRow)
      throw InputError(fmt::format("layer '{}' changes the number of rows of a sample ({}), which real backends do not "
                                   "divide over a group",
                                   layer.name, to_text(op)),
                       "take group out of the plan; or --backend ideal, fluid or simgrid");
  }

  void inputs() {
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

  /// A value that another stage made, in the layout that its last operation leaves.
  int add_arriving(const Operation& op) {
    if (!is_divided()) return add_value(op, true);
    Operation part = divide(op, {op.columns}, degrees_, place_, width_).operation;
    const Layout layout = degrees_.tensor > 1 ? output_layout(op, sequence()) : Layout::Whole;
    part.rows = rows_in(layout, op.rows);
    const int value = add_value(part, true);
    layouts_[value] = layout;
    return value;
  }
  int rows_in(Layout layout, int rows) const {
    return rows / degrees_.context / (layout == Layout::Rows ? degrees_.tensor : 1);
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

  /// The value that the first stage reads in place of the output of an embedding.
  void read_embedding() {
    const LayerId embedding = workload_.vocabulary[0];
    for (const LayerId id : own_.layers) {
      const std::vector<LayerId>& inputs = layer_of(id.value).inputs;
      if (std::find(inputs.begin(), inputs.end(), embedding) == inputs.end()) continue;
      net_.embedded = output_of_[embedding] = add_arriving(layer_of(embedding.value).operations.back());
      return;
    }
  }

  void leave_for_scores() {
    const LayerId scored = layer_of(workload_.vocabulary[1].value).inputs.front();
    if (std::binary_search(own_.layers.begin(), own_.layers.end(), scored)) net_.scored = output_of_.at(scored);
  }

  /// Tokens, embedding, scores and loss. Ranks exchange what flows between these, so the scores do not read the output
  /// of a node but a value that arrives.
  void add_vocabulary() {
    const LayerId embedding = workload_.vocabulary[0], scores = workload_.vocabulary[1];
    const LayerId tokens = layer_of(embedding.value).inputs.front(), scored = layer_of(scores.value).inputs.front();
    add_layer(tokens);
    add_words(embedding, output_of_.at(tokens));
    add_words(workload_.vocabulary[2], add_words(scores, add_arriving(layer_of(scored.value).operations.back())));
    net_.counts_losses = own_.vocabulary_rank == 0;
  }

  /// Gives its output.
  int add_words(LayerId id, int input) {
    const WorkloadLayer& layer = layer_of(id.value);
    if (layer.operations.size() != 1)
      throw InputError(
          fmt::format("layer '{}' of the model '{}' does more than one operation with a vocabulary that all "
                      "ranks divide",
                      layer.name, workload_.name),
          "--backend ideal, fluid or simgrid; or plan.vocabulary: ends");
    const Operation& op = layer.operations.front();
    DividedOperation part = divide(op, {op.columns}, {.tensor = word_parts_}, {.tensor = own_.vocabulary_rank}, width_);
    layer_ = id.value;
    Node node;
    node.operation = keep(std::move(part.operation));
    node.inputs = {input};
    node.layer = id.value;
    node.slices = std::move(part.slices);
    node.first_word = part.first_word;
    node.words = part.words > 0 || !op.is_loss() ? part.words : op.columns;
    place_weights(node, layer);
    read(node);
    net_.nodes.push_back(std::move(node));
    return net_.nodes.back().output;
  }

  void add_layer(LayerId id) {
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

  /// Replaces the operation by the part of this device, and its inputs by what that part reads.
  void divide_node(Node& node, const WorkloadLayer& layer) {
    const Operation& op = layer.operations[node.place];
    require_whole_rows(op, layer);
    DividedOperation part = divide(op, column_blocks(layer.operations, node.place), degrees_, place_, width_);
    node.operation = keep(std::move(part.operation));
    node.slices = std::move(part.slices);
    node.first_word = part.first_word, node.words = part.words;
    node.all_rows = op.rows;
    node.rows = part.rows;
    const int rows = part.rows, whole_rows = op.rows / degrees_.context;
    node.first_row = place_.context * whole_rows + (rows < whole_rows ? place_.tensor * rows : 0);
    if (degrees_.tensor > 1) {
      const Layout layout = input_layout(op, sequence());
      // All heads of a latent attention read the rotated numbers of K.
      for (int& v : node.inputs)
        v = enter(op, layer, v, &v - node.inputs.data() == 2 && is_latent(op) ? Layout::Whole : layout);
      node.sums_gradient = layout == Layout::Rows || op.kind == OperationKind::HeadNorm;
      if (op.kind == OperationKind::CrossEntropy && op.division == Division::Vocabulary)
        node.exchange = Exchange::DividedLoss;
    }
    if (op.kind == OperationKind::Attention && degrees_.context > 1) divide_attention(node);
    if (op.is_loss()) net_.counts_losses = place_.tensor == 0 || node.sums_gradient;
  }

  void divide_attention(Node& node) {
    if (node.inputs.size() > 1)
      throw InputError(fmt::format("'{}' has keys from short vectors, which real backends do not divide over a context "
                                   "group",
                                   to_text(*node.operation)),
                       "context: 1; or --backend ideal, fluid or simgrid");
    switch (own_.exchange) {
      case ContextExchange::Ring:
        node.exchange = Exchange::RingKeys;
        return;
      case ContextExchange::AllGather:
        node.inputs.push_back(add_keys(node.inputs.front(), *node.operation));
        return;
      case ContextExchange::AllToAll:
        return exchange_heads(node);
    }
  }

  /// The attention gets all rows of a part of the heads; leave() gives back the rows of all heads.
  void exchange_heads(Node& node) {
    const int context = degrees_.context;
    Operation op = *node.operation;
    const HeadShape s = head_shape(op);
    node.inputs.front() = add_exchange(node.inputs.front(), Exchange::RowsToHeads,
                                       {.kind = OperationKind::Add,
                                        .inputs = {0},
                                        .rows = op.rows * context,
                                        .columns = query_key_value_columns(s) / context},
                                       layouts_[node.inputs.front()]);
    net_.nodes.back().blocks = {s.heads * s.query, s.key_value_heads * s.query, s.key_value_heads * s.value};
    op.rows *= context;
    op.heads /= context;
    op.key_value_heads = s.key_value_heads / context;
    op.head_width = s.query;
    op.columns /= context;
    node.operation = keep(op);
    node.rows = op.rows;
    node.first_row = 0;
  }

  int return_heads(const Operation& op, int value) {
    const int columns = static_cast<int>(net_.values[value].columns) * degrees_.context;
    value = add_exchange(
        value, Exchange::HeadsToRows,
        {.kind = OperationKind::Add, .inputs = {0}, .rows = op.rows / degrees_.context, .columns = columns},
        Layout::Whole);
    net_.nodes.back().blocks = {columns};
    return value;
  }

  /// Keys and values of all rows of a sample.
  int add_keys(int value, const Operation& attention) {
    const HeadShape s = head_shape(attention);
    Operation op{.kind = OperationKind::Add, .inputs = {0}};
    op.rows = attention.rows * degrees_.context;
    op.columns = s.key_value_heads * (s.query + s.value);
    return add_exchange(value, Exchange::GatherKeys, op, layouts_[value]);
  }

  /// Copies of rows, one for each active expert, go to the devices of these experts.
  int send_rows(int copies, int scores, const Operation& dispatch) {
    Operation op{.kind = OperationKind::Add, .inputs = {0}, .columns = static_cast<int>(net_.values[copies].columns)};
    op.rows = static_cast<int>(net_.values[copies].rows);
    op.experts = dispatch.experts, op.active = dispatch.active;
    const int value = add_exchange(copies, Exchange::SendRows, op, Layout::Experts);
    Node& node = net_.nodes.back();
    node.inputs.push_back(scores);
    ++net_.values[scores].users;
    node.routing = static_cast<int>(net_.nodes.size()) - 1;
    net_.values[value].routing = node.routing;
    return value;
  }

  int return_rows(int value, int active) {
    const int routing = net_.values[value].routing;
    STAGECRAFT_CHECK(routing >= 0);
    Operation op{.kind = OperationKind::Add, .inputs = {0}, .columns = static_cast<int>(net_.values[value].columns)};
    op.active = active;
    op.rows = static_cast<int>(net_.values[net_.nodes[routing].inputs.front()].rows);
    const int output = add_exchange(value, Exchange::ReturnRows, op, sequence() ? Layout::Rows : Layout::Whole);
    net_.nodes.back().routing = routing;
    return output;
  }

  /// Padding up to a capacity, and rows that are dropped above it, are for simulations alone.
  void require_all_rows(const Node& node, const WorkloadLayer& layer) const {
    const std::int64_t rows = net_.values[node.inputs.front()].rows, sent = net_.values[node.output].rows;
    if (sent == rows * node.operation->active) return;
    throw InputError(fmt::format("layer '{}' of the model '{}' sends {} in place of {} x {} to its experts: real "
                                 "backends neither drop nor pad rows",
                                 layer.name, workload_.name, pluralize(sent, "row"), node.operation->active, rows),
                     "take `capacity` out of the experts; or --backend ideal, fluid or simgrid");
  }

  const Operation* keep(Operation op) {
    return net_.divided.emplace_back(std::make_shared<const Operation>(std::move(op))).get();
  }

  /// The value in the layout that an operation reads; several that read it so share what is made for them.
  int enter(const Operation& op, const WorkloadLayer& layer, int value, Layout wanted) {
    const Layout layout = layouts_[value];
    if (layout == wanted && (layout != Layout::Whole || op.division == Division::Replicated)) return value;
    if (layout == Layout::Whole && wanted == Layout::Whole && !net_.values[value].needs_gradient) return value;
    if (layout == Layout::Columns || wanted == Layout::Columns)
      throw InputError(
          fmt::format("layer '{}' of the model '{}': '{}' reads {} columns, but its input has {} of them", layer.name,
                      workload_.name, to_text(op), wanted == Layout::Columns ? "some" : "all",
                      layout == Layout::Columns ? "some" : "all"),
          "divide the operations of the layer by columns, then by rows; or --backend ideal, fluid or simgrid");
    const auto [entry, is_new] = entered_.try_emplace({value, wanted}, -1);
    if (is_new) {
      const Exchange exchange = wanted == Layout::Rows    ? Exchange::TakeRows
                                : layout == Layout::Whole ? Exchange::Copy
                                                          : Exchange::GatherRows;
      entry->second = add_exchange(value, exchange, wanted);
    }
    return entry->second;
  }

  /// Adds up the partial sums of an operation.
  int leave(const Operation& op, int value) {
    if (op.kind == OperationKind::Attention && degrees_.context > 1 && own_.exchange == ContextExchange::AllToAll)
      value = return_heads(op, value);
    if (degrees_.tensor == 1) return value;
    layouts_[value] = makes_partial_sums(op) ? Layout::Whole : output_layout(op, sequence());
    if (!makes_partial_sums(op)) return value;
    return sequence() ? add_exchange(value, Exchange::SumRows, Layout::Rows)
                      : add_exchange(value, Exchange::Sum, Layout::Whole);
  }

  int add_exchange(int value, Exchange exchange, Layout layout) {
    const Value& from = net_.values[value];
    Operation op{.kind = OperationKind::Add, .inputs = {0}, .columns = static_cast<int>(from.columns)};
    op.rows = static_cast<int>(from.rows);
    if (exchange == Exchange::GatherRows) op.rows *= degrees_.tensor;
    if (exchange == Exchange::TakeRows || exchange == Exchange::SumRows) op.rows /= degrees_.tensor;
    return add_exchange(value, exchange, op, layout);
  }
  int add_exchange(int value, Exchange exchange, const Operation& op, Layout layout) {
    ++net_.values[value].users;
    Node node;
    node.operation = keep(op);
    node.inputs = {value};
    node.layer = layer_;
    node.exchange = exchange;
    node.output = add_value(op, net_.values[value].needs_gradient);
    net_.values[node.output].is_wide = net_.values[value].is_wide;
    layouts_[node.output] = layout;
    net_.nodes.push_back(node);
    return node.output;
  }

  /// Marks what the node reads, and makes its output.
  void read(Node& node) {
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

  void place_weights(Node& node, const WorkloadLayer& layer) {
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

  /// Whether these weights are of experts, whose copies are on other devices than the copies of dense layers.
  bool is_apart(const Node& node) const {
    const bool experts_differ = degrees_.tensor > 1 || degrees_.expert > 1 || degrees_.expert_tensor > 1;
    return experts_differ && node.operation->division == Division::Experts;
  }

  void put_experts_last() {
    net_.dense_weights = net_.weights;
    for (Node& node : net_.nodes)
      if (node.count > 0 && is_apart(node)) node.weights += net_.dense_weights;
    net_.weights += expert_weights_;
  }

  /// The word of operations that share their weights.
  static const std::string& tie_of(const WorkloadLayer& layer, const Operation& op) {
    return op.kind == OperationKind::Tensor ? op.tensor->tie : layer.tie;
  }

  static bool has_tie(const WorkloadLayer& layer, const std::string& tie) {
    return std::any_of(layer.operations.begin(), layer.operations.end(),
                       [&](const Operation& op) { return op.parameters() > 0 && tie_of(layer, op) == tie; });
  }

  void require_ties_here(const WorkloadLayer& layer, const std::string& tie) const {
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
  int layer_ = 0;                             ///< The layer that is being added.
  std::map<LayerId, int> output_of_;          ///< Value of each layer.
  std::map<std::string, std::int64_t> tied_;  ///< Tie to place of weights.
  Degrees degrees_;
  GroupPlace place_;
  int word_parts_;
  std::vector<Layout> layouts_;                    ///< By value; all are whole without a tensor group.
  std::map<std::pair<int, Layout>, int> entered_;  ///< The value in another layout, by value and layout.
  std::int64_t expert_weights_ = 0;                ///< Numbers of weights of experts that lie apart.
  StageNet net_;
};

}  // namespace

std::size_t width_of(const Workload& workload) {
  const Precision& p = workload.precision;
  const bool equal = p.weight == p.activation && p.weight == p.gradient;
  if (!equal || (p.weight != kMixedWidth && p.weight != 4 && p.weight != 8))
    throw InputError(
        fmt::format("the model '{}' has numbers of {}, {} and {} bytes (weights, gradients, activations), which this "
                    "backend does not compute with",
                    workload.name, p.weight, p.gradient, p.activation),
        "--set model.precision=fp32, fp64 or mixed");
  return static_cast<std::size_t>(p.weight);
}

StageNet compile_stage(const Workload& workload, StageId stage, std::size_t width) {
  return Compiler(workload, stage, width, {}, {}, 1).run();
}

StageNet compile_part(const Workload& workload, StageId stage, const GroupPlace& place, std::size_t width) {
  return Compiler(workload, stage, width, workload.stages[stage].degrees, place, workload.vocabulary_ranks).run();
}

}  // namespace stagecraft::real
