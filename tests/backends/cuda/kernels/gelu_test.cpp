// A product and the GELU next to it, in one call of cuBLASLt where it can, against the CPU one by one.
#include <cmath>

#include <doctest/doctest.h>

#include "tests/backends/cuda/kernels/gpu.hpp"
#include "tests/backends/cuda/kernels/shapes.hpp"

namespace stagecraft::gelu_test {
using namespace stagecraft::test;

namespace {

struct Net {
  std::int64_t rows, inner, columns;
  bool bias = true;
  std::string name() const {
    return std::to_string(rows) + "x" + std::to_string(inner) + " to " + std::to_string(columns);
  }
  Operation product() const {
    Operation op{.kind = OperationKind::Linear, .rows = static_cast<int>(rows), .columns = static_cast<int>(columns)};
    op.inner = static_cast<int>(inner);
    op.bias = bias;
    return op;
  }
};

// Multiples of 1/8: 16 bits hold them, and sums of at largest 100 of their products are exact in 32 bits in any order,
// so that the number before a GELU is the same wherever it is summed.
std::vector<double> eighths(Rng& rng, std::int64_t count) {
  std::vector<double> numbers(static_cast<std::size_t>(count));
  for (double& x : numbers) x = rng.integer(-8, 8) / 8.0;
  return numbers;
}

struct Results {
  std::vector<double> before, after, gradient;
  bool operator==(const Results&) const = default;
};

/// A product then a GELU; and the gradients of a product that reads a GELU, at the GELU's given input.
Results all_of(real::Kernels& kernels, const Net& net) {
  Rng rng(5, net.name());
  const Operation product = net.product();
  const Operation gelu{.kind = OperationKind::Gelu, .rows = product.rows, .columns = product.columns};
  const auto weights = eighths(rng, real::blocks(product, kernels.width()).total);
  const DeviceTensor w(kernels, weights, 1), x(kernels, eighths(rng, net.rows * net.inner), net.inner);
  const std::vector<double> nothing(static_cast<std::size_t>(net.rows * net.columns), 77);
  const DeviceTensor before(kernels, nothing, net.columns), after(kernels, nothing, net.columns);
  const auto call = [](const Operation& op, const real::Tensor& in, const real::Tensor& out, const void* at) {
    real::Call c;
    c.operation = &op, c.inputs = {&in, 1}, c.output = out, c.weights = at;
    return c;
  };
  kernels.forward_with_gelu(call(product, x.tensor, before.tensor, w.tensor.data),
                            call(gelu, before.tensor, after.tensor, nullptr));

  // The product after the GELU: what it reads has `inner` columns.
  const Operation earlier{.kind = OperationKind::Gelu, .rows = product.rows, .columns = product.inner};
  const DeviceTensor input(kernels, eighths(rng, net.rows * net.inner), net.inner);
  const DeviceTensor d_output(kernels, eighths(rng, net.rows * net.columns), net.columns);
  const std::vector<double> empty(static_cast<std::size_t>(net.rows * net.inner), 77);
  const DeviceTensor between(kernels, empty, net.inner), gradient(kernels, empty, net.inner);
  kernels.input_gradient_with_gelu(call(product, x.tensor, {}, w.tensor.data), d_output.tensor, {between.tensor, false},
                                   call(earlier, input.tensor, {}, nullptr), {gradient.tensor, false});
  return {before.download(), after.download(), gradient.download()};
}

Results on_cpu(std::size_t width, const Net& net) {
  const auto kernels = cpu::make_kernels(width);
  return all_of(*kernels, net);
}

Results on_gpu(std::size_t width, const Net& net, cuda::Precision precision = cuda::Precision::Tf32,
               std::uint64_t seed = 1) {
  Gpu gpu(width, seed, precision);
  return all_of(gpu.kernels(), net);
}

double farthest(const std::vector<double>& a, const std::vector<double>& b, double scale, double base) {
  REQUIRE(a.size() == b.size());
  double largest = 0;  // Over what is allowed.
  for (std::size_t i = 0; i < a.size(); ++i)
    largest =
        std::isfinite(a[i]) ? std::max(largest, std::abs(a[i] - b[i]) / (base + scale * std::abs(b[i]))) : HUGE_VAL;
  return largest;
}

const std::vector<Net>& nets() {
  static const std::vector<Net> shapes{{3, 16, 8}, {17, 40, 32}, {5, 8, 64, false}, {1, 24, 16}};
  return shapes;
}

}  // namespace

// One by one, the number before the GELU is rounded to 16 bits in between, by u |x| with u = 2^-8, and slopes of a GELU
// are below 1.13. Both sides round their results, each by u |y|. In a gradient the rounding in between is of the
// product, whose size is the gradient over the slope; sums here are below `inner` or `columns`.
TEST_CASE("a product with its GELU is within the roundings in between") {
  for (const std::size_t width : {real::kMixedWidth, sizeof(float)})
    for (const Net& net : nets()) {
      CAPTURE(net.name());
      CAPTURE(width);
      const Results gpu = on_gpu(width, net), cpu = on_cpu(width, net);
      const double u = width == real::kMixedWidth ? 0x1p-8 : 0x1p-21;
      CHECK(gpu.before == cpu.before);
      CHECK(farthest(gpu.after, cpu.after, 2 * u, 1.13 * u * static_cast<double>(net.inner + 1) + 1e-6) <= 1);
      CHECK(farthest(gpu.gradient, cpu.gradient, 2 * u, 1.13 * u * static_cast<double>(net.columns) + 1e-6) <= 1);
      CHECK(on_gpu(width, net, cuda::Precision::Tf32, 2) == gpu);
    }
}

TEST_CASE("only outside of exact precision are products and GELUs computed together") {
  CHECK(!Gpu(sizeof(float)).kernels().fuses_gelu());
  CHECK(!Gpu(sizeof(double), 1, cuda::Precision::Tf32).kernels().fuses_gelu());
  CHECK(Gpu(sizeof(float), 1, cuda::Precision::Bf16).kernels().fuses_gelu());
  CHECK(Gpu(real::kMixedWidth).kernels().fuses_gelu());
  CHECK(!cpu::make_kernels(sizeof(float))->fuses_gelu());
  const Net net{7, 16, 24};  // Called all the same, exact precision has the bits of the CPU: nothing is rounded.
  CHECK(on_gpu(sizeof(float), net, cuda::Precision::Exact) == on_cpu(sizeof(float), net));
}

#ifdef STAGECRAFT_EMULATED_GPU
TEST_CASE("where cuBLASLt cannot, the product and the GELU are computed one by one, with the bits of two calls") {
  const Net net{17, 40, 32}, odd{6, 12, 20};
  on_gpu(real::kMixedWidth, net);
  CHECK(emulated_gpu::fused_gelus() == 2);
  CHECK(on_gpu(real::kMixedWidth, odd) == on_cpu(real::kMixedWidth, odd));  // Rows that are not multiples of 16 bytes.
  CHECK(emulated_gpu::fused_gelus() == 0);
  for (emulated_gpu::Machine machine : {emulated_gpu::Machine{.refuses_bias = true}, {.refuses_gelu = true}}) {
    emulated_gpu::reset(machine);
    cudaStream_t stream{};
    cuda::check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "a stream");
    const auto kernels = cuda::make_kernels({stream, 16, cuda::Precision::Exact}, real::kMixedWidth);
    CHECK(all_of(*kernels, net) == on_cpu(real::kMixedWidth, net));
    CHECK(emulated_gpu::fused_gelus() == 0);
  }
}
#endif

}  // namespace stagecraft::gelu_test
