#include "tests/support/emulated_gpu/device/cudnn_objects.hpp"

#include <algorithm>
#include <cstring>

namespace stagecraft::emulated_gpu::dnn {
namespace {

struct Rule {
  DescriptorType owner;
  Attribute name;
  AttributeType type;
  std::int64_t min_count, max_count;
  bool needed = true;
};

constexpr std::int64_t kMany = 1000;
constexpr Rule kRules[] = {
    {TensorDescriptor, TensorType, OfDataType, 1, 1},
    {TensorDescriptor, TensorDimensions, OfInt64, 4, 4},
    {TensorDescriptor, TensorStrides, OfInt64, 4, 4},
    {TensorDescriptor, TensorId, OfInt64, 1, 1},
    {TensorDescriptor, TensorAlignment, OfInt64, 1, 1},
    {TensorDescriptor, TensorIsVirtual, OfBoolean, 1, 1, false},
    {TensorDescriptor, TensorIsByValue, OfBoolean, 1, 1, false},
    {PointwiseRule, PointwiseModeOf, OfPointwiseMode, 1, 1},
    {PointwiseRule, PointwiseType, OfDataType, 1, 1},
    {PointwiseRule, PointwiseAxis, OfInt64, 1, 1, false},
    {PointwiseOperation, PointwiseRuleOf, OfDescriptor, 1, 1},
    {PointwiseOperation, PointwiseX, OfDescriptor, 1, 1},
    {PointwiseOperation, PointwiseB, OfDescriptor, 1, 1, false},
    {PointwiseOperation, PointwiseT, OfDescriptor, 1, 1, false},
    {PointwiseOperation, PointwiseY, OfDescriptor, 1, 1},
    {MatmulRule, MatmulType, OfDataType, 1, 1},
    {MatmulOperation, MatmulRuleOf, OfDescriptor, 1, 1},
    {MatmulOperation, MatmulA, OfDescriptor, 1, 1},
    {MatmulOperation, MatmulB, OfDescriptor, 1, 1},
    {MatmulOperation, MatmulC, OfDescriptor, 1, 1},
    {ReductionRule, ReductionOperator, OfReductionOperator, 1, 1},
    {ReductionRule, ReductionType, OfDataType, 1, 1},
    {ReductionOperation, ReductionRuleOf, OfDescriptor, 1, 1},
    {ReductionOperation, ReductionX, OfDescriptor, 1, 1},
    {ReductionOperation, ReductionY, OfDescriptor, 1, 1},
    {ReshapeOperation, ReshapeX, OfDescriptor, 1, 1},
    {ReshapeOperation, ReshapeY, OfDescriptor, 1, 1},
    {Graph, GraphOperations, OfDescriptor, 1, kMany},
    {DeviceProperties, DeviceNumber, OfInt32, 1, 1},
    {EngineHeuristics, HeuristicsGraph, OfDescriptor, 1, 1},
    {EngineHeuristics, HeuristicsMode, OfHeuristicsMode, 1, 1},
    {EngineHeuristics, HeuristicsDevice, OfDescriptor, 1, 1},
    {Plan, PlanConfiguration, OfDescriptor, 1, 1},
    {Plan, PlanDevice, OfDescriptor, 1, 1},
    {VariantPack, PackIds, OfInt64, 1, kMany},
    {VariantPack, PackPointers, OfPointer, 1, kMany},
    {VariantPack, PackWorkspace, OfPointer, 1, 1},
};

std::size_t width_of(AttributeType type) {
  switch (type) {
    case OfInt64:
    case OfPointer:
    case OfDescriptor:
      return 8;
    case OfBoolean:
    case OfChar:
      return 1;
    default:
      return 4;  // Enumerations.
  }
}

void need(bool condition, const std::string& what) {
  if (!condition) throw Refused(what);
}

/// Each size is that of the result, or 1.
bool spreads(const Four& from, const Four& to) {
  for (std::size_t i = 0; i < 4; ++i)
    if (from[i] != to[i] && from[i] != 1) return false;
  return true;
}

void check_tensor(const Object& object) {
  const TensorInfo t(object);
  for (std::size_t i = 0; i < 4; ++i)
    need(t.sizes[i] > 0 && t.strides[i] > 0, "a size or a stride that is not positive");
  need(t.id != 0, "a tensor with the number 0");
  need(t.alignment > 0 && (t.alignment & (t.alignment - 1)) == 0, "an alignment that is no power of two");
  need(!(t.is_virtual && t.is_value), "a virtual tensor that is passed by value");
  need(!t.is_value || t.numbers() == 1, "more than one number by value");
}

void check_pointwise(const Object& operation) {
  const Object& rule = operation.object(PointwiseRuleOf);
  const auto mode = rule.one<Pointwise>(PointwiseModeOf);
  const TensorInfo y = result_of(operation);
  for (const TensorInfo& x : inputs_of(operation)) need(spreads(x.sizes, y.sizes), "arrays of different sizes");
  const bool unary = mode == Pointwise::Exp || mode == Pointwise::Log || mode == Pointwise::Index;
  need(operation.has(PointwiseB) != unary, "a pointwise operation with another number of arrays");
  need(operation.has(PointwiseT) == (mode == Pointwise::Select), "a selection without a condition, or the reverse");
  need(rule.has(PointwiseAxis) == (mode == Pointwise::Index), "an index without an axis, or the reverse");
  const DataType wanted = mode == Pointwise::GreaterOrEqual ? DataType::Boolean : DataType::Float;
  need(rule.one<DataType>(PointwiseType) == wanted, "a pointwise operation in another type");
  if (mode == Pointwise::Index) need(y.type == DataType::Int32, "an index that is not a whole number");
  if (mode == Pointwise::GreaterOrEqual) need(y.type == DataType::Boolean, "a comparison with another result");
  if (mode == Pointwise::Select)
    need(TensorInfo(operation.object(PointwiseT)).type == DataType::Boolean, "a condition of another type");
}

void check_matmul(const Object& operation) {
  const TensorInfo a(operation.object(MatmulA)), b(operation.object(MatmulB)), c(operation.object(MatmulC));
  need(operation.object(MatmulRuleOf).one<DataType>(MatmulType) == DataType::Float, "sums that are not floats");
  need(a.type == DataType::Bfloat16 && b.type == DataType::Bfloat16, "factors that are not bfloat16");
  for (std::size_t i = 0; i < 2; ++i) need(a.sizes[i] == b.sizes[i] && a.sizes[i] == c.sizes[i], "different batches");
  need(a.sizes[2] == c.sizes[2] && b.sizes[3] == c.sizes[3] && a.sizes[3] == b.sizes[2], "sizes that do not fit");
}

void check_reduction(const Object& operation) {
  const TensorInfo x(operation.object(ReductionX)), y(operation.object(ReductionY));
  need(spreads(y.sizes, x.sizes) && x.sizes != y.sizes, "nothing is reduced");
}

void check_pack(const Object& pack) {
  need(pack.list_of<std::int64_t>(PackIds).size() == pack.list_of<void*>(PackPointers).size(),
       "numbers without pointers");
}

}  // namespace

TensorInfo::TensorInfo(const Object& o)
    : id(o.one<std::int64_t>(TensorId)),
      alignment(o.one<std::int64_t>(TensorAlignment)),
      type(o.one<DataType>(TensorType)),
      is_virtual(o.has(TensorIsVirtual) && o.one<char>(TensorIsVirtual)),
      is_value(o.has(TensorIsByValue) && o.one<char>(TensorIsByValue)) {
  const auto all_sizes = o.list_of<std::int64_t>(TensorDimensions),
             all_strides = o.list_of<std::int64_t>(TensorStrides);
  std::copy(all_sizes.begin(), all_sizes.end(), sizes.begin());
  std::copy(all_strides.begin(), all_strides.end(), strides.begin());
}

std::int64_t TensorInfo::last() const {
  std::int64_t offset = 0;
  for (std::size_t i = 0; i < 4; ++i) offset += (sizes[i] - 1) * strides[i];
  return offset;
}

void Object::set(Attribute name, AttributeType kind, std::int64_t count, const void* data) {
  need(!complete, "an attribute is set after the descriptor was finished");
  const auto* const rule = std::find_if(std::begin(kRules), std::end(kRules),
                                        [&](const Rule& r) { return r.owner == type && r.name == name; });
  need(rule != std::end(kRules), "a descriptor has no attribute " + std::to_string(name));
  need(kind == rule->type, "attribute " + std::to_string(name) + " has another type");
  need(count >= rule->min_count && count <= rule->max_count && data,
       "attribute " + std::to_string(name) + " has another count");
  const char* const bytes = static_cast<const char*>(data);
  values[name] = {bytes, bytes + static_cast<std::size_t>(count) * width_of(kind)};
  if (kind == OfDescriptor)
    for (const Descriptor d : list_of<Descriptor>(name))
      need(d && static_cast<const Object*>(d)->complete, "a descriptor that was not finished");
}

void Object::finish() {
  need(!complete, "a descriptor is finished twice");
  for (const Rule& rule : kRules)
    need(rule.owner != type || !rule.needed || has(rule.name),
         "attribute " + std::to_string(rule.name) + " is not set");
  if (type == TensorDescriptor) check_tensor(*this);
  if (type == PointwiseOperation) check_pointwise(*this);
  if (type == MatmulOperation) check_matmul(*this);
  if (type == ReductionOperation) check_reduction(*this);
  if (type == VariantPack) check_pack(*this);
  if (type == Graph) tensors_of(*this);
  complete = true;
}

std::vector<TensorInfo> inputs_of(const Object& operation) {
  std::vector<TensorInfo> list;
  for (const Attribute name : {PointwiseX, PointwiseB, PointwiseT, MatmulA, MatmulB, ReductionX, ReshapeX})
    if (operation.has(name)) list.emplace_back(operation.object(name));
  return list;
}

TensorInfo result_of(const Object& operation) {
  for (const Attribute name : {PointwiseY, MatmulC, ReductionY, ReshapeY})
    if (operation.has(name)) return TensorInfo(operation.object(name));
  throw Refused("an operation without a result");
}

std::vector<const Object*> operations_of(const Object& graph) {
  std::vector<const Object*> list;
  for (const Descriptor d : graph.list_of<Descriptor>(GraphOperations)) list.push_back(static_cast<const Object*>(d));
  return list;
}

std::map<std::int64_t, TensorInfo> tensors_of(const Object& graph) {
  std::map<std::int64_t, TensorInfo> tensors;
  const auto meet = [&](const TensorInfo& t) {
    const auto [it, is_new] = tensors.try_emplace(t.id, t);
    need(it->second == t, "two tensors have the number " + std::to_string(t.id));
    return is_new;
  };

  for (const Object* const operation : operations_of(graph)) {
    for (const TensorInfo& x : inputs_of(*operation))
      need(!meet(x) || !x.is_virtual, "an operation reads a virtual tensor that nothing has made");
    const TensorInfo y = result_of(*operation);
    need(meet(y) && !y.is_value, "a tensor is made twice, or read before it is made");
  }
  return tensors;
}

}  // namespace stagecraft::emulated_gpu::dnn
