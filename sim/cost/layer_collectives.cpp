// Derives the collectives of a layer from how its operations are divided over tensor, context and expert groups.

#include "sim/cost/layer_collectives.hpp"

#include <algorithm>
#include <cmath>

namespace stagecraft {
namespace {

using enum CollectiveKind;

class CollectiveList {
 public:
  CollectiveList(const std::vector<Operation>& operations, const StageShape& shape, const NodeShape& node,
                 const Load& load, double number_bytes, double dispatch_bytes)
      : operations_(operations),
        shape_(shape),
        node_(node),
        degrees_(shape.degrees),
        number_bytes_(number_bytes),
        dispatch_ratio_(dispatch_bytes > 0 ? dispatch_bytes / number_bytes : 1),
        load_(load),
        divided_(operations.size(), false),
        gathered_(operations.size(), false) {}

  EachPass<Collectives> lists(const std::vector<bool>& only) {
    for (int i = 0; i < std::ssize(operations_); ++i) {
      const Operation& op = operations_[i];
      is_listed_ = only.empty() || only[i];
      if (degrees_.tensor > 1) divide_by_tensor(i);
      if (degrees_.context > 1 && op.kind == OperationKind::Attention) divide_by_context(op);
      if (op.kind == OperationKind::Dispatch || op.kind == OperationKind::Combine) exchange_rows(op);
    }
    return std::move(lists_);
  }

 private:
  /// Rows of the operation on one context rank.
  double rows_of(const Operation& op) const {
    return load_.samples / degrees_.context * op.rows * load_.rows_factor(op);
  }
  Bytes bytes_of(const Operation& op) const { return Bytes{rows_of(op) * op.columns * number_bytes_}; }
  void add(Pass pass, const Collective& c) {
    if (!is_listed_) return;
    (pass == Pass::Forward         ? lists_.forward
     : pass == Pass::InputGradient ? lists_.input_gradient
                                   : lists_.weight_gradient)
        .push_back(c);
  }
  void add(Pass pass, Axis axis, CollectiveKind kind, Bytes bytes) {
    add(pass, {.axis = axis, .of_experts = axis == Axis::Expert, .kind = kind, .bytes = bytes});
  }

  static bool is_view(const Operation& op) { return op.kind == OperationKind::Slice; }

  bool is_divided(int input) const { return input >= 0 && divided_[input]; }

  /// Whether the operation makes sums that its group still has to add up.
  static bool makes_partial_sums(const Operation& op) {
    return op.division == Division::Row || (op.division == Division::Vocabulary && op.kind == OperationKind::Embedding);
  }

  void divide_by_tensor(int i) {
    const Operation& op = operations_[i];
    if (is_view(op) || op.division == Division::Replicated) {
      divided_[i] = is_view(op) && !op.inputs.empty() && is_divided(op.inputs.front());
      return;
    }
    if (op.division == Division::Experts) return;
    if (op.kind == OperationKind::CrossEntropy) {
      for (int sum = 0; sum < 3; ++sum) add(Pass::Forward, Axis::Tensor, AllReduce, Bytes{rows_of(op) * 4});
      return;
    }
    if (makes_partial_sums(op)) {
      add(Pass::Forward, Axis::Tensor, degrees_.sequence ? ReduceScatter : AllReduce, bytes_of(op));
      if (degrees_.sequence) add(Pass::InputGradient, Axis::Tensor, AllGather, bytes_of(op));
      return;
    }
    divided_[i] = true;
    for (const int input : op.inputs)
      if (!is_divided(input)) gather(op, input);
  }

  /// An undivided array that a divided operation reads; several that read it need it once.
  void gather(const Operation& op, int input) {
    if (input >= 0) {
      if (gathered_[input]) return;
      gathered_[input] = true;
    } else {
      if (std::find(gathered_inputs_.begin(), gathered_inputs_.end(), input) != gathered_inputs_.end()) return;
      gathered_inputs_.push_back(input);
    }
    const bool is_linear = op.kind == OperationKind::Linear;
    const Bytes bytes = input >= 0 ? bytes_of(operations_[input])
                                   : Bytes{rows_of(op) * (is_linear ? op.inner : op.columns) * number_bytes_};
    if (!degrees_.sequence) return add(Pass::InputGradient, Axis::Tensor, AllReduce, bytes);
    add(Pass::Forward, Axis::Tensor, AllGather, bytes);
    add(Pass::InputGradient, Axis::Tensor, ReduceScatter, bytes);
    if (is_linear) add(Pass::WeightGradient, Axis::Tensor, AllGather, bytes);
  }

  void divide_by_context(const Operation& op) {
    const HeadShape heads = head_shape(op);
    if (load_.exchanged == 0) return;
    const double rows = rows_of(op) * load_.exchanged * number_bytes_ / degrees_.tensor;
    const Bytes keys{rows * heads.key_value_heads * (heads.query + heads.value)};
    if (shape_.exchange == ContextExchange::AllToAll) {
      const Bytes queries{rows * heads.heads * heads.query}, result{rows * heads.heads * heads.value};
      for (const Pass pass : {Pass::Forward, Pass::InputGradient}) {
        add(pass, Axis::Context, AllToAll, queries + keys);
        add(pass, Axis::Context, AllToAll, result);
      }
      return;
    }
    const Bytes gathered = keys * degrees_.context;
    if (shape_.exchange == ContextExchange::AllGather) {
      add(Pass::Forward, Axis::Context, AllGather, gathered);
      add(Pass::InputGradient, Axis::Context, AllGather, gathered);
      add(Pass::InputGradient, Axis::Context, ReduceScatter, gathered);
      return;
    }
    const auto pass_around = [&](Pass pass, Bytes bytes) {
      add(pass, {.axis = Axis::Context, .kind = AllGather, .bytes = bytes, .ring = true});
    };
    pass_around(Pass::Forward, gathered);
    pass_around(Pass::InputGradient, gathered * 2);
  }

