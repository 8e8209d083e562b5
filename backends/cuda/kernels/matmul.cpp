// Matrix products by cuBLASLt, also with bias, row sums or GELU: converts row-major to column-major, keeps a plan for
// each shape, and times its algorithms.

#include "backends/cuda/kernels/product_plan.hpp"

#include <algorithm>
#include <deque>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "backends/cuda/capture.hpp"
#include "backends/cuda/driver.hpp"
#include "backends/cuda/kernels/product_choices.hpp"
#include "backends/cuda/launch_limit.hpp"
#include "backends/real/clocks.hpp"

namespace stagecraft::cuda {
namespace {

/// A handle knows no stream, but belongs to a device.
cublasLtHandle_t handle_of_device() {
  static std::mutex mutex;
  static std::map<int, cublasLtHandle_t> handles;
  const std::lock_guard lock(mutex);
  int device = 0;
  check(cudaGetDevice(&device), "cudaGetDevice");
  cublasLtHandle_t& handle = handles[device];
  if (handle) return handle;
  if (const cublasStatus_t status = lt().cublasLtCreate(&handle); status != CUBLAS_STATUS_SUCCESS)
    throw CudaError(fmt::format(
        "{} (version {}) cannot be initialized on GPU {}: {}; update the driver if it is older than the library",
        lt().library.where(), lt().cublasLtGetVersion(), device, to_text(lt(), status)));
  return handle;
}

std::size_t width_of(const Matrices& x, std::size_t width) { return x.is_wide ? real::wide_width(width) : width; }

/// The power of two, at most 64, that divides all of these bytes.
std::uint32_t alignment(std::uint64_t bytes) {
  const std::uint64_t any = bytes | 64U;
  return static_cast<std::uint32_t>(any & (~any + 1));
}

/// The alignment of every row's first number. Every place in an array has the same one wherever the array lies.
std::uint32_t alignment(const Matrices& x, std::size_t width) {
  return alignment(static_cast<std::uint64_t>(x.offset | x.distance) * width_of(x, width) |
                   static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(x.base)));
}

int current_gpu() {
  int gpu = 0;
  check(cudaGetDevice(&gpu), "cudaGetDevice");
  return gpu;
}

/// The GPU and the library, which decide the algorithms that there are: "NVIDIA H200 with cuBLASLt 130100".
std::string machine_of(int gpu) {
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, gpu), "cudaGetDeviceProperties");
  return fmt::format("{} with cuBLASLt {}", properties.name, lt().cublasLtGetVersion());
}

}  // namespace

Products::Products(const KernelTarget& place, std::size_t width, Memory& workspaces)
    : place_(place), width_(width), workspaces_(&workspaces), handle_(handle_of_device()) {
  ProductChoices::of_process().require_machine(machine_of(current_gpu()));
}

Products::~Products() = default;

/// Null where there is no algorithm; that is remembered, too.
Products::Plan* Products::find_plan(const Key& key, cublasStatus_t& answer) {
  const auto [it, is_new] = plans_.try_emplace(key);
  answer = CUBLAS_STATUS_NOT_SUPPORTED;
  if (!is_new) return it->second.get();
  for (const cublasComputeType_t type : compute_types(place_.precision, width_)) {
    auto fresh = std::make_unique<Plan>();
    fresh->shape = &it->first;
    fresh->describe(key, type, place_.multiprocessors, width_);
    answer = fresh->choose(key, handle_);
    if (answer == CUBLAS_STATUS_SUCCESS) return (it->second = std::move(fresh)).get();
  }
  return nullptr;
}

Products::Plan& Products::plan(const Key& key) {
  cublasStatus_t answer{};
  if (Plan* const p = find_plan(key, answer)) return *p;
  const bool rounds = width_ == sizeof(float) && place_.precision != Precision::Exact;
  throw CudaError(fmt::format("cuBLASLt has no algorithm for a product of {}x{} by {}x{}: {}{}", key.columns, key.inner,
                              key.inner, key.rows, to_text(lt(), answer),
                              rounds ? "; run.gpu.precision: exact asks for less" : ""));
}

// A row-major matrix is the transposed of the column-major one at the same place, and (A B)^T = B^T A^T: so B comes
// first, as it lies there, and what is transposed for us is transposed for cuBLAS. A bias for our columns is one for
// its rows.
Products::Key Products::key_of(const ProductShape& shape, const Matrices& a, const Matrices& b, const Matrices& c,
                               Epilogue epilogue) const {
  const std::int64_t far = shape.count > 1;
  const auto seen = [&](const Matrices& x) {
    const Matrices apart{x.base, x.offset, x.stride, far * x.distance, x.transposed, x.is_wide};
    return LtMatrix{x.stride, far * x.distance, alignment(apart, width_), x.transposed};
  };
  return {shape.n, shape.m, shape.k, shape.count, seen(b), seen(a), seen(c), epilogue, c.is_wide};
}

