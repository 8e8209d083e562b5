// What the real cuDNN says of the operations of an attention. It needs no GPU for that: engines are chosen for the
// properties of a GPU, which are given here as text. Nothing is executed.
#include "backends/cuda/cudnn.hpp"

#include <dlfcn.h>

#include <doctest/doctest.h>

#include "backends/cuda/attention_plan.hpp"

#if __has_include(<cudnn_graph.h>)
#include <cudnn_graph.h>
#endif

using namespace stagecraft::cuda;

namespace {

/// An H200: compute capability 9.0, 132 multiprocessors.
constexpr std::string_view kH200 = R"({"cudaDeviceId":0,"deviceName":"H200","deviceVer":900,"driverVer":13000,
"maxGridSize":[2147483647,65535,65535],"maxBlockSize":[1024,1024,64],"regsPerBlock":65536,"multiProcessorCount":132,
"smClockRateKHz":1980000,"memClockRateKHz":3201000,"l2CacheSize":52428800,"warpSize":32,
"maxSharedMemoryPerBlock":49152,"maxSharedMemoryPerBlockOptin":232448,"reservedSharedMemoryPerBlock":1024,
"maxRegistersPerSM":65536,"pciDeviceId":0,"maxCtasPerSM":32,"maxThreadsPerBlock":1024,"maxThreadsPerSM":2048,
"isTccDriver":0,"supportCoopLaunch":1,"totalGlobalMem":150754820096})";

/// Whether there is a cuDNN whose engines can be asked. They look for the driver's library, of which the toolkit has
/// one without a driver in it.
bool has_cudnn() {
  try {
    cudnn::library();
  } catch (const CudaError& e) {
    MESSAGE(e.what());
    return false;
  }
  for (const char* name : {"libcuda.so.1", "/usr/local/cuda/lib64/stubs/libcuda.so"})
    if (dlopen(name, RTLD_NOW | RTLD_GLOBAL)) return true;
  MESSAGE("libcuda.so.1 is not there");
  return false;
}

cudnn::OwnedDescriptor h200() {
  cudnn::OwnedDescriptor device(cudnn::DeviceProperties);
  device.set(cudnn::DeviceJson, cudnn::OfChar, std::span<const char>(kH200)).finish();
  return device;
}

/// How many of the configurations that cuDNN names are ones that it supports.
int supported(const cudnn::OperationGraph& graph, const cudnn::OwnedDescriptor& device) {
  int count = 0;
  for (const cudnn::OwnedDescriptor& configuration : graph.configurations(device)) try {
      const cudnn::OwnedDescriptor engine(cudnn::Engine);
      cudnn::Descriptor raw = engine.raw();
      count += configuration.get(cudnn::ConfigurationEngine, cudnn::OfDescriptor, 1, &raw) == 1;
    } catch (const cudnn::Refusal&) {
    }
  return count;
}

std::string why_no_plan(const cudnn::OperationGraph& graph, const cudnn::OwnedDescriptor& device) {
  try {
    graph.plan(device);
    return "";
  } catch (const cudnn::Refusal& refusal) {
    return refusal.what();
  }
}

}  // namespace

TEST_CASE("cuDNN supports the forward and the backward of attention on an H200, in every shape that is asked for") {
  if (!has_cudnn()) return;
  const cudnn::OwnedDescriptor device = h200();
  for (const bool causal : {false, true})
    for (const AttentionShape& shape :
         {AttentionShape{4, 16, 1024, 64, causal}, AttentionShape{4, 16, 1024, 128, causal},
          AttentionShape{3, 2, 12, 8, causal}, AttentionShape{1, 1, 3, 16, causal}}) {
      CAPTURE(shape.rows);
      CAPTURE(shape.width);
      CHECK(supported(AttentionPlan::forward_graph(shape), device) > 0);
      CHECK(supported(AttentionPlan::backward_graph(shape), device) > 0);
    }
}

TEST_CASE("without a GPU a plan fails only where the driver has to load the kernel that was compiled") {
  if (!has_cudnn()) return;
  const cudnn::OwnedDescriptor device = h200();
  const AttentionShape shape{2, 4, 128, 64, true};
  for (const cudnn::OperationGraph& graph :
       {AttentionPlan::forward_graph(shape), AttentionPlan::backward_graph(shape)}) {
    const std::string why = why_no_plan(graph, device);
    CHECK((why.empty() || why.find("cuLibraryLoadData") != std::string::npos));
  }
}

TEST_CASE("cuDNN refuses a head that is not a multiple of eight numbers wide, and says so") {
  if (!has_cudnn()) return;
  const cudnn::OwnedDescriptor device = h200();
  const AttentionShape shape{1, 2, 16, 4, false};
  CHECK(supported(AttentionPlan::forward_graph(shape), device) == 0);
  CHECK(why_no_plan(AttentionPlan::forward_graph(shape), device).find("configurations of cuDNN") != std::string::npos);
}

