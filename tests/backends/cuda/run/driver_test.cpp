// Drivers that are older than the newest CUDA.
#include <doctest/doctest.h>

#include "backends/cuda/driver.hpp"
#include "backends/cuda/libraries.hpp"
#include "tests/backends/cuda/run/gpu_case.hpp"

namespace stagecraft::driver_test {

TEST_CASE("a driver that is too old for this build says which one is needed") {
  emulated_gpu::Machine machine;
  machine.driver = 11080;
  emulated_gpu::reset(machine);
  const std::string build = cuda::cuda_version(CUDART_VERSION), needed = CUDART_VERSION >= 13000 ? "580" : "525";
  CHECK(
      cuda::why_no_device().starts_with("the NVIDIA driver here is for CUDA 11.8 at most, and this program was built "
                                        "with CUDA " +
                                        build + ", which needs driver " + needed + " or newer: update the driver"));
  machine.driver = CUDART_VERSION;
  emulated_gpu::reset(machine);
  CHECK(cuda::why_no_device().empty());
  machine.devices = 0;
  emulated_gpu::reset(machine);
  CHECK(cuda::why_no_device() == "no CUDA-capable device is detected");
}

TEST_CASE("the libraries of CUDA 12 come first where the driver is for CUDA 12") {
  const auto names = [](int driver) {
    emulated_gpu::Machine machine;
    machine.driver = driver;
    emulated_gpu::reset(machine);
    return cuda::names_by_cuda_version("libcublasLt.so");
  };
  using Names = std::vector<std::string>;
  CHECK(names(12040) == Names{"libcublasLt.so.12", "libcublasLt.so.13"});
  CHECK(names(13000) == Names{"libcublasLt.so.13", "libcublasLt.so.12"});
  CHECK(names(0) == Names{"libcublasLt.so.13", "libcublasLt.so.12"});  // No driver.
}

TEST_CASE("a driver of CUDA 12.4 makes streams of a part in its context, and no other context stays current") {
  test::Case c;
  c.model = test::deep_net(4, 6, 8, 3);
  c.plan = test::stage_each(c.model, 4);
  const Program program = c.program();
  emulated_gpu::Machine machine;
  const Timeline direct = test::on_gpu(c, program, machine);
  machine.green_streams = false;
  const Timeline by_context = test::on_gpu(c, program, machine);
  CHECK(by_context.provenance.machine == "4 partitions of 32 of the 132 multiprocessors of Emulated GPU");
  CHECK(by_context.learnt->weights == direct.learnt->weights);
}

}  // namespace stagecraft::driver_test