  /// A Dispatch has the rows of all copies, a Combine the rows of tokens.
  void exchange_rows(const Operation& op) {
    const bool dispatches = op.kind == OperationKind::Dispatch;
    if (shape_.dispatcher == ExpertDispatch::AllGather) return gather_all_rows(op);
    const Bytes rows = bytes_of(op) * ((dispatches ? 1 : op.active) * op.imbalance / degrees_.tensor);
    if (degrees_.expert > 1)
      for (const Pass pass : {Pass::Forward, Pass::InputGradient})
        exchange(op, pass, rows * (dispatches == (pass == Pass::Forward) ? dispatch_ratio_ : 1));
    if (degrees_.expert_tensor == 1) return;
    const Bytes gathered = rows * degrees_.expert_tensor;
    add(Pass::Forward, Axis::Expert, dispatches ? AllGather : ReduceScatter, gathered);
    add(Pass::InputGradient, Axis::Expert, dispatches ? ReduceScatter : AllGather, gathered);
  }

  /// Each device gets the rows of tokens of all others, and the group adds up what its experts make of them, whoever
  /// chose them (MoEAllGatherTokenDispatcher of Megatron-LM). A Dispatch has rows for all copies, padded to the
  /// capacity of experts; its router has a row for each token.
  void gather_all_rows(const Operation& op) {
    const bool dispatches = op.kind == OperationKind::Dispatch;
    const double devices = degrees_.expert * degrees_.expert_tensor;
    if (devices == 1) return;
    const Operation& tokens = dispatches ? operations_[op.inputs.at(1)] : op;
    const Bytes rows{rows_of(tokens) * op.columns * number_bytes_ / degrees_.tensor};
    add(Pass::Forward, Axis::Expert, dispatches ? AllGather : ReduceScatter, rows * devices);
    add(Pass::InputGradient, Axis::Expert, dispatches ? ReduceScatter : AllGather, rows * devices);
  }

  void exchange(const Operation& op, Pass pass, Bytes bytes) {
    Collective c{.axis = Axis::Expert,
                 .of_experts = true,
                 .kind = AllToAll,
                 .bytes = bytes,
                 .combines = op.kind == OperationKind::Combine};
    const int nodes = expert_group(degrees_, node_).nodes();
    if (shape_.dispatcher != ExpertDispatch::PerNode || op.active <= 0 || nodes == 1) return add(pass, c);
    c.part = GroupPart::InsideNodes;
    add(pass, c);
    c.part = GroupPart::AcrossNodes;
    c.bytes = across_nodes(bytes, op, nodes);
    c.parallel = true;
    add(pass, c);
  }

  /// With one copy of a row for each node, a row that goes to k experts on N nodes leaves its own for an expected
  /// (N - 1)(1 - (1 - 1/N)^k) others, or for M (N - 1)/N where it goes to M nodes; inside, all its copies move. Where
  /// experts are in G < N groups, a row has M of them, on S = M ceil(N/G) nodes, and goes to an expected S (1 - (1 -
  /// 1/S)^k) of these. This is the array that the members of equal place on all nodes exchange so that each row leaves
  /// as often.
  static Bytes across_nodes(Bytes bytes, const Operation& op, double nodes) {
    const auto missed = [&](double among) {  // Not std::pow, whose last bit depends on the machine.
      double share = 1;
      for (int k = 0; k < op.active; ++k) share *= 1 - 1 / among;
      return share;
    };
    const auto reached = [&](double among) { return among * (1 - missed(among)); };
    const bool spans_nodes = op.groups > 0 && nodes > op.groups;
    const double limit = std::min(nodes, spans_nodes ? op.nodes * std::ceil(nodes / op.groups) : 1.0 * op.nodes);
    const double others =
        op.nodes > 0 ? (spans_nodes ? reached(limit) : limit) * (nodes - 1) / nodes : (nodes - 1) * (1 - missed(nodes));
    return bytes * (others / op.active * nodes / (nodes - 1));
  }

  const std::vector<Operation>& operations_;
  const StageShape& shape_;
  const NodeShape& node_;
  const Degrees& degrees_;
  double number_bytes_;
  double dispatch_ratio_;  ///< Bytes of a dispatched number over the bytes of any other.
  Load load_;              ///< A context rank has a part of its rows.
  bool is_listed_ = true;  ///< Whether collectives of the operation are asked for.
  std::vector<bool> divided_, gathered_;
  std::vector<int> gathered_inputs_;
  EachPass<Collectives> lists_;
};

}  // namespace

EachPass<Collectives> collectives_of(const std::vector<Operation>& operations, const StageShape& shape,
                                     const NodeShape& node, const Load& load, double number_bytes,
                                     double dispatch_bytes, const std::vector<bool>& only) {
  return CollectiveList(operations, shape, node, load, number_bytes, dispatch_bytes).lists(only);
}

}  // namespace stagecraft