void Products::multiply(const ProductShape& shape, const Matrices& a, const Matrices& b, const Matrices& c, bool add) {
  if (shape.m == 0 || shape.n == 0 || shape.count == 0) return;
  run(plan(key_of(shape, a, b, c, add ? Epilogue::Add : Epilogue::None)), a, b, c, add);
}

/// A plan that also reads or writes the vector, and the input of a GELU, where they are given; null where there is
/// none.
Products::Plan* Products::plan_with_vector(Key key, const void* vector, const void* before) {
  const auto alignment_of = [](const void* data) {
    return alignment(static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(data)));
  };
  if (vector) key.vector_alignment = alignment_of(vector);
  if (before) key.gelu_alignment = alignment_of(before);
  cublasStatus_t answer{};
  Plan* const p = find_plan(key, answer);
  if (p && vector) p->set_vector(vector);
  if (p && before) p->set_gelu(before);
  return p;
}

bool Products::multiply_with_bias(const ProductShape& shape, const Matrices& a, const Matrices& b, const Matrices& c,
                                  const void* bias) {
  if (is_exact()) return false;
  if (shape.m == 0 || shape.n == 0) return true;
  Plan* const p = plan_with_vector(key_of(shape, a, b, c, Epilogue::Bias), bias);
  if (p) run(*p, a, b, c, false);
  return p != nullptr;
}

// Rows of our first factor are columns of cuBLAS's second one, B.
bool Products::multiply_with_row_sums(const ProductShape& shape, const Matrices& a, const Matrices& b,
                                      const Matrices& c, void* sums) {
  if (is_exact() || width_ == sizeof(double) || shape.m == 0 || shape.n == 0) return false;
  Plan* const p = plan_with_vector(key_of(shape, a, b, c, Epilogue::RowSums), sums);
  if (p) run(*p, a, b, c, true);
  return p != nullptr;
}

namespace {

constexpr std::int64_t kGeluStep = 8;  // cublasLt.h: the leading dimension of the input of a GELU is a multiple of it.

}  // namespace

bool Products::multiply_with_gelu(const ProductShape& shape, const Matrices& a, const Matrices& b, const Matrices& c,
                                  const void* bias, void* before) {
  if (!may_fuse() || shape.m == 0 || shape.n == 0 || shape.n % kGeluStep != 0) return false;
  Plan* const p = plan_with_vector(key_of(shape, a, b, c, Epilogue::Gelu), bias, before);
  if (p) run(*p, a, b, c, false);
  return p != nullptr;
}

bool Products::multiply_with_gelu_slope(const ProductShape& shape, const Matrices& a, const Matrices& b,
                                        const Matrices& c, const void* before) {
  if (!may_fuse() || shape.m == 0 || shape.n == 0 || shape.n % kGeluStep != 0) return false;
  Plan* const p = plan_with_vector(key_of(shape, a, b, c, Epilogue::GeluSlope), nullptr, before);
  if (p) run(*p, a, b, c, false);
  return p != nullptr;
}

void Products::run(Plan& p, const Matrices& a, const Matrices& b, const Matrices& c, bool add) {
  if (p.chosen < 0) p.chosen = choice(p, a, b, c, add);
  const std::int64_t offset = c.offset * static_cast<std::int64_t>(width_of(c, width_));
  enqueue(p, p.chosen, a, b, const_cast<char*>(static_cast<const char*>(c.base) + offset), add);
}

/// Streams with equal numbers of multiprocessors take what the first of them chose.
int Products::choice(const Plan& p, const Matrices& a, const Matrices& b, const Matrices& c, bool add) {
  if (p.algorithms.size() == 1 || is_exact() || width_ == sizeof(double)) return 0;
  cudaStreamCaptureStatus capture{};
  check(cudaStreamIsCapturing(place_.stream, &capture), "cudaStreamIsCapturing");
  std::function<int()> choose;
  if (capture == cudaStreamCaptureStatusNone) choose = [&] { return fastest(p, a, b, c, add); };
  return ProductChoices::of_process().find(current_gpu(), text_of(*p.shape), static_cast<int>(p.algorithms.size()),
                                           choose);
}

/// The shape and everything else that an algorithm is chosen for.
std::string Products::text_of(const Key& key) const {
  const auto layout = [](const LtMatrix& x) {
    return fmt::format("{}{}+{}@{}", x.transposed ? "T" : "N", x.stride, x.distance, x.alignment);
  };
  constexpr const char* epilogues[] = {"none", "add", "bias", "row sums", "gelu", "gelu slope"};
  const char* const precision = place_.precision == Precision::Tf32 ? "tf32" : "bf16";
  return fmt::format("{}x{}x{}, {} of them, on {} multiprocessors; {}, {} {} {}{}, {} @{} @{}", key.columns, key.rows,
                     key.inner, key.count, place_.multiprocessors, width_ == real::kMixedWidth ? "mixed" : precision,
                     layout(key.left), layout(key.right), layout(key.result), key.is_wide ? " wide" : "",
                     epilogues[static_cast<std::size_t>(key.epilogue)], key.vector_alignment, key.gelu_alignment);
}

