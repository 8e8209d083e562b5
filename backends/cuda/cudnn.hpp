#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "backends/cuda/libraries.hpp"

/// The part of the backend API of cuDNN 9 that this project calls. It is declared here, with the values of cuDNN 9.19,
/// because a CUDA Toolkit comes without the headers of cuDNN: a build needs neither them nor the library.
/// tests/backends/cuda/cudnn_test.cpp compares every value with the headers where they are.
namespace stagecraft::cuda::cudnn {

using Descriptor = void*;
using Handle = void*;
using Status = int;
constexpr Status kSuccess = 0;
constexpr std::size_t kOldest = 90800;  ///< The first version that plans for device properties instead of a handle.

enum DescriptorType : int {
  PointwiseRule = 0,
  Engine = 2,
  EngineConfiguration = 3,
  EngineHeuristics = 4,
  Plan = 5,
  PointwiseOperation = 13,
  Graph = 15,
  VariantPack = 16,
  TensorDescriptor = 17,
  MatmulRule = 18,
  MatmulOperation = 19,
  ReductionRule = 21,
  ReductionOperation = 22,
  ReshapeOperation = 31,
  DeviceProperties = 38,
};

enum Attribute : int {
  PointwiseModeOf = 0,
  PointwiseType = 1,
  PointwiseAxis = 9,
  HeuristicsMode = 200,
  HeuristicsGraph = 201,
  HeuristicsResults = 202,
  HeuristicsDevice = 204,
  ConfigurationEngine = 300,
  PlanConfiguration = 401,
  PlanWorkspace = 402,
  PlanDevice = 407,
  PointwiseRuleOf = 750,
  PointwiseX = 751,
  PointwiseB = 752,
  PointwiseY = 753,
  PointwiseT = 758,
  GraphOperations = 801,
  TensorAlignment = 900,
  TensorType = 901,
  TensorDimensions = 902,
  TensorStrides = 903,
  TensorId = 906,
  TensorIsVirtual = 907,
  TensorIsByValue = 908,
  PackIds = 1000,
  PackPointers = 1001,
  PackWorkspace = 1003,
  EngineNumericalNotes = 1303,
  MatmulType = 1500,
  MatmulA = 1520,
  MatmulB = 1521,
  MatmulC = 1522,
  MatmulRuleOf = 1523,
  ReductionOperator = 1600,
  ReductionType = 1601,
  ReductionX = 1610,
  ReductionY = 1611,
  ReductionRuleOf = 1612,
  ReshapeX = 2200,
  ReshapeY = 2201,
  DeviceNumber = 2700,
  DeviceJson = 2702,
};

enum AttributeType : int {
  OfDataType = 1,
  OfBoolean = 2,
  OfInt64 = 3,
  OfPointer = 6,
  OfHeuristicsMode = 8,
  OfNumericalNote = 11,
  OfPointwiseMode = 14,
  OfDescriptor = 15,
  OfReductionOperator = 18,
  OfInt32 = 23,
  OfChar = 24,
};

enum class DataType : int { Float = 0, Int32 = 4, Bfloat16 = 9, Boolean = 11 };

enum class Pointwise : int {
  Multiply = 1,
  Add = 0,
  Divide = 6,
  Subtract = 9,
  Exp = 13,
  Log = 15,
  GreaterOrEqual = 303,
  Index = 501,   ///< The index along an axis.
  Select = 601,  ///< t ? x : b.
};

enum class Reduce : int { Sum = 0, Maximum = 3 };

constexpr int kHeuristics = 3;        ///< CUDNN_HEUR_MODE_A.
constexpr int kNotDeterministic = 4;  ///< CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC.
constexpr int kMostNumericalNotes = 10;

/// The functions. The library loads the libraries of its engines itself, from its folder.
struct Library {
  cuda::Library library{{"libcudnn.so.9"}};

#define STAGECRAFT_CUDNN(result, name, ...) \
  result (*name)(__VA_ARGS__) = reinterpret_cast<result (*)(__VA_ARGS__)>(library.symbol(#name))
  STAGECRAFT_CUDNN(std::size_t, cudnnGetVersion, );
  STAGECRAFT_CUDNN(const char*, cudnnGetErrorString, Status);
  STAGECRAFT_CUDNN(void, cudnnGetLastErrorString, char* message, std::size_t size);
  STAGECRAFT_CUDNN(Status, cudnnCreate, Handle*);
  STAGECRAFT_CUDNN(Status, cudnnSetStream, Handle, cudaStream_t);
  STAGECRAFT_CUDNN(Status, cudnnBackendCreateDescriptor, DescriptorType, Descriptor*);
  STAGECRAFT_CUDNN(Status, cudnnBackendDestroyDescriptor, Descriptor);
  STAGECRAFT_CUDNN(Status, cudnnBackendFinalize, Descriptor);
  STAGECRAFT_CUDNN(Status, cudnnBackendSetAttribute, Descriptor, Attribute, AttributeType, std::int64_t count,
                   const void* values);
  STAGECRAFT_CUDNN(Status, cudnnBackendGetAttribute, Descriptor, Attribute, AttributeType, std::int64_t wanted,
                   std::int64_t* count, void* values);
  STAGECRAFT_CUDNN(Status, cudnnBackendExecute, Handle, Descriptor plan, Descriptor pack);
#undef STAGECRAFT_CUDNN
};

/// Loaded on first use; throws CudaError where it is not there or older than kOldest.
const Library& library();
/// "9.19.0".
std::string version(const Library& = library());

}  // namespace stagecraft::cuda::cudnn
