// Tells cuBLASLt what a product is (layouts, types, epilogue) and lets it choose an algorithm; matmul.cpp keeps the
// plans.

#include "backends/cuda/kernels/product_plan.hpp"

#include <array>
#include <memory>
#include <type_traits>
#include <utility>

#include <fmt/core.h>

namespace stagecraft::cuda {

const CublasLt& lt() {
  static const CublasLt loaded;
  return loaded;
}

void check_lt(cublasStatus_t status, const char* what) {
  if (status != CUBLAS_STATUS_SUCCESS) throw CudaError(fmt::format("{}: {}", what, to_text(lt(), status)));
}

namespace {

constexpr std::size_t kMostWorkspace = std::size_t{32} << 20;  // What cuBLAS itself takes on Hopper.

cudaDataType_t number_type(std::size_t width) {
  if (width == real::kMixedWidth) return CUDA_R_16BF;
  return width == sizeof(double) ? CUDA_R_64F : CUDA_R_32F;
}

template <class Value>
void attribute(cublasLtMatmulDesc_t description, cublasLtMatmulDescAttributes_t name, const Value& value) {
  check_lt(lt().cublasLtMatmulDescSetAttribute(description, name, &value, sizeof value), "what a product is");
}

template <class Value>
void attribute(cublasLtMatmulPreference_t preference, cublasLtMatmulPreferenceAttributes_t name, const Value& value) {
  check_lt(lt().cublasLtMatmulPreferenceSetAttribute(preference, name, &value, sizeof value), "how to multiply");
}

cublasLtMatrixLayout_t layout(std::int64_t rows, std::int64_t columns, const LtMatrix& x, std::int64_t count,
                              std::size_t width) {
  if (x.transposed) std::swap(rows, columns);
  cublasLtMatrixLayout_t result{};
  check_lt(lt().cublasLtMatrixLayoutCreate(&result, number_type(width), static_cast<std::uint64_t>(rows),
                                           static_cast<std::uint64_t>(columns), x.stride),
           "the layout of a matrix");
  if (count == 1) return result;
  const auto many = static_cast<std::int32_t>(count);
  const auto set = [&](cublasLtMatrixLayoutAttribute_t name, const auto& value) {
    check_lt(lt().cublasLtMatrixLayoutSetAttribute(result, name, &value, sizeof value), "the layout of matrices");
  };
  set(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, many);
  set(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, x.distance);
  return result;
}

}  // namespace

void Products::Plan::set_vector(const void* vector) {
  attribute(description, CUBLASLT_MATMUL_DESC_BIAS_POINTER, vector);
}

void Products::Plan::set_gelu(const void* before) {
  attribute(description, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, before);
}

cublasLtEpilogue_t Products::Plan::epilogue_of(const Key& key) {
  switch (key.epilogue) {
    case Epilogue::Bias:
      return CUBLASLT_EPILOGUE_BIAS;
    case Epilogue::RowSums:
      return CUBLASLT_EPILOGUE_BGRADB;
    case Epilogue::Gelu:
      return key.vector_alignment > 0 ? CUBLASLT_EPILOGUE_GELU_AUX_BIAS : CUBLASLT_EPILOGUE_GELU_AUX;
    case Epilogue::GeluSlope:
      return CUBLASLT_EPILOGUE_DGELU;
    default:
      return CUBLASLT_EPILOGUE_DEFAULT;
  }
}

void Products::Plan::describe(const Key& key, cublasComputeType_t type, int multiprocessors, std::size_t width) {
  check_lt(lt().cublasLtMatmulDescCreate(&description, type, number_type(real::wide_width(width))), "a product");
  attribute(description, CUBLASLT_MATMUL_DESC_TRANSA, key.left.transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
  attribute(description, CUBLASLT_MATMUL_DESC_TRANSB, key.right.transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
  attribute(description, CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET, std::int32_t{multiprocessors});
  attribute(description, CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue_of(key));
  // The choice of an algorithm looks at the alignment of a pointer alone.
  if (key.vector_alignment > 0)
    attribute(description, CUBLASLT_MATMUL_DESC_BIAS_POINTER, std::uintptr_t{key.vector_alignment});
  if (key.gelu_alignment > 0) {
    attribute(description, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, std::uintptr_t{key.gelu_alignment});
    attribute(description, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, key.rows);
  }
  left = layout(key.rows, key.inner, key.left, key.count, width);
  right = layout(key.inner, key.columns, key.right, key.count, width);
  result = layout(key.rows, key.columns, key.result, key.count, key.is_wide ? real::wide_width(width) : width);
}

cublasStatus_t Products::Plan::choose(const Key& key, cublasLtHandle_t handle) {
  cublasLtMatmulPreference_t preference{};
  check_lt(lt().cublasLtMatmulPreferenceCreate(&preference), "a preference");
  const std::unique_ptr<std::remove_pointer_t<cublasLtMatmulPreference_t>,
                        cublasStatus_t (*)(cublasLtMatmulPreference_t)>
      owner(preference, lt().cublasLtMatmulPreferenceDestroy);
  attribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, std::uint64_t{kMostWorkspace});
  attribute(preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, std::uint32_t{CUBLASLT_REDUCTION_SCHEME_NONE});
  attribute(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, key.left.alignment);
  attribute(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, key.right.alignment);
  attribute(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, key.result.alignment);
  attribute(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, key.result.alignment);
  std::array<cublasLtMatmulHeuristicResult_t, 8> results{};
  int count = 0;
  const cublasStatus_t asked =
      lt().cublasLtMatmulAlgoGetHeuristic(handle, description, left, right, result, result, preference,
                                          static_cast<int>(results.size()), results.data(), &count);
  if (asked != CUBLAS_STATUS_SUCCESS) return asked;
  for (int i = 0; i < count; ++i) {
    const cublasLtMatmulHeuristicResult_t& r = results[i];
    if (r.state != CUBLAS_STATUS_SUCCESS || r.workspaceSize > kMostWorkspace) continue;
    algorithms.push_back({r.algo, r.workspaceSize});
  }
  return algorithms.empty() ? CUBLAS_STATUS_NOT_SUPPORTED : CUBLAS_STATUS_SUCCESS;
}

Products::Plan::~Plan() {
  if (result) lt().cublasLtMatrixLayoutDestroy(result);
  if (right) lt().cublasLtMatrixLayoutDestroy(right);
  if (left) lt().cublasLtMatrixLayoutDestroy(left);
  if (description) lt().cublasLtMatmulDescDestroy(description);
}

}  // namespace stagecraft::cuda