/// Runs the first algorithm until clocks are as high as they are in a run; a GPU that was idle begins at a fraction of
/// them. Returns the milliseconds of a product.
double Products::warm_up(const std::function<void(int algorithm)>& enqueue_product) {
  constexpr double kMilliseconds = 50, kStaysWarm = 0.1;
  constexpr int kMostAtOnce = 16;
  static std::mutex mutex;
  static std::map<cublasLtHandle_t, double> warm_at;  // Host seconds.
  const std::lock_guard lock(mutex);
  const auto before = warm_at.find(handle_);
  const bool is_warm = before != warm_at.end() && real::steady_seconds() - before->second < kStaysWarm;
  const Event first(cudaEventDefault), begin(cudaEventDefault), end(cudaEventDefault);
  first.record(place_.stream);
  for (int count = 1;; count = std::min(2 * count, kMostAtOnce)) {
    begin.record(place_.stream);
    for (int n = 0; n < count; ++n) enqueue_product(0);
    end.record(place_.stream);
    at_most(300)([&] { return end.over(); });
    if (end.milliseconds_since(first) < kMilliseconds && (!is_warm || count < kMostAtOnce)) continue;
    warm_at[handle_] = real::steady_seconds();
    return end.milliseconds_since(begin) / count;
  }
}

/// The first algorithm, unless the median time of another is more than 3 % shorter: less may be chance, and processes
/// would choose differently. Algorithms take turns, so that whatever slows the GPU down meets all of them. Results go
/// to scratch memory, because a sum would be added more than once.
int Products::fastest(const Plan& p, const Matrices& a, const Matrices& b, const Matrices& c, bool add) {
  constexpr int kRounds = 7;
  constexpr double kSample = 0.2;   // Milliseconds of one sample.
  constexpr double kMargin = 0.97;  // A share of the time of the first algorithm.
  const LimitedLaunches not_at_all(nullptr);
  const std::int64_t last = (p.shape->count - 1) * c.distance + (p.shape->columns - 1) * c.stride + p.shape->rows;
  const Scratch<char> result(*workspaces_, last * static_cast<std::int64_t>(width_of(c, width_)));
  check(cudaMemsetAsync(result.data(), 0, static_cast<std::size_t>(last) * width_of(c, width_), place_.stream),
        "cudaMemsetAsync");
  const auto enqueue_product = [&](int algorithm) { enqueue(p, algorithm, a, b, result.data(), add); };
  const int count = static_cast<int>(p.algorithms.size());
  for (int n = 0; n < count; ++n) enqueue_product(n);  // The first run loads the kernel.
  const int runs = static_cast<int>(std::clamp(kSample / warm_up(enqueue_product), 1.0, 16.0));
  std::vector<std::vector<double>> milliseconds(p.algorithms.size());
  std::deque<Event> begins, ends;
  for (int n = 0; n < count; ++n) begins.emplace_back(cudaEventDefault), ends.emplace_back(cudaEventDefault);
  for (int round = 0; round < kRounds; ++round) {
    for (int n = 0; n < count; ++n) {
      begins[n].record(place_.stream);
      for (int run = 0; run < runs; ++run) enqueue_product(n);
      ends[n].record(place_.stream);
    }
    at_most(300)([&] { return ends.back().over(); });
    for (int n = 0; n < count; ++n) milliseconds[n].push_back(ends[n].milliseconds_since(begins[n]));
  }
  std::vector<double> medians;
  for (std::vector<double>& times : milliseconds) {
    std::nth_element(times.begin(), times.begin() + kRounds / 2, times.end());
    medians.push_back(times[kRounds / 2]);
  }
  const auto best = std::min_element(medians.begin(), medians.end());
  return *best < kMargin * medians.front() ? static_cast<int>(best - medians.begin()) : 0;
}

void Products::enqueue(const Plan& p, int algorithm, const Matrices& a, const Matrices& b, void* to, bool add) {
  const auto at = [&](const Matrices& x) {
    return static_cast<const char*>(x.base) + x.offset * static_cast<std::int64_t>(width_of(x, width_));
  };
  const Plan::Algorithm& chosen = p.algorithms[static_cast<std::size_t>(algorithm)];
  const Scratch<char> workspace(*workspaces_, static_cast<std::int64_t>(chosen.workspace));
  const double wide[] = {1, add ? 1.0 : 0.0};
  const float narrow[] = {1, add ? 1.0F : 0.0F};
  const void* const one = width_ == sizeof(double) ? static_cast<const void*>(wide) : narrow;
  const void* const keep = width_ == sizeof(double) ? static_cast<const void*>(wide + 1) : narrow + 1;
  check_lt(lt().cublasLtMatmul(handle_, p.description, one, at(b), p.left, at(a), p.right, keep, to, p.result, to,
                               p.result, &chosen.algorithm, workspace.data(), chosen.workspace, place_.stream),
           "cublasLtMatmul");
  submitted(place_.stream, "cublasLtMatmul");
}

}  // namespace stagecraft::cuda
