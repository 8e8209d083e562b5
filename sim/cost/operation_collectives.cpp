#include "sim/cost/operation_collectives.hpp"

#include <algorithm>

namespace stagecraft {
namespace {

using enum CollectiveKind;

class CollectiveList {
 public:
  CollectiveList(const std::vector<Operation>& operations, const StageShape& shape, double samples, double number_bytes,
                 double dispatch_bytes)
      : operations_(operations),
        shape_(shape),
        degrees_(shape.degrees),
        number_bytes_(number_bytes),
        dispatch_ratio_(dispatch_bytes > 0 ? dispatch_bytes / number_bytes : 1),
        samples_(samples / shape.degrees.context),
        divided_(operations.size(), false),
        gathered_(operations.size(), false) {}

  std::vector<LayerCollective> list() {
    for (int i = 0; i < std::ssize(operations_); ++i) {
      const Operation& op = operations_[i];
      if (degrees_.tensor > 1) divide_by_tensor(i);
      if (degrees_.context > 1 && op.kind == OperationKind::Attention) divide_by_context(op);
      if (op.kind == OperationKind::Dispatch || op.kind == OperationKind::Combine) exchange_rows(op);
    }
    return std::move(list_);
  }

 private:
  Bytes bytes_of(const Operation& op) const { return Bytes{samples_ * op.rows * op.columns * number_bytes_}; }
  void add(Pass pass, Axis axis, CollectiveKind kind, Bytes bytes) { list_.push_back({pass, axis, kind, bytes}); }

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
      for (int sum = 0; sum < 3; ++sum) add(Pass::Forward, Axis::Tensor, AllReduce, Bytes{samples_ * op.rows * 4});
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
                                   : Bytes{samples_ * op.rows * (is_linear ? op.inner : op.columns) * number_bytes_};
    if (!degrees_.sequence) return add(Pass::InputGradient, Axis::Tensor, AllReduce, bytes);
    add(Pass::Forward, Axis::Tensor, AllGather, bytes);
    add(Pass::InputGradient, Axis::Tensor, ReduceScatter, bytes);
    if (is_linear) add(Pass::WeightGradient, Axis::Tensor, AllGather, bytes);
  }

  void divide_by_context(const Operation& op) {
    const HeadShape heads = head_shape(op);
    const double rows = samples_ * op.rows * number_bytes_ / degrees_.tensor;
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
    list_.push_back({.pass = Pass::Forward, .axis = Axis::Context, .kind = AllGather, .bytes = gathered, .ring = true});
    list_.push_back(
        {.pass = Pass::InputGradient, .axis = Axis::Context, .kind = AllGather, .bytes = gathered * 2, .ring = true});
  }

  /// A Dispatch has the rows of all copies, a Combine the rows of tokens.
  void exchange_rows(const Operation& op) {
    const bool dispatches = op.kind == OperationKind::Dispatch;
    const Bytes rows = bytes_of(op) * ((dispatches ? 1 : op.active) * op.imbalance / degrees_.tensor);
    if (degrees_.expert > 1)
      for (const Pass pass : {Pass::Forward, Pass::InputGradient})
        list_.push_back({.pass = pass,
                         .axis = Axis::Expert,
                         .kind = AllToAll,
                         .bytes = rows * (dispatches == (pass == Pass::Forward) ? dispatch_ratio_ : 1),
                         .active = op.active,
                         .nodes = op.nodes,
                         .combines = !dispatches});
    if (degrees_.expert_tensor == 1) return;
    const Bytes gathered = rows * degrees_.expert_tensor;
    add(Pass::Forward, Axis::Expert, dispatches ? AllGather : ReduceScatter, gathered);
    add(Pass::InputGradient, Axis::Expert, dispatches ? ReduceScatter : AllGather, gathered);
  }

  const std::vector<Operation>& operations_;
  const StageShape& shape_;
  const Degrees& degrees_;
  double number_bytes_;
  double dispatch_ratio_;  ///< Bytes of a dispatched number over the bytes of any other.
  double samples_;         ///< Samples of one context rank.
  std::vector<bool> divided_, gathered_;
  std::vector<int> gathered_inputs_;
  std::vector<LayerCollective> list_;
};

}  // namespace

std::vector<LayerCollective> collectives_of(const std::vector<Operation>& operations, const StageShape& shape,
                                            double samples, double number_bytes, double dispatch_bytes) {
  return CollectiveList(operations, shape, samples, number_bytes, dispatch_bytes).list();
}

}  // namespace stagecraft