TEST_CASE("a descriptor with a wrong attribute is a Refusal with what cuDNN says") {
  if (!has_cudnn()) return;
  cudnn::OwnedDescriptor tensor(cudnn::TensorDescriptor);
  CHECK_THROWS_WITH_AS(tensor.finish(), doctest::Contains("CUDNN_STATUS_BAD_PARAM"), cudnn::Refusal);
}

#ifdef CUDNN_GRAPH_MAJOR
namespace {
// NOLINTBEGIN: names of cuDNN.
#define STAGECRAFT_SAME(ours, theirs) static_assert(static_cast<int>(cudnn::ours) == static_cast<int>(theirs))
STAGECRAFT_SAME(PointwiseRule, CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
STAGECRAFT_SAME(Engine, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
STAGECRAFT_SAME(EngineConfiguration, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
STAGECRAFT_SAME(EngineHeuristics, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
STAGECRAFT_SAME(Plan, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
STAGECRAFT_SAME(PointwiseOperation, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
STAGECRAFT_SAME(Graph, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
STAGECRAFT_SAME(VariantPack, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
STAGECRAFT_SAME(TensorDescriptor, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
STAGECRAFT_SAME(MatmulRule, CUDNN_BACKEND_MATMUL_DESCRIPTOR);
STAGECRAFT_SAME(MatmulOperation, CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
STAGECRAFT_SAME(ReductionRule, CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
STAGECRAFT_SAME(ReductionOperation, CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR);
STAGECRAFT_SAME(ReshapeOperation, CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR);
STAGECRAFT_SAME(DeviceProperties, CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
STAGECRAFT_SAME(PointwiseModeOf, CUDNN_ATTR_POINTWISE_MODE);
STAGECRAFT_SAME(PointwiseType, CUDNN_ATTR_POINTWISE_MATH_PREC);
STAGECRAFT_SAME(PointwiseAxis, CUDNN_ATTR_POINTWISE_AXIS);
STAGECRAFT_SAME(HeuristicsMode, CUDNN_ATTR_ENGINEHEUR_MODE);
STAGECRAFT_SAME(HeuristicsGraph, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
STAGECRAFT_SAME(HeuristicsResults, CUDNN_ATTR_ENGINEHEUR_RESULTS);
STAGECRAFT_SAME(HeuristicsDevice, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP);
STAGECRAFT_SAME(ConfigurationEngine, CUDNN_ATTR_ENGINECFG_ENGINE);
STAGECRAFT_SAME(PlanConfiguration, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
STAGECRAFT_SAME(PlanWorkspace, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE);
STAGECRAFT_SAME(PlanDevice, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP);
STAGECRAFT_SAME(PointwiseRuleOf, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR);
STAGECRAFT_SAME(PointwiseX, CUDNN_ATTR_OPERATION_POINTWISE_XDESC);
STAGECRAFT_SAME(PointwiseB, CUDNN_ATTR_OPERATION_POINTWISE_BDESC);
STAGECRAFT_SAME(PointwiseY, CUDNN_ATTR_OPERATION_POINTWISE_YDESC);
STAGECRAFT_SAME(PointwiseT, CUDNN_ATTR_OPERATION_POINTWISE_TDESC);
STAGECRAFT_SAME(GraphOperations, CUDNN_ATTR_OPERATIONGRAPH_OPS);
STAGECRAFT_SAME(TensorAlignment, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT);
STAGECRAFT_SAME(TensorType, CUDNN_ATTR_TENSOR_DATA_TYPE);
STAGECRAFT_SAME(TensorDimensions, CUDNN_ATTR_TENSOR_DIMENSIONS);
STAGECRAFT_SAME(TensorStrides, CUDNN_ATTR_TENSOR_STRIDES);
STAGECRAFT_SAME(TensorId, CUDNN_ATTR_TENSOR_UNIQUE_ID);
STAGECRAFT_SAME(TensorIsVirtual, CUDNN_ATTR_TENSOR_IS_VIRTUAL);
STAGECRAFT_SAME(TensorIsByValue, CUDNN_ATTR_TENSOR_IS_BY_VALUE);
STAGECRAFT_SAME(PackIds, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
STAGECRAFT_SAME(PackPointers, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
STAGECRAFT_SAME(PackWorkspace, CUDNN_ATTR_VARIANT_PACK_WORKSPACE);
STAGECRAFT_SAME(EngineNumericalNotes, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE);
STAGECRAFT_SAME(MatmulType, CUDNN_ATTR_MATMUL_COMP_TYPE);
STAGECRAFT_SAME(MatmulA, CUDNN_ATTR_OPERATION_MATMUL_ADESC);
STAGECRAFT_SAME(MatmulB, CUDNN_ATTR_OPERATION_MATMUL_BDESC);
STAGECRAFT_SAME(MatmulC, CUDNN_ATTR_OPERATION_MATMUL_CDESC);
STAGECRAFT_SAME(MatmulRuleOf, CUDNN_ATTR_OPERATION_MATMUL_DESC);
STAGECRAFT_SAME(ReductionOperator, CUDNN_ATTR_REDUCTION_OPERATOR);
STAGECRAFT_SAME(ReductionType, CUDNN_ATTR_REDUCTION_COMP_TYPE);
STAGECRAFT_SAME(ReductionX, CUDNN_ATTR_OPERATION_REDUCTION_XDESC);
STAGECRAFT_SAME(ReductionY, CUDNN_ATTR_OPERATION_REDUCTION_YDESC);
STAGECRAFT_SAME(ReductionRuleOf, CUDNN_ATTR_OPERATION_REDUCTION_DESC);
STAGECRAFT_SAME(ReshapeX, CUDNN_ATTR_OPERATION_RESHAPE_XDESC);
STAGECRAFT_SAME(ReshapeY, CUDNN_ATTR_OPERATION_RESHAPE_YDESC);
STAGECRAFT_SAME(DeviceNumber, CUDNN_ATTR_DEVICEPROP_DEVICE_ID);
STAGECRAFT_SAME(DeviceJson, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION);
STAGECRAFT_SAME(OfDataType, CUDNN_TYPE_DATA_TYPE);
STAGECRAFT_SAME(OfBoolean, CUDNN_TYPE_BOOLEAN);
STAGECRAFT_SAME(OfInt64, CUDNN_TYPE_INT64);
STAGECRAFT_SAME(OfPointer, CUDNN_TYPE_VOID_PTR);
STAGECRAFT_SAME(OfHeuristicsMode, CUDNN_TYPE_HEUR_MODE);
STAGECRAFT_SAME(OfNumericalNote, CUDNN_TYPE_NUMERICAL_NOTE);
STAGECRAFT_SAME(OfPointwiseMode, CUDNN_TYPE_POINTWISE_MODE);
STAGECRAFT_SAME(OfDescriptor, CUDNN_TYPE_BACKEND_DESCRIPTOR);
STAGECRAFT_SAME(OfReductionOperator, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE);
STAGECRAFT_SAME(OfInt32, CUDNN_TYPE_INT32);
STAGECRAFT_SAME(OfChar, CUDNN_TYPE_CHAR);
STAGECRAFT_SAME(DataType::Float, CUDNN_DATA_FLOAT);
STAGECRAFT_SAME(DataType::Int32, CUDNN_DATA_INT32);
STAGECRAFT_SAME(DataType::Bfloat16, CUDNN_DATA_BFLOAT16);
STAGECRAFT_SAME(DataType::Boolean, CUDNN_DATA_BOOLEAN);
STAGECRAFT_SAME(Pointwise::Multiply, CUDNN_POINTWISE_MUL);
STAGECRAFT_SAME(Pointwise::Add, CUDNN_POINTWISE_ADD);
STAGECRAFT_SAME(Pointwise::Divide, CUDNN_POINTWISE_DIV);
STAGECRAFT_SAME(Pointwise::Subtract, CUDNN_POINTWISE_SUB);
STAGECRAFT_SAME(Pointwise::Exp, CUDNN_POINTWISE_EXP);
STAGECRAFT_SAME(Pointwise::Log, CUDNN_POINTWISE_LOG);
STAGECRAFT_SAME(Pointwise::GreaterOrEqual, CUDNN_POINTWISE_CMP_GE);
STAGECRAFT_SAME(Pointwise::Index, CUDNN_POINTWISE_GEN_INDEX);
STAGECRAFT_SAME(Pointwise::Select, CUDNN_POINTWISE_BINARY_SELECT);
STAGECRAFT_SAME(Reduce::Sum, CUDNN_REDUCE_TENSOR_ADD);
STAGECRAFT_SAME(Reduce::Maximum, CUDNN_REDUCE_TENSOR_MAX);
STAGECRAFT_SAME(kHeuristics, CUDNN_HEUR_MODE_A);
STAGECRAFT_SAME(kNotDeterministic, CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC);
STAGECRAFT_SAME(kMostNumericalNotes, CUDNN_NUMERICAL_NOTE_TYPE_COUNT);
static_assert(sizeof(cudnnStatus_t) == sizeof(cudnn::Status) && CUDNN_STATUS_SUCCESS == cudnn::kSuccess);
#undef STAGECRAFT_SAME
// NOLINTEND
}  // namespace
#endif
