// Turns the nodes of a graph into tensor operations: arithmetic, products, norms, softmax and selections, as exporters
// of Transformers and dense networks write them, and the image_operations of networks for images.

#include "models/onnx/computation.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "models/onnx/elementwise.hpp"
#include "models/onnx/image_operations.hpp"

namespace stagecraft::onnx {

namespace {

/// Whether a node of this type gives the numbers of its first input in their order.
bool is_reshape(std::string_view type) {
  static constexpr std::string_view kTypes[] = {"Reshape", "Flatten", "Squeeze", "Unsqueeze", "Identity", "Dropout"};
  return std::find(std::begin(kTypes), std::end(kTypes), type) != std::end(kTypes);
}

Shape contiguous_strides(const Shape& shape) {
  Shape strides(shape.size());
  std::int64_t stride = 1;
  for (std::size_t d = shape.size(); d-- > 0; stride *= shape[d]) strides[d] = stride;
  return strides;
}

/// Whether real backends can count the numbers of a shape.
bool is_countable(const Shape& shape) {
  return numbers_of(shape) > 0 && numbers_of(shape) <= std::numeric_limits<std::int32_t>::max();
}

/// The last dimension is that of columns. Where nothing can be computed, the output has no rows.
Operation with_rows(Operation op, const Shape& shape) {
  const bool has_columns = is_countable(shape) && !shape.empty();
  op.columns = has_columns ? static_cast<int>(shape.back()) : 1;
  op.rows = is_countable(shape) ? static_cast<int>(numbers_of(shape)) / op.columns : 0;
  op.per_token = false;
  return op;
}

}  // namespace

/// Writes the operations of one layer.
class LayerOperations {
  using enum TensorFunction;

  /// An operand, and where its numbers come from.
  struct ResolvedOperand {
    TensorOperand operand;
    int input = 0;             ///< Inputs: as in Operation::inputs.
    std::string weights = {};  ///< Weights: the initializer.
  };

 public:
  LayerOperations(const Computation& computation, const std::vector<LayerId>& inputs)
      : computation_(computation), inputs_(inputs) {}

  Operations of_input(int id) {
    const Tensor& tensor = value(id).tensor;
    const bool looked_up = computation_.words_.contains(id);
    if (!is_countable(tensor.shape)) {
      unknown(fmt::format("input '{}'", value(id).name), id);
      return std::move(operations_);
    }
    if (!is_float(tensor.type) && !looked_up) {  // A mask: all of it counts.
      const TensorShape strides(tensor.shape.size(), 0);
      add({.function = View, .name = "Ones", .shape = tensor.shape, .strides = strides}, {number(1)});
      return std::move(operations_);
    }
    Operation op = with_rows({}, tensor.shape);
    if (looked_up) op.rows *= std::exchange(op.columns, 1);
    return {op};
  }

  Operations of_value(int id) {
    compute(id);
    return std::move(operations_);
  }

  Operations of_loss(int id, OperationKind kind) {
    const ResolvedOperand read = resolve(id);
    Operation op = with_rows({.kind = kind, .inputs = {read.input}}, read.operand.shape);
    operations_.push_back(op);
    return std::move(operations_);
  }

 private:
  const Value& value(int id) const { return computation_.graph_.values[id]; }
  const Step* step_of(int id) const {
    return value(id).step < 0 ? nullptr : &computation_.graph_.steps[value(id).step];
  }

  static ResolvedOperand number(double x) { return {{OperandSource::Constant, {}, {x}}}; }

