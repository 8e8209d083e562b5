// Measures the speed of copies, matrix products and messages on one GPU and its partitions.

#include <array>
#include <memory>
#include <vector>

#include "backends/cuda/first_run/checks.hpp"
#include "backends/cuda/first_run/kernels.hpp"
#include "backends/cuda/kernels/matmul.hpp"
#include "backends/cuda/libraries.hpp"

namespace stagecraft::cuda::first_run {
namespace {

#ifdef STAGECRAFT_EMULATED_GPU  // A CPU that plays a GPU has less to do.
constexpr std::size_t kUnit = 1 << 12;
constexpr std::int64_t kSize = 32, kLargeSize = 64;
#else
constexpr std::size_t kUnit = 1 << 20;
constexpr std::int64_t kSize = 4096, kLargeSize = 8192;
#endif
constexpr int kAlgorithms = 8;  // Timed for each ceiling; the first is not always the fastest.

/// A type of matrix products: inputs of one type, sums in 32 bits.
struct Arithmetic {
  const char* name;
  std::vector<cublasComputeType_t> computes;  ///< By preference: the first one that has an algorithm is used.
  cudaDataType_t type;
};

/// What runs can ask for, and then what would be with numbers of 16 bits in memory, which runs have not.
std::vector<Arithmetic> arithmetics() {
  const auto of_runs = [](const char* name, Precision precision) {
    return Arithmetic{name, compute_types(precision, sizeof(float)), CUDA_R_32F};
  };
  return {of_runs("bf16", Precision::Bf16),
          of_runs("tf32", Precision::Tf32),
          of_runs("exact", Precision::Exact),
          {"stored_bf16", {CUBLAS_COMPUTE_32F}, CUDA_R_16BF}};
}

void check_lt(cublasStatus_t status, const char* what) {
  static const CublasLt lt;
  if (status != CUBLAS_STATUS_SUCCESS) throw CudaError(std::string(what) + ": " + to_text(lt, status));
}

/// D = A^T B of squares.
class Product {
 public:
  Product(const CublasLt& lt, cublasLtHandle_t handle, const Arithmetic& arithmetic, int multiprocessors,
          std::int64_t size = kSize, int wanted = 1)
      : lt_(lt), handle_(handle), algorithms_(static_cast<std::size_t>(wanted)) {
    const auto n = static_cast<std::uint64_t>(size);
    check_lt(lt.cublasLtMatrixLayoutCreate(&layout_, arithmetic.type, n, n, size), "a layout");
    cublasStatus_t answer = CUBLAS_STATUS_NOT_SUPPORTED;
    for (choice_ = 0; choice_ < arithmetic.computes.size(); ++choice_) {
      describe(arithmetic.computes[choice_], multiprocessors);
      answer = choose();
      if (answer == CUBLAS_STATUS_SUCCESS) return;
    }
    check_lt(answer, "an algorithm");
  }
  Product(const Product&) = delete;
  Product& operator=(const Product&) = delete;
  ~Product() {
    lt_.cublasLtMatrixLayoutDestroy(layout_);
    lt_.cublasLtMatmulDescDestroy(description_);
  }

  std::size_t choice() const { return choice_; }  ///< Index in the arithmetic's `computes`.
  std::size_t algorithms() const { return algorithms_.size(); }

  void run(const void* a, const void* b, void* d, cudaStream_t stream, std::size_t algorithm = 0) const {
    const float one = 1, none = 0;
    check_lt(lt_.cublasLtMatmul(handle_, description_, &one, a, layout_, b, layout_, &none, d, layout_, d, layout_,
                                &algorithms_[algorithm].algo, workspace_.as<void>(), kWorkspace, stream),
             "cublasLtMatmul");
  }

 private:
  void describe(cublasComputeType_t compute, std::int32_t multiprocessors) {
    if (description_) lt_.cublasLtMatmulDescDestroy(description_);
    check_lt(lt_.cublasLtMatmulDescCreate(&description_, compute, CUDA_R_32F), "a product");
    const auto set = [&](cublasLtMatmulDescAttributes_t name, const auto& value) {
      check_lt(lt_.cublasLtMatmulDescSetAttribute(description_, name, &value, sizeof value), "what a product is");
    };
    set(CUBLASLT_MATMUL_DESC_TRANSA, CUBLAS_OP_T);
    set(CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET, multiprocessors);
  }

