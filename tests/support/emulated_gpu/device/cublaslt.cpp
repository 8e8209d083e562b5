// libcublasLt.so.13 for emulated GPUs: matrix products of floats and doubles as the manual of cuBLASLt describes them,
// in column-major order. What the project does not use is refused.
#include <cublasLt.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <new>
#include <string>
#include <vector>

#include "tests/support/emulated_gpu/streams.hpp"

using namespace stagecraft::emulated_gpu;

namespace {

struct Description {
  cublasComputeType_t compute;
  cudaDataType_t scale;
  std::int32_t transposed_a = CUBLAS_OP_N, transposed_b = CUBLAS_OP_N, multiprocessors = 0;
  std::int32_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  void* bias = nullptr;  ///< May change after an algorithm was chosen, but not to one that is aligned less.
  void* gelu = nullptr;  ///< Input of a GELU, as the bias.
  std::int64_t gelu_stride = 0;
  bool operator==(const Description& o) const {
    return compute == o.compute && scale == o.scale && transposed_a == o.transposed_a &&
           transposed_b == o.transposed_b && multiprocessors == o.multiprocessors && epilogue == o.epilogue &&
           gelu_stride == o.gelu_stride;
  }
  bool makes_gelu() const {
    return epilogue == CUBLASLT_EPILOGUE_GELU_AUX || epilogue == CUBLASLT_EPILOGUE_GELU_AUX_BIAS;
  }
  bool has_slope() const { return epilogue == CUBLASLT_EPILOGUE_DGELU; }
  bool has_gelu() const { return makes_gelu() || has_slope(); }
  bool has_bias() const { return epilogue == CUBLASLT_EPILOGUE_BIAS || epilogue == CUBLASLT_EPILOGUE_GELU_AUX_BIAS; }
  bool has_sums() const { return epilogue == CUBLASLT_EPILOGUE_BGRADB; }
  bool has_vector() const { return has_bias() || has_sums(); }
  static std::uintptr_t alignment(const void* pointer) {  ///< At most 16.
    const std::uintptr_t any = reinterpret_cast<std::uintptr_t>(pointer) | 16U;
    return any & (~any + 1);
  }
  /// Whether an algorithm that was chosen for these pointers can take the ones of `now`.
  bool promises(const Description& now) const {
    if (now.has_vector() && (!now.bias || alignment(now.bias) < alignment(bias))) return false;
    return !now.has_gelu() || (now.gelu && alignment(now.gelu) >= alignment(gelu));
  }
};

struct Layout {
  cudaDataType_t type;
  std::int64_t rows, columns, stride;
  std::int32_t count = 1;
  std::int64_t distance = 0;
  bool operator==(const Layout&) const = default;
};

struct Preference {
  std::uint64_t workspace = 0;
  std::uint32_t reductions = CUBLASLT_REDUCTION_SCHEME_MASK, a = 256, b = 256, c = 256, d = 256;
};

struct MatmulProblem {
  Description description;
  Layout a, b, c, d;
  bool operator==(const MatmulProblem&) const = default;
};

/// What an algorithm was chosen for, and what it wants. The program holds its number.
constexpr std::size_t kWorkspace = 1024;
struct Chosen {
  MatmulProblem problem;
  Preference preference;
};
std::vector<Chosen>& chosen() {
  static std::vector<Chosen> instances;
  return instances;
}

template <class Inner, class Outer>
Inner* inner(Outer* outer) {
  return reinterpret_cast<Inner*>(outer);
}

template <class Inner, class Outer, class... Fields>
cublasStatus_t create(Outer** handle, Fields... fields) {
  *handle = reinterpret_cast<Outer*>(new Inner{fields...});
  return CUBLAS_STATUS_SUCCESS;
}

template <class Inner, class Outer>
cublasStatus_t destroy(Outer* handle) {
  delete inner<Inner>(handle);
  return CUBLAS_STATUS_SUCCESS;
}

template <class Value>
cublasStatus_t set(Value& to, const void* from, std::size_t bytes) {
  if (bytes != sizeof to) return CUBLAS_STATUS_INVALID_VALUE;
  std::memcpy(&to, from, bytes);
  return CUBLAS_STATUS_SUCCESS;
}

std::size_t width_of(cudaDataType_t type) { return type == CUDA_R_64F ? 8 : type == CUDA_R_16BF ? 2 : 4; }

/// `type`: of the factors.
bool is_supported(cublasComputeType_t compute, cudaDataType_t scale, cudaDataType_t type) {
  if (type == CUDA_R_64F) return scale == type && compute == CUBLAS_COMPUTE_64F;
  if (type == CUDA_R_16BF) return scale == CUDA_R_32F && compute == CUBLAS_COMPUTE_32F;
  return type == CUDA_R_32F && scale == type &&
         (compute == CUBLAS_COMPUTE_32F || compute == CUBLAS_COMPUTE_32F_PEDANTIC ||
          compute == CUBLAS_COMPUTE_32F_FAST_TF32 || compute == CUBLAS_COMPUTE_32F_FAST_16BF);
}

/// Whether the sizes fit together.
bool valid(const MatmulProblem& p) {
  const Layout* const layouts[] = {&p.a, &p.b, &p.c, &p.d};
  for (const Layout* const x : layouts)
    if (x->stride < x->rows || x->count != p.d.count || x->count < 1) return false;
  const bool widens = p.a.type == CUDA_R_16BF && p.d.type == CUDA_R_32F;
  if (p.a.type != p.b.type || p.c.type != p.d.type || (p.a.type != p.d.type && !widens)) return false;
  const bool ta = p.description.transposed_a != CUBLAS_OP_N, tb = p.description.transposed_b != CUBLAS_OP_N;
  const std::int64_t m = ta ? p.a.columns : p.a.rows, k = ta ? p.a.rows : p.a.columns;
  const std::int64_t n = tb ? p.b.rows : p.b.columns, other_k = tb ? p.b.columns : p.b.rows;
  return m == p.d.rows && n == p.d.columns && k == other_k && p.c.rows == m && p.c.columns == n;
}

MatmulProblem problem_of(cublasLtMatmulDesc_t description, cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                         cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d) {
  return {*inner<Description>(description), *inner<Layout>(a), *inner<Layout>(b), *inner<Layout>(c), *inner<Layout>(d)};
}

/// To the nearest number with `bits` fewer bits at the end: ties away from zero for tf32 (PTX, cvt.rna.tf32), to even
/// for bf16 (cvt.rn.bf16).
float shorter(float x, cublasComputeType_t compute) {
  auto bits = std::bit_cast<std::uint32_t>(x);
  if (!std::isfinite(x)) return x;
  if (compute == CUBLAS_COMPUTE_32F_FAST_TF32) bits = (bits + 0x1000U) & ~0x1fffU;
  if (compute == CUBLAS_COMPUTE_32F_FAST_16BF) bits = (bits + 0x7fffU + (bits >> 16U & 1U)) & ~0xffffU;
  return std::bit_cast<float>(bits);
}
double shorter(double x, cublasComputeType_t) { return x; }

void require_there(const void* data, const Layout& x, const char* what) {
  const std::int64_t last = (x.count - 1) * x.distance + (x.columns - 1) * x.stride + x.rows;
  if (!on_device(data, static_cast<std::size_t>(last) * width_of(x.type)))
    throw Misuse(std::string("a matrix product goes beyond the memory of ") + what);
}

struct Bfloat16 {
  std::uint16_t bits;
};
float wide(Bfloat16 x) { return std::bit_cast<float>(std::uint32_t{x.bits} << 16U); }
float wide(float x) { return x; }
double wide(double x) { return x; }
void put(Bfloat16& to, float x) {
  to.bits = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(shorter(x, CUBLAS_COMPUTE_32F_FAST_16BF)) >> 16U);
}
void put(float& to, float x) { to = x; }
void put(double& to, double x) { to = x; }