  /// The numbers of a value: sent by another layer, known from the file, or computed here.
  ResolvedOperand resolve(int id) {
    const Value& v = value(id);
    if (const auto it = computed_.find(id); it != computed_.end()) return it->second;
    if (const auto it = computation_.layer_of_.find(id); it != computation_.layer_of_.end()) {
      const auto input = std::find(inputs_.begin(), inputs_.end(), it->second);
      STAGECRAFT_CHECK(input != inputs_.end());
      return {{OperandSource::Input, v.tensor.shape}, static_cast<int>(-1 - (input - inputs_.begin()))};
    }
    const Step* const step = step_of(id);
    const bool is_in_file = !step || step->inputs.empty();
    if (v.weights && is_in_file)
      return {{OperandSource::Weights, v.tensor.shape, v.tensor.values.value_or(std::vector<double>{})}, 0, v.name};
    if (v.tensor.constant && v.tensor.values && !v.weights)
      return {{OperandSource::Constant, v.tensor.shape, *v.tensor.values}};
    return compute(id);
  }

  ResolvedOperand resolve_input(const Step& step, std::size_t i) { return resolve(step.inputs.at(i)); }

  ResolvedOperand compute(int id) {
    const Step* const step = step_of(id);
    ResolvedOperand result = step ? emit(*step, id) : unknown(fmt::format("constant '{}'", value(id).name), id);
    result.operand.shape = value(id).tensor.shape;
    return computed_[id] = result;
  }

  /// Adds an operation, and copies of weights where its function takes none, or one operand alone.
  ResolvedOperand add(TensorOperation tensor, std::vector<ResolvedOperand> operands) {
    Operation op = with_rows({.kind = OperationKind::Tensor}, tensor.shape);
    bool has_weights = !takes_weights(tensor.function);
    for (ResolvedOperand& o : operands)
      if (o.operand.source == OperandSource::Weights && std::exchange(has_weights, true)) o = copy_of(std::move(o));
    for (ResolvedOperand& o : operands) {
      if (o.operand.source == OperandSource::Input) op.inputs.push_back(o.input);
      if (o.operand.source == OperandSource::Weights && computation_.tied_) tensor.tie = readable(o.weights);
      tensor.operands.push_back(std::move(o.operand));
    }
    if (tensor.function == Product || tensor.function == Convolution) op.inner = static_cast<int>(inner_of(tensor));
    const TensorShape shape = tensor.shape;
    op.tensor = std::make_shared<const TensorOperation>(std::move(tensor));
    operations_.push_back(std::move(op));
    return {{OperandSource::Input, shape}, static_cast<int>(operations_.size()) - 1};
  }

  /// How many products each number of the output sums.
  static std::int64_t inner_of(const TensorOperation& op) {
    const TensorShape &a = op.operands[0].shape, &b = op.operands[1].shape;
    if (op.function == Convolution) return stagecraft::numbers_of(b) / b.front();
    return a[a.size() - (op.first_transposed ? 2 : 1)];
  }

  ResolvedOperand copy_of(ResolvedOperand o) {
    const TensorShape shape = o.operand.shape;
    return add({.function = View, .name = "Copy", .shape = shape, .strides = contiguous_strides(shape)},
               {std::move(o)});
  }

  ResolvedOperand unknown(std::string name, int id) {
    return add({.function = Unknown, .name = std::move(name), .shape = value(id).tensor.shape}, {});
  }

  ResolvedOperand emit(const Step& step, int id) {
    const std::string& name = step.node->type;
    if (!is_countable(value(id).tensor.shape) || !step.node->domain.empty()) return unknown(name, id);
    if (name == "Gather") return select(step, id);
    if (name == "Cast") return cast(step, id);
    if (step.work.view) return view(step, id);
    if (step.outputs.front() != id) return unknown(name, id);
    if (const TensorFunction f = elementwise_function(name); f != Unknown) return elementwise(f, step, id);
    if (name == "MatMul") return product(step, id, false, false);
    if (name == "Gemm") return gemm(step, id);
    if (name == "Softmax") return softmax(step, id);
    if (name == "LayerNormalization") return norm(step, id, Normalize);
    if (name == "RMSNormalization" || name == "SimplifiedLayerNormalization") return norm(step, id, Scale);
    if (name == "ReduceMean" || name == "ReduceSum") return reduction(step, id);
    if (name == "Concat") return concat(step, id);
    if (is_image_operator(name)) return image(step, id);
    if (name == "Clip") return clip(step, id);
    if (name == "HardSigmoid" || name == "HardSwish") return hard_sigmoid(step, id);
    if (name == "LeakyRelu") return leaky_relu(step, id);
    if (name == "Gelu") return gelu(step, id);
    if (name == "ConstantOfShape") return filled(step, id);
    return unknown(name, id);
  }

