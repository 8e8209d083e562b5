// Computes the shapes and the work of all nodes of an ONNX file, in its order, and which values are weights; import.cpp
// makes layers of them.

#include "models/onnx/graph.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <unordered_map>

#include "sim/core/diagnostic.hpp"
#include "sim/core/text.hpp"

namespace stagecraft::onnx {
namespace {

constexpr Operator kUnknown{"unknown", nullptr};

bool are_weights(Type type, const Shape& shape) { return is_float(type) && !shape.empty() && numbers_of(shape) > 1; }

std::string full_name(const Node& node) { return node.domain.empty() ? node.type : node.domain + "." + node.type; }

std::string help_for(const File& file, const Node& node) {
  if (std::find(file.functions.begin(), file.functions.end(), node.type) != file.functions.end())
    return "the file defines it itself; onnx.inliner puts its nodes in its place";
  const std::vector<std::string> names = operator_names();
  const auto near = closest(node.type, names);
  return (near && *near != node.type ? fmt::format("did you mean '{}'? ", *near) : "") +
         "--unknown zero counts it as no work, with the shapes that the file has";
}

/// One problem for each unknown operator.
std::vector<Diagnostic> unknown_operators(const File& file) {
  std::map<std::string, std::pair<const Node*, int>> unknown;
  for (const Node& node : file.nodes)
    if (!find_operator(node.domain, node.type)) {
      auto& [first, count] = unknown.try_emplace(full_name(node), &node, 0).first->second;
      ++count;
    }
  std::vector<Diagnostic> problems;
  for (const auto& [name, nodes] : unknown)
    problems.push_back({{},
                        {},
                        fmt::format("the operator '{}' is not known; {} node{} of it, the first '{}'", name,
                                    nodes.second, nodes.second == 1 ? "" : "s", nodes.first->name),
                        help_for(file, *nodes.first),
                        "unknown-operator"});
  return problems;
}

class GraphAnalysis {
 public:
  GraphAnalysis(const File& file, const Dimensions& dimensions) : file_(file), dimensions_(dimensions) {
    for (const auto* list : {&file.values, &file.outputs})
      for (const ValueInfo& info : *list) infos_.emplace(info.name, &info);
    for (const Constant& c : file.initializers) {
      const int id = add(c.name, {c.type, c.shape, c.values, true}, -1);
      graph_.values[id].weights = are_weights(c.type, c.shape);
    }
    for (const ValueInfo& input : data_inputs(file)) {
      const Shape shape = dimensions.bind(input).value();
      if (const std::string why = too_large(shape); !why.empty())
        throw InputError(fmt::format("the input '{}' has {}", input.name, why));
      graph_.inputs.push_back(add(input.name, {input.type, shape}, -1));
    }
  }

  Graph run() {
    for (const Node& node : file_.nodes) add_step(node);
    for (const ValueInfo& output : file_.outputs) graph_.outputs.push_back(id_of(output.name, "the graph's output"));
    if (differing_ > 0)
      graph_.warnings.push_back(fmt::format("{} in the file {} other than its operators make, the first: {}",
                                            pluralize(differing_, "shape"), differing_ == 1 ? "is" : "are",
                                            first_difference_));
    return std::move(graph_);
  }

 private:
  int add(const std::string& name, Tensor tensor, int step) {
    const int id = static_cast<int>(graph_.values.size());
    if (!name.empty() && !ids_.emplace(name, id).second)
      throw InputError(fmt::format("two things in the graph are called '{}'", name), "a name stands for one tensor");
    graph_.values.push_back({name, std::move(tensor), step, false, false, id, id});
    return id;
  }

  int id_of(const std::string& name, const std::string& reader) const {
    const auto it = ids_.find(name);
    if (it == ids_.end())
      throw InputError(fmt::format("{} reads '{}', which no node before it writes", reader, name),
                       "a node comes after the nodes whose outputs it reads");
    return it->second;
  }

  Value& value(int id) { return graph_.values[id]; }

  void add_step(const Node& node) {
    const Operator* op = find_operator(node.domain, node.type);
    Step step{&node, {}, {}, {}, false};
    std::vector<const Tensor*> inputs;
    const OperatorCall named{kUnknown, node, {}, file_.opset};
    for (const std::string& name : node.inputs) step.inputs.push_back(name.empty() ? -1 : id_of(name, named.name()));
    for (const int id : step.inputs) inputs.push_back(id < 0 ? nullptr : &value(id).tensor);
    step.work = op ? op->apply(OperatorCall{*op, node, std::move(inputs), file_.opset}) : unknown(node, named);
    add_outputs(std::move(step), named);
  }