/// op(x) as k rows of n numbers each, rounded for the tensor cores.
template <class T, class Sum = decltype(wide(T{}))>
std::vector<Sum> packed(const T* x, const Layout& l, bool columns_are_k, cublasComputeType_t compute) {
  std::vector<Sum> to(static_cast<std::size_t>(l.rows * l.columns));
  for (std::int64_t column = 0; column < l.columns; ++column)
    for (std::int64_t row = 0; row < l.rows; ++row)
      to[columns_are_k ? column * l.rows + row : row * l.columns + column] =
          shorter(wide(x[column * l.stride + row]), compute);
  return to;
}

/// The formulas of the manual, in double.
double gelu_share(double x) { return 0.5 * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x))); }
double gelu_slope(double x) {
  const double share = gelu_share(x);
  return share + x * 2 * share * (1 - share) * std::sqrt(2 / M_PI) * (1 + 3 * 0.044715 * x * x);
}

template <class T, class Result, class Sum>
void multiply(const MatmulProblem& p, Sum alpha, Sum beta, const T* a, const T* b, const Result* c, Result* d) {
  const bool ta = p.description.transposed_a != CUBLAS_OP_N, tb = p.description.transposed_b != CUBLAS_OP_N;
  const auto m = static_cast<std::size_t>(p.d.rows), n = static_cast<std::size_t>(p.d.columns);
  const auto k = static_cast<std::size_t>(ta ? p.a.rows : p.a.columns);
  std::vector<Sum> sums(m);
  for (std::int64_t i = 0; i < p.d.count; ++i) {
    const std::vector<Sum> left = packed(a + i * p.a.distance, p.a, !ta, p.description.compute);
    const std::vector<Sum> right = packed(b + i * p.b.distance, p.b, tb, p.description.compute);
    for (std::size_t column = 0; column < n; ++column) {
      std::fill(sums.begin(), sums.end(), Sum{0});
      for (std::size_t t = 0; t < k; ++t)
        for (std::size_t row = 0; row < m; ++row) sums[row] += left[t * m + row] * right[t * n + column];
      const Result* const old = c + i * p.c.distance + static_cast<std::int64_t>(column) * p.c.stride;
      Result* const to = d + i * p.d.distance + static_cast<std::int64_t>(column) * p.d.stride;
      for (std::size_t row = 0; row < m; ++row) {  // Without beta the old numbers are not read.
        const Sum sum = beta == Sum{0} ? alpha * sums[row] : alpha * sums[row] + beta * wide(old[row]);
        const Sum x = p.description.has_bias() ? sum + wide(static_cast<const Result*>(p.description.bias)[row]) : sum;
        const auto at = column * static_cast<std::size_t>(p.description.gelu_stride) + row;
        auto* const gelu = static_cast<Result*>(p.description.gelu);
        if (p.description.makes_gelu()) {
          put(gelu[at], x);
          put(to[row], static_cast<Sum>(x * gelu_share(x)));  // The number before it was rounded.
        } else {
          put(to[row], p.description.has_slope() ? static_cast<Sum>(x * gelu_slope(wide(gelu[at]))) : x);
        }
      }
      if (!p.description.has_sums()) continue;
      Sum sum{0};  // The manual does not say whether these terms are rounded first; here they are.
      for (std::size_t t = 0; t < k; ++t) sum += right[t * n + column];
      put(static_cast<Result*>(p.description.bias)[column], sum);
    }
  }
}

