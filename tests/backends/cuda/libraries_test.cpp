#include "backends/cuda/libraries.hpp"

#include <dlfcn.h>
#include <cstdlib>

#include <doctest/doctest.h>

#include "backends/cuda/partitions.hpp"
#include "tests/support/files.hpp"

using namespace stagecraft::cuda;
using stagecraft::test::Folder;

TEST_CASE("cuBLASLt and NCCL have every function that is asked of them, and need no driver to say their version") {
  try {
    const CublasLt lt;
    CHECK(lt.cublasLtGetVersion() >= 120400);
    const Nccl nccl;
    int version = 0;
    CHECK(nccl.ncclGetVersion(&version) == ncclSuccess);
    CHECK(version >= 22000);
  } catch (const CudaError& e) {  // A toolkit without them.
    const std::string why = e.what();
    CHECK((why.find("is there") != std::string::npos || why.find("is not there") != std::string::npos));
    MESSAGE(e.what());
  }
}

TEST_CASE("a library that is missing says where it was looked for, and a function which library lacks it") {
  CHECK_THROWS_WITH_AS(Library({"libnobody.so.7"}), doctest::Contains("libnobody.so.7 is not there"), CudaError);
  CHECK_THROWS_WITH_AS(Library({"libc.so.6"}).symbol("no_such_function"), doctest::Contains("has no no_such_function"),
                       CudaError);
}

TEST_CASE("a folder with the library of CUDA 12 alone will do, one with both gives that of CUDA 13") {
  Dl_info libc{};
  REQUIRE(dladdr(reinterpret_cast<const void*>(&std::getenv), &libc) != 0);  // The stand-in is any library.
  const Folder folder;
  setenv("STAGECRAFT_CUDA_LIBRARIES", folder.path().c_str(), 1);
  const std::string old = folder / "libnobody.so.12", fresh = folder / "libnobody.so.13";
  const std::vector<std::string> names{"libnobody.so.13", "libnobody.so.12"};
  std::string why;
  try {
    const Library missing(names);
  } catch (const CudaError& e) {
    why = e.what();
  }
  CHECK(why.starts_with("neither libnobody.so.13 nor libnobody.so.12 is there: "));
  for (const std::string& place :
       {old, fresh, std::string("; libnobody.so.12: "), std::string("cuda/lib64/libnobody.so.13")})
    CHECK(why.find(place) != std::string::npos);
  std::filesystem::create_symlink(libc.dli_fname, old);
  CHECK(Library(names).where() == old);
  std::filesystem::create_symlink(libc.dli_fname, fresh);
  CHECK(Library(names).where() == fresh);
  CHECK(Library({names[1], names[0]}).where() == old);
  unsetenv("STAGECRAFT_CUDA_LIBRARIES");
}

TEST_CASE("without a device the reason is a sentence, and partitions throw") {
  const std::string why = why_no_device();
  CHECK(std::getenv("CUDA_DEVICE_MAX_CONNECTIONS") != nullptr);  // Before the first call.
  if (why.empty()) return;
  CHECK(why.size() > 5);
  CHECK_THROWS_AS(Partitions(0, {1, 1}), CudaError);
}
