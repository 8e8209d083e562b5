// The part of StageCompiler that gives a device of a tensor, context or expert group its part of an operation, and adds
// what the devices exchange between operations.

#include <fmt/core.h>

#include "backends/real/stage_compiler.hpp"
#include "sim/core/diagnostic.hpp"

namespace stagecraft::real {

void StageCompiler::divide_node(Node& node, const WorkloadLayer& layer) {
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

void StageCompiler::divide_attention(Node& node) {
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

void StageCompiler::exchange_heads(Node& node) {
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

int StageCompiler::return_heads(const Operation& op, int value) {
  const int columns = static_cast<int>(net_.values[value].columns) * degrees_.context;
  value =
      add_exchange(value, Exchange::HeadsToRows,
                   {.kind = OperationKind::Add, .inputs = {0}, .rows = op.rows / degrees_.context, .columns = columns},
                   Layout::Whole);
  net_.nodes.back().blocks = {columns};
  return value;
}

int StageCompiler::add_keys(int value, const Operation& attention) {
  const HeadShape s = head_shape(attention);
  Operation op{.kind = OperationKind::Add, .inputs = {0}};
  op.rows = attention.rows * degrees_.context;
  op.columns = s.key_value_heads * (s.query + s.value);
  return add_exchange(value, Exchange::GatherKeys, op, layouts_[value]);
}

int StageCompiler::send_rows(int copies, int scores, const Operation& dispatch) {
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

int StageCompiler::return_rows(int value, int active) {
  const int routing = net_.values[value].routing;
  STAGECRAFT_CHECK(routing >= 0);
  Operation op{.kind = OperationKind::Add, .inputs = {0}, .columns = static_cast<int>(net_.values[value].columns)};
  op.active = active;
  op.rows = static_cast<int>(net_.values[net_.nodes[routing].inputs.front()].rows);
  const int output = add_exchange(value, Exchange::ReturnRows, op, sequence() ? Layout::Rows : Layout::Whole);
  net_.nodes.back().routing = routing;
  return output;
}

void StageCompiler::require_whole_rows(const Operation& op, const WorkloadLayer& layer) {
  if (op.kind == OperationKind::Prepend || op.kind == OperationKind::FirstRow)
    throw InputError(fmt::format("layer '{}' changes the number of rows of a sample ({}), which real backends do not "
                                 "divide over a group",
                                 layer.name, to_text(op)),
                     "take group out of the plan; or --backend ideal, fluid or simgrid");
}

void StageCompiler::require_all_rows(const Node& node, const WorkloadLayer& layer) const {
  const std::int64_t rows = net_.values[node.inputs.front()].rows, sent = net_.values[node.output].rows;
  if (sent == rows * node.operation->active) return;
  throw InputError(fmt::format("layer '{}' of the model '{}' sends {} in place of {} x {} to its experts: real "
                               "backends neither drop nor pad rows",
                               layer.name, workload_.name, pluralize(sent, "row"), node.operation->active, rows),
                   "take `capacity` out of the experts; or --backend ideal, fluid or simgrid");
}

int StageCompiler::enter(const Operation& op, const WorkloadLayer& layer, int value, Layout wanted) {
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

int StageCompiler::leave(const Operation& op, int value) {
  if (op.kind == OperationKind::Attention && degrees_.context > 1 && own_.exchange == ContextExchange::AllToAll)
    value = return_heads(op, value);
  if (degrees_.tensor == 1) return value;
  layouts_[value] = makes_partial_sums(op) ? Layout::Whole : output_layout(op, sequence());
  if (!makes_partial_sums(op)) return value;
  return sequence() ? add_exchange(value, Exchange::SumRows, Layout::Rows)
                    : add_exchange(value, Exchange::Sum, Layout::Whole);
}

int StageCompiler::add_exchange(int value, Exchange exchange, Layout layout) {
  const Value& from = net_.values[value];
  Operation op{.kind = OperationKind::Add, .inputs = {0}, .columns = static_cast<int>(from.columns)};
  op.rows = static_cast<int>(from.rows);
  if (exchange == Exchange::GatherRows) op.rows *= degrees_.tensor;
  if (exchange == Exchange::TakeRows || exchange == Exchange::SumRows) op.rows /= degrees_.tensor;
  return add_exchange(value, exchange, op, layout);
}

int StageCompiler::add_exchange(int value, Exchange exchange, const Operation& op, Layout layout) {
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

}  // namespace stagecraft::real