  OperatorCall call_of(const Step& step) const {
    std::vector<const Tensor*> inputs;
    for (const int input : step.inputs) inputs.push_back(input < 0 ? nullptr : &value(input).tensor);
    return {*find_operator(step.node->domain, step.node->type), *step.node, std::move(inputs), computation_.opset_};
  }

  TensorOperation with(TensorFunction function, const Step& step, int id) const {
    return {.function = function, .name = step.node->type, .shape = value(id).tensor.shape};
  }

  ResolvedOperand view(const Step& step, int id) {
    const Tensor& y = value(id).tensor;
    const std::string& name = step.node->type;
    if (step.outputs.front() != id && name != "Split") return unknown(name, id);
    if (is_reshape(name)) return resolve_input(step, 0);
    if (y.strides.empty()) return unknown(name, id);
    TensorOperation op = with(View, step, id);
    op.offset = y.offset;
    op.strides = y.strides;
    return add(std::move(op), {resolve_input(step, 0)});
  }

  ResolvedOperand cast(const Step& step, int id) {
    const Type to = value(id).tensor.type, from = value(step.inputs.front()).tensor.type;
    if (is_float(to) || to == from || from == Type::Bool) return resolve_input(step, 0);
    if (to == Type::Bool) return add(with(Not, step, id), {add(with(Not, step, id), {resolve_input(step, 0)})});
    return is_float(from) ? unknown("Cast to whole numbers", id) : resolve_input(step, 0);
  }

  ResolvedOperand elementwise(TensorFunction function, const Step& step, int id) {
    const std::string& name = step.node->type;
    if (function == Divide && !is_float(value(id).tensor.type)) return unknown("Div of whole numbers", id);
    const bool has_all = std::find(step.inputs.begin(), step.inputs.end(), -1) == step.inputs.end();
    if (!has_all || (!is_variadic(name) && step.inputs.size() != operand_count(function))) return unknown(name, id);
    std::vector<ResolvedOperand> operands;
    for (std::size_t i = 0; i < step.inputs.size(); ++i) operands.push_back(resolve_input(step, i));
    if (function == Power && operands[1].operand.source != OperandSource::Constant)
      return unknown("Pow with a computed exponent", id);
    if (name.starts_with("Greater")) std::swap(operands[0], operands[1]);
    if (!is_variadic(name)) return add(with(function, step, id), std::move(operands));
    ResolvedOperand joined = operands.front();
    for (std::size_t i = 1; i < operands.size(); ++i) joined = add(with(function, step, id), {joined, operands[i]});
    return operands.size() > 1 ? joined : copy_of(std::move(joined));
  }

  /// A factor with a Transpose of two dimensions taken into the product.
  ResolvedOperand factor(int id, bool& transposed) {
    const Step* const step = step_of(id);
    const Tensor& y = value(id).tensor;
    const bool turns = step && step->node->type == "Transpose" && y.shape.size() == 2 && y.strides.front() == 1 &&
                       (y.shape.front() == 1 || y.strides.back() != 1) && !transposed;
    if (!turns) return resolve(id);
    transposed = true;
    return resolve(step->inputs.front());
  }

