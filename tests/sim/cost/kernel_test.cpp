#include "sim/cost/kernel.hpp"

#include <doctest/doctest.h>

#include "sim/cost/layer_kernels.hpp"
#include "tests/support/checked.hpp"

namespace stagecraft::kernel_test {
namespace {

Accelerator device(const std::string& name) { return load_accelerator("topologies/devices/" + name + ".yaml"); }

Kernel product(double m, double n, double k, double batch = 1, NumberFormat format = NumberFormat::Fp16) {
  return {.kind = KernelKind::Product, .m = m, .n = n, .k = k, .batch = batch, .format = format};
}

}  // namespace

TEST_CASE("products of an A100 take what waves of tiles and the filling of a tile allow") {
  const Accelerator a100 = device("a100-80");
  const auto ms = [&](const Kernel& kernel) { return 1e3 * time_of(kernel, a100).value; };
  CHECK(ms(product(8192, 3072, 8192)) == doctest::Approx(1.9264).epsilon(1e-4));
  CHECK(ms(product(8192, 8192, 1024)) == doctest::Approx(0.6594).epsilon(1e-4));
  CHECK(ms(product(2048, 2048, 8192)) == doctest::Approx(0.4816).epsilon(1e-4));
  CHECK(ms(product(2048, 2048, 128, 32)) == doctest::Approx(0.3398).epsilon(2e-4));
  CHECK(ms(product(2048, 128, 2048, 32)) == doctest::Approx(0.1924).epsilon(3e-4));
}

TEST_CASE("a product is never faster than its matrices move") {
  Accelerator slow = device("a100-80");
  slow.type.memory_bandwidth = Bandwidth{1e11};
  Kernel thin = product(1, 8192, 8192);
  const double moved = 2.0 * (8192 + 8192.0 * 8192 + 8192);
  CHECK(time_of(thin, slow).value == doctest::Approx(moved / 0.85e11).epsilon(1e-9));
  thin.output_bytes = 4;
  CHECK(time_of(thin, slow).value == doctest::Approx((moved + 2 * 8192) / 0.85e11).epsilon(1e-9));
}

TEST_CASE("a product with one tile more than fills the waves takes another wave") {
  const Accelerator a100 = device("a100-80");
  const Kernel full = product(128 * 108, 256, 4096), more = product(128 * 109, 256, 4096);
  CHECK(product_share(full, a100) == doctest::Approx(0.789 * 4096 / (4096 + 183)));
  CHECK(time_of(more, a100).value == doctest::Approx(2 * time_of(full, a100).value));
}

TEST_CASE("without multiprocessors a product has the share of its device, whatever its shape") {
  Accelerator flat = device("a100-80");
  flat.multiprocessors = 0;
  CHECK(product_share(product(100, 100, 64), flat) == 0.789);
}

TEST_CASE("memory-bound kernels move their bytes, more slowly where they reorder rows") {
  const Accelerator h100 = device("h100-sxm");
  Kernel kernel{.bytes = Bytes{1e9}};
  CHECK(time_of(kernel, h100).value == doctest::Approx(1e9 / (0.85 * 3.35e12)));
  kernel.reorders_rows = true;
  CHECK(time_of(kernel, h100).value == doctest::Approx(1e9 / (0.5 * 3.35e12)));
}

TEST_CASE("fused attention does two products forward and five backward on the pairs that no mask hides") {
  const Accelerator h100 = device("h100-sxm");
  Kernel kernel{.kind = KernelKind::FusedAttention, .m = 4096, .n = 4096, .k = 128, .batch = 16, .visible = 0.5};
  const double forward = 4 * 16 * 4096.0 * 4096 * 128 / 2;
  CHECK(flops_of(kernel).value == forward);
  CHECK(time_of(kernel, h100).value == doctest::Approx(forward / (989e12 * 0.56) + 20e-6));
  kernel.backward = true;
  CHECK(time_of(kernel, h100).value == doctest::Approx(2.5 * forward / (989e12 * 0.46) + 20e-6));
}

TEST_CASE("a grouped product with the rows of half its share reaches half its share") {
  const Accelerator b200 = device("b200");
  const Kernel grouped{.kind = KernelKind::GroupedProduct, .m = 280, .n = 2048, .k = 7168, .batch = 8};
  CHECK(time_of(grouped, b200).value == doctest::Approx(2 * 8 * 280 * 2048.0 * 7168 / (2250e12 * 0.45 / 2)));
}

TEST_CASE("8-bit factors halve what a product reads, and cost casts") {
  Accelerator slow = device("h100-sxm");
  slow.type.memory_bandwidth = Bandwidth{1e11};
  const Kernel thin = product(1, 8192, 8192, 1, NumberFormat::Fp8);
  CHECK(time_of(thin, slow).value == doctest::Approx((8192 + 8192.0 * 8192 + 2 * 8192) / 0.85e11).epsilon(1e-9));
  const SoftwareStack& stack = software_stack("megatron-core");
  CHECK(linear_kernels(10, 20, 30, NumberFormat::Bf16, stack).forward.size() == 1);
  const PassKernels narrow = linear_kernels(10, 20, 30, NumberFormat::Fp8, stack);
  CHECK(narrow.forward.back().bytes.value == 4 * 10 * 20);
  CHECK(narrow.input_gradient.back().bytes.value == 4 * 10 * 30);
  CHECK(narrow.weight_gradient.back().output_bytes == 4);
  CHECK(grouped_kernels(4, 10, 20, 30, NumberFormat::Bf16).forward.size() == 1);
  const PassKernels experts = grouped_kernels(4, 10, 20, 30, NumberFormat::MxFp8);
  CHECK(experts.forward.back().bytes.value == 4 * (4 * 10) * 20);
  CHECK(experts.input_gradient.back().bytes.value == 4 * (4 * 10) * 30);
  CHECK(experts.weight_gradient.size() == 1);
  CHECK(experts.forward.front().kind == KernelKind::GroupedProduct);
  CHECK(grouped_kernels(1, 10, 20, 30, NumberFormat::Bf16).forward.front().kind == KernelKind::Product);
}

TEST_CASE("a format that the device does not have is refused") {
  const Accelerator a100 = device("a100-80");
  CHECK(test::input_error_of([&] { time_of(product(8, 8, 8, 1, NumberFormat::NvFp4), a100); }).find("nvfp4") !=
        std::string::npos);
}

TEST_CASE("backward of attention that is not fused has one product over the width and three over the keys") {
  const PassKernels kernels =
      attention_kernels({.heads = 4, .queries = 512, .keys = 512, .width = 64}, NumberFormat::Fp16, NumberFormat::Fp16,
                        software_stack("megatron-2021"));
  int over_width = 0, over_keys = 0;
  for (const Kernel& kernel : kernels.input_gradient) {
    over_width += kernel.kind == KernelKind::Product && kernel.k == 64;
    over_keys += kernel.kind == KernelKind::Product && kernel.k == 512;
  }
  CHECK(over_width == 1);
  CHECK(over_keys == 3);
}

}  // namespace stagecraft::kernel_test