/// Every one of the matrices.
bool aligned(const void* data, const Layout& x, std::uint32_t bytes) {
  const std::uint64_t apart = x.count > 1 ? static_cast<std::uint64_t>(x.distance) * width_of(x.type) : 0;
  return (reinterpret_cast<std::uintptr_t>(data) | apart) % bytes == 0;
}

template <class T, class Result = T>
void enqueue_product(const MatmulProblem& p, const void* alpha, const void* a, const void* b, const void* beta,
                     const void* c, void* d, void* workspace, cudaStream_t stream, double seconds) {
  decltype(wide(T{})) one{}, keep{};
  std::memcpy(&one, alpha, sizeof one);
  std::memcpy(&keep, beta, sizeof keep);
  enqueue(
      stream,
      [=] {
        std::memset(workspace, 0xff, kWorkspace);
        require_there(a, p.a, "its first factor");
        require_there(b, p.b, "its second factor");
        require_there(c, p.c, "what it adds to");
        require_there(d, p.d, "its result");
        const std::int64_t length = p.description.has_bias() ? p.d.rows : p.d.columns;
        if (p.description.has_vector()) require_there(p.description.bias, {p.d.type, length, 1, length}, "its bias");
        if (p.description.has_gelu())
          require_there(p.description.gelu, {p.d.type, p.d.rows, p.d.columns, p.description.gelu_stride},
                        "the input of its GELU");
        multiply(p, one, keep, static_cast<const T*>(a), static_cast<const T*>(b), static_cast<const Result*>(c),
                 static_cast<Result*>(d));
      },
      seconds);
}

}  // namespace