  cublasStatus_t choose() {
    cublasLtMatmulPreference_t preference{};
    check_lt(lt_.cublasLtMatmulPreferenceCreate(&preference), "a preference");
    const std::uint64_t workspace = kWorkspace;
    check_lt(lt_.cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace,
                                                      sizeof workspace),
             "its workspace");
    int count = 0;
    const cublasStatus_t asked =
        lt_.cublasLtMatmulAlgoGetHeuristic(handle_, description_, layout_, layout_, layout_, layout_, preference,
                                           static_cast<int>(algorithms_.size()), algorithms_.data(), &count);
    lt_.cublasLtMatmulPreferenceDestroy(preference);
    if (asked != CUBLAS_STATUS_SUCCESS) return asked;
    algorithms_.resize(static_cast<std::size_t>(count));
    std::erase_if(algorithms_, [](const auto& answer) { return answer.state != CUBLAS_STATUS_SUCCESS; });
    return algorithms_.empty() ? CUBLAS_STATUS_NOT_SUPPORTED : asked;
  }

  static constexpr std::size_t kWorkspace = 32 * kUnit;
  const CublasLt& lt_;
  cublasLtHandle_t handle_;
  cublasLtMatmulDesc_t description_{};
  cublasLtMatrixLayout_t layout_{};
  std::vector<cublasLtMatmulHeuristicResult_t> algorithms_;  ///< The heuristic's answers, the best guess first.
  std::size_t choice_ = 0;
  Block workspace_{kWorkspace};
};

Json copy_point(const Partitions& partitions, std::size_t active, std::size_t bytes, int blocks, int times) {
  std::vector<std::unique_ptr<Block>> from, to;
  std::vector<cudaStream_t> streams = compute_streams(partitions);
  streams.resize(active);
  for (std::size_t i = 0; i < active; ++i) {
    from.push_back(std::make_unique<Block>(bytes));
    to.push_back(std::make_unique<Block>(bytes));
    check(cudaMemset(from.back()->as<void>(), 1, bytes), "cudaMemset");
  }
  check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  const double ms = milliseconds(streams[0], [&] {
    together(streams,
             [&](std::size_t i) { copy(from[i]->as<void>(), to[i]->as<void>(), bytes, times, blocks, streams[i]); });
  });
  const double moved = 2.0 * static_cast<double>(bytes) * times;
  return {{"active", active}, {"bytes", bytes}, {"blocks", blocks},
          {"times", times},   {"ms", ms},       {"read_and_written_bytes_per_s_each", moved / ms * 1e3}};
}

/// Speed of matrix products on `count` partitions, one alone and all at once.
Json product_point(const CublasLt& lt, cublasLtHandle_t handle, const Arithmetic& arithmetic, std::size_t count,
                   bool tell_size, const Block& a, const Block& b) {
  const Partitions partitions(0, std::vector<unsigned>(count, 1), true);
  const std::vector<cudaStream_t> streams = compute_streams(partitions);
  const auto granted = static_cast<int>(partitions.parts()[0].multiprocessors);
  std::vector<std::unique_ptr<Product>> products;
  std::vector<std::unique_ptr<Block>> results;
  for (std::size_t i = 0; i < count; ++i) {
    products.push_back(std::make_unique<Product>(lt, handle, arithmetic, tell_size ? granted : 0));
    results.push_back(std::make_unique<Block>(static_cast<std::size_t>(kSize * kSize) * sizeof(float)));
  }
  const auto on = [&](std::size_t i) {
    for (int r = 0; r < 10; ++r) products[i]->run(a.as<void>(), b.as<void>(), results[i]->as<void>(), streams[i]);
  };
  const double alone = milliseconds(streams[0], [&] { on(0); });
  const double busy = milliseconds(streams[0], [&] { together(streams, on); });
  const double flops = 10 * 2.0 * kSize * kSize * kSize;
  return {{"precision", arithmetic.name},
          {"choice", products.front()->choice()},
          {"partitions", count},
          {"multiprocessors", granted},
          {"target", tell_size ? granted : 0},
          {"alone_flops_per_s", flops / alone * 1e3},
          {"all_busy_flops_per_s_each", flops / busy * 1e3}};
}

/// The fastest of the algorithms that the heuristic offers, on all multiprocessors: in the primary context, which no
/// partition limits.
Json ceiling(const CublasLt& lt, cublasLtHandle_t handle, const Arithmetic& arithmetic, cudaStream_t stream,
             const Block& a, const Block& b, const Block& d) {
  constexpr int kTimes = 3;
  const Product product(lt, handle, arithmetic, 0, kLargeSize, kAlgorithms);
  double first = 0, best = 0;
  for (std::size_t algorithm = 0; algorithm < product.algorithms(); ++algorithm) {
    const double ms = milliseconds(stream, [&] {
      for (int r = 0; r < kTimes; ++r) product.run(a.as<void>(), b.as<void>(), d.as<void>(), stream, algorithm);
    });
    if (algorithm == 0) first = ms;
    if (algorithm == 0 || ms < best) best = ms;
  }
  const double flops = kTimes * 2.0 * kLargeSize * kLargeSize * kLargeSize;
  return {{"precision", arithmetic.name},
          {"choice", product.choice()},
          {"size", kLargeSize},
          {"algorithms", product.algorithms()},
          {"first_flops_per_s", flops / first * 1e3},
          {"best_flops_per_s", flops / best * 1e3}};
}

/// Milliseconds of a message on the stream while another partition is busy; one only, as a second could find it idle.
double send_while_busy(const Partitions::Partition& busy, cudaStream_t stream, const std::function<void()>& send) {
  const Event begin(cudaEventDefault), end(cudaEventDefault);
  spin(static_cast<int>(busy.multiprocessors) * 16, 100'000'000, nullptr, 0, busy.compute);
  begin.record(stream);
  send();
  end.record(stream);
  check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  return end.milliseconds_since(begin);
}

Json message_point(const Partitions& partitions, std::size_t bytes, const std::function<void()>& send) {
  const Partitions::Partition &a = partitions.parts()[0], &b = partitions.parts()[1];
  return {{"bytes", bytes},
          {"ms", milliseconds(b.comm, send)},
          {"ms_sender_busy", send_while_busy(a, b.comm, send)},
          {"ms_receiver_busy", send_while_busy(b, b.comm, send)}};
}

constexpr std::size_t kMessages[] = {kUnit / 16, kUnit, 16 * kUnit, 64 * kUnit};

}  // namespace

