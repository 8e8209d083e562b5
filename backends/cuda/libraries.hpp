#pragma once

#include <cublasLt.h>
#include <nccl.h>
#include <functional>
#include <string>
#include <vector>

#include "backends/cuda/driver.hpp"

namespace stagecraft::cuda {

/// A shared library that is looked for when it is needed, so that a program starts without it: in the folders that
/// STAGECRAFT_CUDA_LIBRARIES names (with colons between), where the loader looks, and in /usr/local/cuda/lib64. Each
/// place is searched for all names before the next one.
class Library {
 public:
  /// Names of the versions that will do, the first choice first. Throws CudaError with every place that was tried.
  explicit Library(const std::vector<std::string>& names);
  void* symbol(const char* name) const;
  const std::string& where() const { return where_; }

 private:
  void* handle_ = nullptr;  // Never closed: CUDA libraries may crash when they are unloaded.
  std::string where_;
};

/// Names of a library whose version is CUDA's own: 13, then 12; with a driver for CUDA 12, which no library of CUDA 13
/// can use, 12 first.
std::vector<std::string> names_by_cuda_version(const std::string& name);

#define STAGECRAFT_SYMBOL(name) decltype(&::name) name = reinterpret_cast<decltype(&::name)>(library.symbol(#name))

struct CublasLt {
  Library library{names_by_cuda_version("libcublasLt.so")};
  STAGECRAFT_SYMBOL(cublasLtGetVersion);
  STAGECRAFT_SYMBOL(cublasLtGetStatusName);
  STAGECRAFT_SYMBOL(cublasLtGetStatusString);
  STAGECRAFT_SYMBOL(cublasLtCreate);
  STAGECRAFT_SYMBOL(cublasLtDestroy);
  STAGECRAFT_SYMBOL(cublasLtMatmulDescCreate);
  STAGECRAFT_SYMBOL(cublasLtMatmulDescDestroy);
  STAGECRAFT_SYMBOL(cublasLtMatmulDescSetAttribute);
  STAGECRAFT_SYMBOL(cublasLtMatrixLayoutCreate);
  STAGECRAFT_SYMBOL(cublasLtMatrixLayoutDestroy);
  STAGECRAFT_SYMBOL(cublasLtMatrixLayoutSetAttribute);
  STAGECRAFT_SYMBOL(cublasLtMatmulPreferenceCreate);
  STAGECRAFT_SYMBOL(cublasLtMatmulPreferenceDestroy);
  STAGECRAFT_SYMBOL(cublasLtMatmulPreferenceSetAttribute);
  STAGECRAFT_SYMBOL(cublasLtMatmulAlgoGetHeuristic);
  STAGECRAFT_SYMBOL(cublasLtMatmul);
};

/// "the operation is not supported (CUBLAS_STATUS_NOT_SUPPORTED)".
inline std::string to_text(const CublasLt& lt, cublasStatus_t status) {
  return std::string(lt.cublasLtGetStatusString(status)) + " (" + lt.cublasLtGetStatusName(status) + ")";
}

struct Nccl {
  Library library{{"libnccl.so.2"}};
  STAGECRAFT_SYMBOL(ncclGetVersion);
  STAGECRAFT_SYMBOL(ncclGetErrorString);
  STAGECRAFT_SYMBOL(ncclGetUniqueId);
  STAGECRAFT_SYMBOL(ncclCommInitRankConfig);
  STAGECRAFT_SYMBOL(ncclCommGetAsyncError);
  STAGECRAFT_SYMBOL(ncclCommFinalize);
  STAGECRAFT_SYMBOL(ncclCommDestroy);
  STAGECRAFT_SYMBOL(ncclCommAbort);
  STAGECRAFT_SYMBOL(ncclGroupStart);
  STAGECRAFT_SYMBOL(ncclGroupEnd);
  STAGECRAFT_SYMBOL(ncclSend);
  STAGECRAFT_SYMBOL(ncclRecv);
  STAGECRAFT_SYMBOL(ncclAllReduce);
};

#undef STAGECRAFT_SYMBOL

}  // namespace stagecraft::cuda

/// NCCL calls that never block inside the library, because a call that hangs there cannot be ended.
namespace stagecraft::cuda {

/// CudaError with what NCCL says. ncclInProgress is no error.
void require(const Nccl&, ncclResult_t, const char* what);

/// Runs the calls in one NCCL group and always closes it: an open group keeps every later call from starting, also
/// ncclCommAbort.
void group(const Nccl&, const std::function<void()>& calls);

/// Begins to make a rank on the GPU; all ranks of a process belong in one group. wait_for() completes it.
void begin_rank(const Nccl&, int gpu, const ncclUniqueId&, int rank, int ranks, int max_ctas, ncclComm_t&);

/// Waits until the communicator's calls are complete on the host.
void wait_for(const Nccl&, ncclComm_t, const WaitPolicy&);

}  // namespace stagecraft::cuda
