#include "backends/cuda/libraries.hpp"

#include <cstdlib>

#include <doctest/doctest.h>

#include "backends/cuda/partitions.hpp"

using namespace stagecraft::cuda;

TEST_CASE("cuBLASLt and NCCL have every function that is asked of them, and need no driver to say their version") {
  try {
    const CublasLt lt;
    CHECK(lt.cublasLtGetVersion() >= 130000);
    const Nccl nccl;
    int version = 0;
    CHECK(nccl.ncclGetVersion(&version) == ncclSuccess);
    CHECK(version >= 22000);
  } catch (const CudaError& e) {  // A toolkit without them.
    CHECK(std::string(e.what()).find("is not there") != std::string::npos);
    MESSAGE(e.what());
  }
}

TEST_CASE("a library that is missing says where it was looked for, and a function which library lacks it") {
  CHECK_THROWS_WITH_AS(Library("libnobody.so.7"), doctest::Contains("libnobody.so.7 is not there"), CudaError);
  CHECK_THROWS_WITH_AS(Library("libc.so.6").symbol("no_such_function"), doctest::Contains("has no no_such_function"),
                       CudaError);
}

TEST_CASE("without a device the reason is a sentence, and partitions throw") {
  const std::string why = why_no_device();
  CHECK(std::getenv("CUDA_DEVICE_MAX_CONNECTIONS") != nullptr);  // Before the first call.
  if (why.empty()) return;
  CHECK(why.size() > 5);
  CHECK_THROWS_AS(Partitions(0, {1, 1}), CudaError);
}