Json copies() {
  Json results = Json::array();
  const Partitions partitions(0, {1, 1, 1, 1}, true);
  const auto whole = static_cast<int>(partitions.parts()[0].multiprocessors);
  for (const std::size_t bytes : {kUnit / 16, kUnit, 16 * kUnit, 256 * kUnit})
    for (const int blocks : {2, 4, 8, 16, 2 * whole})
      for (const std::size_t active : {std::size_t{1}, std::size_t{2}, std::size_t{4}})
        results.push_back(copy_point(partitions, active, bytes, blocks, 1));
  for (const std::size_t bytes : {2 * kUnit, 8 * kUnit, 16 * kUnit})  // Read from one and written to the other.
    for (const std::size_t active : {std::size_t{1}, std::size_t{4}})
      results.push_back(copy_point(partitions, active, bytes, 2 * whole, 50));
  return results;
}

Json ceilings() {
  const CublasLt lt;
  cublasLtHandle_t handle{};
  check_lt(lt.cublasLtCreate(&handle), "cublasLtCreate");
  cudaStream_t stream = nullptr;
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreate");
  Json results = Json::array();
  {
    const std::size_t bytes = static_cast<std::size_t>(kLargeSize * kLargeSize) * sizeof(float);
    const Block a(bytes), b(bytes), d(bytes);
    fill_bfloat16(a.as<void>(), bytes / 2, 1, stream);  // Zeros would draw less power, and be faster.
    fill_bfloat16(b.as<void>(), bytes / 2, 2, stream);
    check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
    for (const Arithmetic& arithmetic : arithmetics())
      results.push_back(ceiling(lt, handle, arithmetic, stream, a, b, d));
  }
  check(cudaStreamDestroy(stream), "cudaStreamDestroy");
  lt.cublasLtDestroy(handle);
  return results;
}