std::size_t cublasLtGetVersion() { return CUBLAS_VERSION; }

const char* cublasLtGetStatusName(cublasStatus_t status) {
  switch (status) {
    case CUBLAS_STATUS_SUCCESS:
      return "CUBLAS_STATUS_SUCCESS";
    case CUBLAS_STATUS_NOT_SUPPORTED:
      return "CUBLAS_STATUS_NOT_SUPPORTED";
    default:
      return "CUBLAS_STATUS_INVALID_VALUE";
  }
}
const char* cublasLtGetStatusString(cublasStatus_t status) {
  return status == CUBLAS_STATUS_NOT_SUPPORTED ? "the functionality requested is not supported"
                                               : "an unsupported value was passed (emulated)";
}
cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  static int nothing = 0;
  *handle = reinterpret_cast<cublasLtHandle_t>(&nothing);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtDestroy(cublasLtHandle_t) { return CUBLAS_STATUS_SUCCESS; }

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* d, cublasComputeType_t compute, cudaDataType_t scale) {
  return create<Description>(d, compute, scale);
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t d) { return destroy<Description>(d); }
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t description, cublasLtMatmulDescAttributes_t name,
                                              const void* value, std::size_t bytes) {
  auto& d = *inner<Description>(description);
  switch (name) {
    case CUBLASLT_MATMUL_DESC_TRANSA:
      return set(d.transposed_a, value, bytes);
    case CUBLASLT_MATMUL_DESC_TRANSB:
      return set(d.transposed_b, value, bytes);
    case CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET:
      return set(d.multiprocessors, value, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE:
      return set(d.epilogue, value, bytes);
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
      return set(d.bias, value, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER:
      return set(d.gelu, value, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD:
      return set(d.gelu_stride, value, bytes);
    default:
      return CUBLAS_STATUS_NOT_SUPPORTED;
  }
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* l, cudaDataType type, std::uint64_t rows,
                                          std::uint64_t columns, std::int64_t stride) {
  return create<Layout>(l, type, static_cast<std::int64_t>(rows), static_cast<std::int64_t>(columns), stride);
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t l) { return destroy<Layout>(l); }
cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t layout, cublasLtMatrixLayoutAttribute_t name,
                                                const void* value, std::size_t bytes) {
  auto& l = *inner<Layout>(layout);
  if (name == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT) return set(l.count, value, bytes);
  if (name == CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET) return set(l.distance, value, bytes);
  return CUBLAS_STATUS_NOT_SUPPORTED;
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* p) { return create<Preference>(p); }
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t p) { return destroy<Preference>(p); }
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t name, const void* value,
                                                    std::size_t bytes) {
  auto& p = *inner<Preference>(preference);
  switch (name) {
    case CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES:
      return set(p.workspace, value, bytes);
    case CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK:
      return set(p.reductions, value, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES:
      return set(p.a, value, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES:
      return set(p.b, value, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES:
      return set(p.c, value, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES:
      return set(p.d, value, bytes);
    default:
      return CUBLAS_STATUS_NOT_SUPPORTED;
  }
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t description,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int wanted,
                                              cublasLtMatmulHeuristicResult_t results[], int* returned) {
  const MatmulProblem p = problem_of(description, a, b, c, d);
  *returned = 0;
  if (!is_supported(p.description.compute, p.description.scale, p.a.type)) return CUBLAS_STATUS_NOT_SUPPORTED;
  const std::vector<int>& refused = machine().refused_products;
  if (std::find(refused.begin(), refused.end(), static_cast<int>(p.description.compute)) != refused.end())
    return CUBLAS_STATUS_NOT_SUPPORTED;
  const std::int32_t epilogue = p.description.epilogue;
  if (epilogue != CUBLASLT_EPILOGUE_DEFAULT &&
      ((!p.description.has_vector() && !p.description.has_gelu()) || machine().refuses_bias))
    return CUBLAS_STATUS_NOT_SUPPORTED;
  if (p.description.has_gelu() && machine().refuses_gelu) return CUBLAS_STATUS_NOT_SUPPORTED;
  if (p.description.has_gelu() &&
      (p.description.gelu_stride % 8 != 0 || p.description.gelu_stride < p.d.rows || p.d.count != 1))
    return CUBLAS_STATUS_INVALID_VALUE;
  if (!valid(p) || wanted < 1 || inner<Preference>(preference)->workspace < kWorkspace)
    return CUBLAS_STATUS_INVALID_VALUE;
  chosen().push_back({p, *inner<Preference>(preference)});
  *returned = std::min(wanted, static_cast<int>(machine().product_seconds.size()));
  for (int n = 0; n < *returned; ++n) {
    results[n] = {};
    results[n].algo.data[0] = chosen().size();
    results[n].algo.data[1] = static_cast<std::uint64_t>(n);
    results[n].workspaceSize = kWorkspace;
    const bool is_refused = machine().product_seconds[static_cast<std::size_t>(n)] < 0;
    results[n].state = is_refused ? CUBLAS_STATUS_NOT_SUPPORTED : CUBLAS_STATUS_SUCCESS;
  }
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t description, const void* alpha, const void* a,
                              cublasLtMatrixLayout_t a_layout, const void* b, cublasLtMatrixLayout_t b_layout,
                              const void* beta, const void* c, cublasLtMatrixLayout_t c_layout, void* d,
                              cublasLtMatrixLayout_t d_layout, const cublasLtMatmulAlgo_t* algorithm, void* workspace,
                              std::size_t workspace_bytes, cudaStream_t stream) {
  const MatmulProblem p = problem_of(description, a_layout, b_layout, c_layout, d_layout);
  if (!algorithm || algorithm->data[0] == 0 || algorithm->data[0] > chosen().size()) return CUBLAS_STATUS_INVALID_VALUE;
  const Chosen& choice = chosen()[algorithm->data[0] - 1];
  const Preference& promised = choice.preference;
  if (!choice.problem.description.promises(p.description)) return CUBLAS_STATUS_INVALID_VALUE;
  if (!(choice.problem == p) || workspace_bytes < kWorkspace) return CUBLAS_STATUS_INVALID_VALUE;
  if (!aligned(a, p.a, promised.a) || !aligned(b, p.b, promised.b) || !aligned(c, p.c, promised.c) ||
      !aligned(d, p.d, promised.d))
    return CUBLAS_STATUS_INVALID_VALUE;
  if (!on_device(workspace, kWorkspace) || reinterpret_cast<std::uintptr_t>(workspace) % 16 != 0)
    return CUBLAS_STATUS_INVALID_VALUE;
  const auto number = static_cast<std::size_t>(algorithm->data[1]);
  const std::vector<double>& times = machine().product_seconds;
  if (number >= times.size() || times[number] < 0) return CUBLAS_STATUS_INVALID_VALUE;
  const double seconds = count_product(number);
  if (p.description.has_gelu()) count_gelu();
  if (p.d.type == CUDA_R_64F)
    enqueue_product<double>(p, alpha, a, b, beta, c, d, workspace, stream, seconds);
  else if (p.a.type == CUDA_R_16BF && p.d.type == CUDA_R_32F)
    enqueue_product<Bfloat16, float>(p, alpha, a, b, beta, c, d, workspace, stream, seconds);
  else if (p.d.type == CUDA_R_16BF)
    enqueue_product<Bfloat16>(p, alpha, a, b, beta, c, d, workspace, stream, seconds);
  else
    enqueue_product<float>(p, alpha, a, b, beta, c, d, workspace, stream, seconds);
  return CUBLAS_STATUS_SUCCESS;
}
