// Describes graphs of operations to cuDNN's backend API and chooses an engine for them; attention_plan.cpp builds its
// graphs with it.

#include "backends/cuda/cudnn_graph.hpp"

#include <algorithm>

#include <fmt/core.h>

namespace stagecraft::cuda::cudnn {

const Library& library() {
  static const Library loaded;
  if (const std::size_t version = loaded.cudnnGetVersion(); version < kOldest)
    throw CudaError(fmt::format("{} has version {}, which is older than {}", loaded.library.where(), version, kOldest));
  return loaded;
}

std::string version(const Library& loaded) {
  const std::size_t v = loaded.cudnnGetVersion();
  return fmt::format("{}.{}.{}", v / 10000, v / 100 % 100, v % 100);
}

void require(Status status, const char* what) {
  if (status == kSuccess) return;
  std::array<char, 512> why{};
  library().cudnnGetLastErrorString(why.data(), why.size());
  throw Refusal(fmt::format("{}: {} ({})", what, library().cudnnGetErrorString(status), why.data()));
}

OwnedDescriptor::OwnedDescriptor(DescriptorType type) {
  require(library().cudnnBackendCreateDescriptor(type, &raw_), "a descriptor of cuDNN");
}

OwnedDescriptor::~OwnedDescriptor() {
  if (raw_) library().cudnnBackendDestroyDescriptor(raw_);
}

OwnedDescriptor& OwnedDescriptor::set(Attribute name, AttributeType type, std::int64_t count, const void* values) {
  require(library().cudnnBackendSetAttribute(raw_, name, type, count, values),
          fmt::format("attribute {} for cuDNN", static_cast<int>(name)).c_str());
  return *this;
}

std::int64_t OwnedDescriptor::get(Attribute name, AttributeType type, std::int64_t wanted, void* values) const {
  std::int64_t count = 0;
  require(library().cudnnBackendGetAttribute(raw_, name, type, wanted, &count, values),
          fmt::format("attribute {} of cuDNN", static_cast<int>(name)).c_str());
  return count;
}

OwnedDescriptor& OwnedDescriptor::finish() {
  require(library().cudnnBackendFinalize(raw_), "a description for cuDNN");
  return *this;
}

OwnedDescriptor device_properties(int gpu) {
  OwnedDescriptor device(DeviceProperties);
  device.set(DeviceNumber, OfInt32, std::int32_t{gpu}).finish();
  return device;
}

Descriptor OperationGraph::keep(OwnedDescriptor&& descriptor) {
  return descriptors_.emplace_back(std::move(descriptor)).raw();
}

void OperationGraph::add(OwnedDescriptor&& operation) {
  operation.finish();
  operations_.push_back(keep(std::move(operation)));
}

Descriptor OperationGraph::tensor(const Array& array, std::int64_t id, Residence place) {
  constexpr std::int64_t kAlignment = 16;  // What the engines load at once, and what all arrays here have.
  OwnedDescriptor t(TensorDescriptor);
  t.set(TensorType, OfDataType, array.type);
  t.set(TensorDimensions, OfInt64, std::span<const std::int64_t>(array.sizes));
  t.set(TensorStrides, OfInt64, std::span<const std::int64_t>(array.strides));
  t.set(TensorId, OfInt64, id);
  t.set(TensorAlignment, OfInt64, kAlignment);
  t.set(TensorIsVirtual, OfBoolean, place == Residence::Nowhere);
  t.set(TensorIsByValue, OfBoolean, place == Residence::Host);
  t.finish();
  return keep(std::move(t));
}

void OperationGraph::matmul(Descriptor a, Descriptor b, Descriptor c) {
  OwnedDescriptor rule(MatmulRule), operation(MatmulOperation);
  rule.set(MatmulType, OfDataType, DataType::Float).finish();
  operation.set(MatmulRuleOf, keep(std::move(rule)));
  operation.set(MatmulA, a).set(MatmulB, b).set(MatmulC, c);
  add(std::move(operation));
}

void OperationGraph::pointwise_into(Pointwise mode, Descriptor y, Descriptor x, Descriptor b, Descriptor select,
                                    DataType type) {
  OwnedDescriptor rule(PointwiseRule), operation(PointwiseOperation);
  rule.set(PointwiseModeOf, OfPointwiseMode, mode).set(PointwiseType, OfDataType, type).finish();
  operation.set(PointwiseRuleOf, keep(std::move(rule))).set(PointwiseX, x).set(PointwiseY, y);
  if (b) operation.set(PointwiseB, b);
  if (select) operation.set(PointwiseT, select);
  add(std::move(operation));
}

Descriptor OperationGraph::pointwise(Pointwise mode, const Array& result, Descriptor x, Descriptor b, Descriptor select,
                                     DataType type) {
  const Descriptor y = between(result);
  pointwise_into(mode, y, x, b, select, type);
  return y;
}

Descriptor OperationGraph::index(std::int64_t axis, const Array& like, Descriptor x) {
  const Descriptor y = between({like.sizes, like.strides, DataType::Int32});
  OwnedDescriptor rule(PointwiseRule), operation(PointwiseOperation);
  rule.set(PointwiseModeOf, OfPointwiseMode, Pointwise::Index).set(PointwiseType, OfDataType, DataType::Float);
  rule.set(PointwiseAxis, OfInt64, axis).finish();
  operation.set(PointwiseRuleOf, keep(std::move(rule))).set(PointwiseX, x).set(PointwiseY, y);
  add(std::move(operation));
  return y;
}

Descriptor OperationGraph::reduce(Reduce how, const Array& result, Descriptor x) {
  const Descriptor y = between(result);
  OwnedDescriptor rule(ReductionRule), operation(ReductionOperation);
  rule.set(ReductionOperator, OfReductionOperator, how).set(ReductionType, OfDataType, DataType::Float).finish();
  operation.set(ReductionRuleOf, keep(std::move(rule))).set(ReductionX, x).set(ReductionY, y);
  add(std::move(operation));
  return y;
}

Descriptor OperationGraph::reshape(const Array& result, Descriptor x) {
  const Descriptor y = between(result);
  OwnedDescriptor operation(ReshapeOperation);
  operation.set(ReshapeX, x).set(ReshapeY, y);
  add(std::move(operation));
  return y;
}

namespace {

/// False as well for a configuration that the device does not support, which cuDNN left empty.
bool gives_equal_bits(const OwnedDescriptor& configuration) {
  const OwnedDescriptor engine(Engine);
  Descriptor raw = engine.raw();
  std::int64_t engines = 0;
  const Status status =
      library().cudnnBackendGetAttribute(configuration.raw(), ConfigurationEngine, OfDescriptor, 1, &engines, &raw);
  if (status != kSuccess) return false;
  std::array<int, kMostNumericalNotes> notes{};
  const std::int64_t count = engine.get(EngineNumericalNotes, OfNumericalNote, std::ssize(notes), notes.data());
  return std::find(notes.begin(), notes.begin() + count, kNotDeterministic) == notes.begin() + count;
}

}  // namespace

std::vector<OwnedDescriptor> OperationGraph::configurations(const OwnedDescriptor& device) const {
  OwnedDescriptor graph(Graph), heuristics(EngineHeuristics);
  graph.set(GraphOperations, OfDescriptor, std::span<const Descriptor>(operations_)).finish();
  heuristics.set(HeuristicsGraph, graph).set(HeuristicsMode, OfHeuristicsMode, kHeuristics);
  heuristics.set(HeuristicsDevice, device).finish();
  std::vector<OwnedDescriptor> offered;
  std::vector<Descriptor> raw;
  const std::int64_t named = heuristics.get(HeuristicsResults, OfDescriptor, 0, nullptr);
  for (std::int64_t i = 0; i < named; ++i) raw.push_back(offered.emplace_back(EngineConfiguration).raw());
  // cuDNN writes only those that the device supports.
  if (named > 0) heuristics.get(HeuristicsResults, OfDescriptor, named, raw.data());
  return offered;
}

ExecutionPlan OperationGraph::plan(const OwnedDescriptor& device) const {
  const std::vector<OwnedDescriptor> offered = configurations(device);
  std::string why =
      fmt::format("none of the {} configurations of cuDNN is supported and gives equal bits", offered.size());
  bool is_first = true;
  for (const OwnedDescriptor& configuration : offered) {
    if (!gives_equal_bits(configuration)) continue;
    try {
      ExecutionPlan result{OwnedDescriptor(Plan)};
      result.plan.set(PlanConfiguration, configuration).set(PlanDevice, device).finish();
      result.plan.get(PlanWorkspace, OfInt64, 1, &result.workspace);
      return result;
    } catch (const Refusal& refusal) {
      if (std::exchange(is_first, false)) why = refusal.what();
    }
  }
  throw Refusal(why);
}

}  // namespace stagecraft::cuda::cudnn