Json matrix_products() {
  const CublasLt lt;
  cublasLtHandle_t handle{};
  check_lt(lt.cublasLtCreate(&handle), "cublasLtCreate");
  Json results{{"library", lt.library.where()}, {"version", lt.cublasLtGetVersion()}, {"points", Json::array()}};
  const std::size_t bytes = static_cast<std::size_t>(kSize * kSize) * sizeof(float);
  const Block a(bytes), b(bytes);
  fill_bfloat16(a.as<void>(), bytes / 2, 1, nullptr);  // Two of them are a number of 32 bits, as random.
  fill_bfloat16(b.as<void>(), bytes / 2, 2, nullptr);
  check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  const std::vector<Arithmetic> all_arithmetics = arithmetics();
  for (const std::size_t count : {1U, 2U, 4U, 8U})
    for (const bool tell_size : {false, true})
      results["points"].push_back(product_point(lt, handle, all_arithmetics.front(), count, tell_size, a, b));
  for (std::size_t other = 1; other < all_arithmetics.size(); ++other)
    results["points"].push_back(product_point(lt, handle, all_arithmetics[other], 1, false, a, b));
  lt.cublasLtDestroy(handle);
  return results;
}

Json own_messages() {
  const Partitions partitions(0, {1, 1}, true);
  cudaStream_t stream = partitions.parts()[1].comm;
  const Block from(kMessages[3]), to(kMessages[3]);
  Json results{{"driver", Json::array()}, {"kernel", Json::array()}};
  for (const std::size_t bytes : kMessages) {
    results["driver"].push_back(message_point(partitions, bytes, [&] {
      check(cudaMemcpyAsync(to.as<void>(), from.as<void>(), bytes, cudaMemcpyDeviceToDevice, stream), "a copy");
    }));
    for (const int blocks : {4, 16}) {
      Json point =
          message_point(partitions, bytes, [&] { copy(from.as<void>(), to.as<void>(), bytes, 1, blocks, stream); });
      point["blocks"] = blocks;
      results["kernel"].push_back(std::move(point));
    }
  }
  return results;
}

Json messages() {
  const Nccl nccl;
  const auto check_nccl = [&](ncclResult_t result, const char* what) {
    if (result != ncclSuccess) throw CudaError(std::string(what) + ": " + nccl.ncclGetErrorString(result));
  };
  int version = 0;
  check_nccl(nccl.ncclGetVersion(&version), "ncclGetVersion");
  Json results{{"library", nccl.library.where()}, {"version", version}, {"points", Json::array()}};
  const Partitions partitions(0, {1, 1}, true);
  const Partitions::Partition &a = partitions.parts()[0], &b = partitions.parts()[1];
  const Block from(kMessages[3]), to(kMessages[3]);
  for (const int blocks : {2, 4, 8, 16}) {
    ncclUniqueId id;
    check_nccl(nccl.ncclGetUniqueId(&id), "ncclGetUniqueId");
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.maxCTAs = blocks;
    config.cgaClusterSize = 0;
    ncclComm_t comm{};
    check_nccl(nccl.ncclCommInitRankConfig(&comm, 1, id, 0, &config), "ncclCommInitRankConfig");
    for (const std::size_t bytes : kMessages) {
      const auto send = [&] {  // Both streams wait for each other; the time is that of the receiver.
        check_nccl(nccl.ncclGroupStart(), "ncclGroupStart");
        check_nccl(nccl.ncclSend(from.as<void>(), bytes, ncclInt8, 0, comm, a.comm), "ncclSend");
        check_nccl(nccl.ncclRecv(to.as<void>(), bytes, ncclInt8, 0, comm, b.comm), "ncclRecv");
        check_nccl(nccl.ncclGroupEnd(), "ncclGroupEnd");
      };
      Json point = message_point(partitions, bytes, send);
      point["most_blocks"] = blocks;
      results["points"].push_back(std::move(point));
    }
    check_nccl(nccl.ncclCommDestroy(comm), "ncclCommDestroy");
  }
  return results;
}

}  // namespace stagecraft::cuda::first_run