  OperatorResult unknown(const Node& node, const OperatorCall& call) {
    OperatorResult result;
    for (const std::string& name : node.outputs) {
      const auto it = infos_.find(name);
      const auto shape = it == infos_.end() ? std::nullopt : dimensions_.bind(*it->second);
      if (!shape)
        call.fail(fmt::format("the operator is not known, and the file has no shape for '{}'", name),
                  "let onnx.shape_inference write the shapes, or take the operator out");
      result.outputs.push_back(sized(call, it->second->type, *shape));
    }
    result.gradients.assign(node.inputs.size(), GradientWork{});
    return result;
  }

  /// Adds the outputs of a step as values.
  void add_outputs(Step step, const OperatorCall& call) {
    std::vector<Tensor> outputs = std::move(step.work.outputs);
    if (outputs.size() < step.node->outputs.size())
      call.fail(fmt::format("it has {}; {} known here", pluralize(std::ssize(step.node->outputs), "output"),
                            outputs.size() == 1 ? "one is" : fmt::format("{} are", outputs.size())));
    const int index = static_cast<int>(graph_.steps.size());
    const auto is_constant = [&](int id) { return id < 0 || value(id).tensor.constant; };
    step.constant = step.work.view ? !step.inputs.empty() && is_constant(step.inputs.front())
                                   : std::all_of(step.inputs.begin(), step.inputs.end(), is_constant);
    step.constant = step.constant || (!outputs.empty() && outputs.front().constant);
    bool reached = false;
    for (std::size_t i = 0; i < step.inputs.size(); ++i) reached = reached || graph_.wants_gradient(step, i);
    for (std::size_t o = 0; o < step.node->outputs.size(); ++o) {
      Tensor& tensor = outputs[o];
      tensor.constant = step.constant;
      compare_shape(step.node->outputs[o], tensor);
      const bool carries = is_float(tensor.type) && reached;
      const bool is_weight_constant = step.inputs.empty() && are_weights(tensor.type, tensor.shape);  // A Constant.
      const int id = add(step.node->outputs[o], std::move(tensor), index);
      value(id).weights = step.constant && (carries || is_weight_constant);
      value(id).learned = !step.constant && carries;
      if (step.work.view && !step.constant) set_source(id, step.inputs.front());
      step.outputs.push_back(id);
    }
    graph_.steps.push_back(std::move(step));
  }

  /// A view shows all the numbers of its input, or a part of them.
  void set_source(int id, int input) {
    const Tensor &view = value(id).tensor, &from = value(input).tensor;
    if (view.numbers() >= from.numbers() && view.type == from.type) value(id).storage = value(input).storage;
    value(id).view_source = value(input).view_source;
  }

  void compare_shape(const std::string& name, const Tensor& tensor) {
    const auto it = infos_.find(name);
    const auto shape = it == infos_.end() ? std::nullopt : dimensions_.bind(*it->second);
    if (!shape || *shape == tensor.shape || differing_++ > 0) return;
    first_difference_ = fmt::format("'{}' is {}, not {}", name, to_text(tensor.shape), to_text(*shape));
  }

  const File& file_;
  const Dimensions& dimensions_;
  std::unordered_map<std::string, const ValueInfo*> infos_;
  std::unordered_map<std::string, int> ids_;
  Graph graph_;
  int differing_ = 0;
  std::string first_difference_;
};

}  // namespace

bool Graph::wants_gradient(const Step& step, std::size_t input) const {
  if (input >= step.work.gradients.size() || !step.work.gradients[input] || input >= step.inputs.size()) return false;
  if (step.inputs[input] < 0) return false;
  const Value& value = values[step.inputs[input]];
  return value.learned || value.weights;
}

Graph analyze_graph(const File& file, const Dimensions& dimensions, bool unknown_is_zero) {
  std::vector<Diagnostic> unknown = unknown_operators(file);
  if (!unknown.empty() && !unknown_is_zero) throw InputError(std::move(unknown));
  Graph graph = GraphAnalysis(file, dimensions).run();
  for (const Diagnostic& problem : unknown) graph.warnings.push_back(problem.message + "; it counts as no work");
  return graph;
}

}  // namespace stagecraft::onnx