  ResolvedOperand product(const Step& step, int id, bool first_transposed, bool second_transposed) {
    ResolvedOperand a = resolve_input(step, 0), b = factor(step.inputs.at(1), second_transposed);
    if (first_transposed && second_transposed) return unknown("product of two transposed matrices", id);
    TensorShape &left = a.operand.shape, &right = b.operand.shape;
    if (stagecraft::numbers_of(left) == 0) return unknown("product of no numbers", id);
    if (left.size() == 1) left.insert(left.begin(), 1);
    if (right.size() == 1) right.push_back(1);
    const std::int64_t columns = right[right.size() - (second_transposed ? 2 : 1)];
    if (right.size() == 2 && !first_transposed) left = {stagecraft::numbers_of(left) / left.back(), left.back()};
    TensorOperation op = with(Product, step, id);
    const TensorShape leading = leading_dimensions(left, right);
    op.shape = leading;
    op.shape.push_back(left[left.size() - (first_transposed ? 1 : 2)]);
    op.shape.push_back(columns);
    op.first_transposed = first_transposed;
    op.second_transposed = second_transposed;
    return add(std::move(op), {std::move(a), std::move(b)});
  }

  /// The dimensions of a product before the last two.
  static TensorShape leading_dimensions(const TensorShape& left, const TensorShape& right) {
    const TensorShape& longer = left.size() >= right.size() ? left : right;
    const TensorShape& shorter = left.size() >= right.size() ? right : left;
    TensorShape leading(longer.begin(), longer.end() - 2);
    for (std::size_t back = 3; back <= shorter.size(); ++back) {
      std::int64_t& size = leading[longer.size() - back];
      if (size == 1) size = shorter[shorter.size() - back];
    }
    return leading;
  }

  ResolvedOperand gemm(const Step& step, int id) {
    const OperatorCall call = call_of(step);
    for (const char* factor : {"alpha", "beta"})
      if (const Attribute* a = call.attribute(factor); a && a->real.value_or(1) != 1)
        return unknown(fmt::format("Gemm with {}", factor), id);
    ResolvedOperand y = product(step, id, call.integer("transA", 0) != 0, call.integer("transB", 0) != 0);
    if (!call.has(2)) return y;
    return add(with(Add, step, id), {std::move(y), resolve_input(step, 2)});
  }

  /// Before opset 13 a softmax is over all dimensions from its axis on.
  ResolvedOperand softmax(const Step& step, int id) {
    const OperatorCall call = call_of(step);
    const Shape& shape = value(id).tensor.shape;
    const bool over_all = computation_.opset_ < 13;
    const std::size_t axis = call.axis(call.integer("axis", over_all ? 1 : -1), shape.size());
    if (!over_all && axis + 1 != shape.size()) return unknown("Softmax over another dimension than the last", id);
    TensorOperation op = with(Softmax, step, id);
    op.length = numbers_from(shape, axis);
    return add(std::move(op), {resolve_input(step, 0)});
  }

  static std::int64_t numbers_from(const Shape& shape, std::size_t axis) {
    return stagecraft::numbers_of(TensorShape(shape.begin() + static_cast<std::ptrdiff_t>(axis), shape.end()));
  }

  ResolvedOperand norm(const Step& step, int id, TensorFunction function) {
    const OperatorCall call = call_of(step);
    const Shape& shape = value(id).tensor.shape;
    TensorOperation op = with(function, step, id);
    op.length = numbers_from(shape, call.axis(call.integer("axis", -1), shape.size()));
    op.epsilon = call.real("epsilon", 1e-5);
    ResolvedOperand y = add(std::move(op), {resolve_input(step, 0)});
    if (call.has(1)) y = add(with(Multiply, step, id), {std::move(y), resolve_input(step, 1)});
    if (call.has(2)) y = add(with(Add, step, id), {std::move(y), resolve_input(step, 2)});
    return y;
  }

  /// The output has all dimensions of the input, of which the reduced ones have one entry.
  ResolvedOperand reduction(const Step& step, int id) {
    const OperatorCall call = call_of(step);
    const Shape& x = value(step.inputs.front()).tensor.shape;
    const std::vector<std::int64_t> axes = call.attribute_or_input("axes", 1).value_or(std::vector<std::int64_t>{});
    if (axes.empty() && call.integer("noop_with_empty_axes", 0) != 0) return resolve_input(step, 0);
    TensorOperation op = with(step.node->type == "ReduceSum" ? Sum : Mean, step, id);
    op.shape = axes.empty() ? Shape(x.size(), 1) : x;
    for (const std::int64_t axis : axes) op.shape[call.axis(axis, x.size())] = 1;
    return add(std::move(op), {resolve_input(step, 0)});
  }

  ResolvedOperand concat(const Step& step, int id) {
    const OperatorCall call = call_of(step);
    TensorOperation op = with(Concat, step, id);
    op.axis = call.axis(call.integer("axis", 1), op.shape.size());
    std::vector<ResolvedOperand> operands;
    for (std::size_t i = 0; i < step.inputs.size(); ++i) operands.push_back(resolve_input(step, i));
    return add(std::move(op), std::move(operands));
  }

  /// Entries that the file names, or rows of a table that words of the data name.
  ResolvedOperand select(const Step& step, int id) {
    const OperatorCall call = call_of(step);
    const Tensor& indices = call.input(1);
    const Shape& x = call.input(0).shape;
    const std::size_t axis = call.axis(call.integer("axis", 0), x.size());
    ResolvedOperand from = resolve_input(step, 0);
    if (indices.constant && indices.values) {
      TensorOperation op = with(Select, step, id);
      op.axis = axis;
      for (const std::int64_t i : call.integer_values(1)) {
        if (i < -x[axis] || i >= x[axis]) call.fail(fmt::format("index {} of {}", i, x[axis]));
        op.indices.push_back(i < 0 ? i + x[axis] : i);
      }
      return add(std::move(op), {std::move(from)});
    }
    const bool is_table = from.operand.source == OperandSource::Weights && x.size() == 2 && axis == 0;
    const ResolvedOperand words = resolve_input(step, 1);
    if (!is_table || words.operand.source != OperandSource::Input) return unknown("Gather of data", id);
    Operation op = with_rows({.kind = OperationKind::Embedding, .inputs = {words.input}}, value(id).tensor.shape);
    op.inner = static_cast<int>(x.front());
    op.positions = false;
    operations_.push_back(op);
    return {{OperandSource::Input, value(id).tensor.shape}, static_cast<int>(operations_.size()) - 1};
  }

  ResolvedOperand per_channel(const Step& step, std::size_t i, const Shape& shape) {
    ResolvedOperand y = resolve_input(step, i);
    y.operand.shape = channel_shape(shape);
    return y;
  }

  /// Operators with an image_operation(). The last input of a Conv or a BatchNormalization is added to each channel.
  ResolvedOperand image(const Step& step, int id) {
    const OperatorCall call = call_of(step);
    const Shape& shape = value(id).tensor.shape;
    TensorOperation op = image_operation(call, shape);
    if (op.function == Unknown) return unknown(op.name, id);
    const bool is_norm = op.function == BatchNorm;
    std::vector<ResolvedOperand> operands{resolve_input(step, 0)};
    if (is_norm && operands[0].operand.source == OperandSource::Weights)
      operands[0] = copy_of(std::move(operands[0]));  // The gradient of a norm reads its input.
    if (op.function == Convolution) operands.push_back(resolve_input(step, 1));
    if (is_norm) operands.push_back(per_channel(step, 1, shape));
    for (TensorOperand& o : std::exchange(op.operands, {})) operands.push_back({std::move(o)});
    ResolvedOperand y = add(std::move(op), std::move(operands));
    if (!call.has(2)) return y;
    return add(with(Add, step, id), {std::move(y), per_channel(step, 2, shape)});
  }

  /// Bounds are inputs since opset 11, attributes before.
  ResolvedOperand clip(const Step& step, int id) {
    const OperatorCall call = call_of(step);
    ResolvedOperand x = resolve_input(step, 0);
    bool is_bounded = false;
    for (const std::size_t i : {std::size_t{1}, std::size_t{2}}) {
      const TensorFunction function = i == 1 ? Maximum : Minimum;
      const Attribute* const bound = call.attribute(i == 1 ? "min" : "max");
      if (!call.has(i) && !bound) continue;
      is_bounded = true;
      x = add(with(function, step, id),
              {std::move(x), bound ? number(bound->real.value_or(0)) : resolve_input(step, i)});
    }
    return is_bounded ? x : copy_of(std::move(x));
  }

  /// h = min(max(alpha x + beta, 0), 1); HardSwish is x h with alpha = 1/6 and beta = 1/2 (Howard et al., 2019).
  ResolvedOperand hard_sigmoid(const Step& step, int id) {
    const bool swish = step.node->type == "HardSwish";
    const ResolvedOperand x = resolve_input(step, 0);
    const OperatorCall call = call_of(step);
    const double alpha = swish ? 1.0 / 6 : call.real("alpha", 0.2), beta = swish ? 0.5 : call.real("beta", 0.5);
    ResolvedOperand y = add(with(Multiply, step, id), {x, number(alpha)});
    y = add(with(Add, step, id), {std::move(y), number(beta)});
    y = add(with(Maximum, step, id), {std::move(y), number(0)});
    y = add(with(Minimum, step, id), {std::move(y), number(1)});
    return swish ? add(with(Multiply, step, id), {x, std::move(y)}) : y;
  }

  /// max(x, alpha x), or min(x, alpha x) if alpha > 1.
  ResolvedOperand leaky_relu(const Step& step, int id) {
    const double alpha = call_of(step).real("alpha", 0.01);
    const ResolvedOperand x = resolve_input(step, 0);
    return add(with(alpha > 1 ? Minimum : Maximum, step, id), {x, add(with(Multiply, step, id), {x, number(alpha)})});
  }

  ResolvedOperand gelu(const Step& step, int id) {
    const bool by_tanh = call_of(step).text("approximate", "none") == "tanh";
    return add(with(by_tanh ? GeluTanh : Gelu, step, id), {resolve_input(step, 0)});
  }

  ResolvedOperand filled(const Step& step, int id) {
    const Attribute* const given = call_of(step).attribute("value");
    const bool is_known = !given || (given->tensor && given->tensor->values && given->tensor->values->size() == 1);
    if (!is_known) return unknown(step.node->type, id);
    TensorOperation op = with(View, step, id);
    op.strides.assign(op.shape.size(), 0);
    return add(std::move(op), {number(given ? given->tensor->values->front() : 0)});
  }

  const Computation& computation_;
  const std::vector<LayerId>& inputs_;
  Operations operations_;
  std::map<int, ResolvedOperand> computed_;
};

Computation::Computation(const Graph& graph, std::int64_t opset, const ImportedLayers& layers, bool tied)
    : graph_(graph), opset_(opset), layers_(layers), tied_(tied) {
  for (std::size_t l = 0; l < layers.values.size(); ++l) layer_of_.emplace(layers.values[l], LayerId{l});
  for (const Step& step : graph.steps)
    if (step.node->type == "Gather" && !step.constant && !graph.values[step.inputs.at(1)].tensor.constant)
      words_.insert(graph.values[step.inputs[1]].view_source);
}

Operations Computation::of_layer(LayerId id) const {
  const int sent = layers_.values[id.value];
  LayerOperations operations(*this, layers_.model.layers[id].inputs);
  return graph_.values[sent].step < 0 ? operations.of_input(sent) : operations.of_value(sent);
}

LayerId Computation::output_layer() const { return layer_of_.at(graph_.values[graph_.outputs.front()].view_source); }

Operations Computation::of_loss(OperationKind kind) const {
  const std::vector<LayerId> inputs{output_layer()};
  return LayerOperations(*this, inputs).of_loss(graph_.outputs.front(), kind);
}

}  // namespace stagecraft::onnx
