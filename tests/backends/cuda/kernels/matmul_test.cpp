#include "backends/cuda/kernels/matmul.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include <doctest/doctest.h>

#include "backends/cuda/capture.hpp"
#include "backends/cuda/kernels/product_choices.hpp"
#include "sim/core/diagnostic.hpp"
#include "sim/core/file.hpp"
#include "sim/core/random.hpp"
#include "tests/backends/cpu/trial.hpp"
#include "tests/backends/cuda/kernels/gpu.hpp"
#include "tests/support/files.hpp"

namespace stagecraft::matmul_test {
using cuda::Precision;
using test::Gpu;

namespace {

/// Matrices on the host, and where they lie on the GPU.
struct Many {
  cuda::Matrices where;
  std::vector<double> numbers;

  /// An element of matrix `i` as it is multiplied, that is after transposition.
  double at(std::int64_t i, std::int64_t row, std::int64_t column) const {
    if (where.transposed) std::swap(row, column);
    return numbers[where.offset + i * where.distance + row * where.stride + column];
  }
};

Many drawn(std::int64_t rows, std::int64_t columns, std::int64_t count, bool transposed, Rng& rng) {
  if (transposed) std::swap(rows, columns);
  Many m;
  m.where.stride = columns + rng.integer(0, 3);
  m.where.distance = rows * m.where.stride + rng.integer(0, 5);
  m.where.offset = rng.integer(0, 9);
  m.where.transposed = transposed;
  m.numbers.resize(static_cast<std::size_t>(m.where.offset + count * m.where.distance + m.where.stride));
  for (double& x : m.numbers) x = static_cast<double>(static_cast<float>(rng.uniform(-2, 2)));
  return m;
}

struct Product {
  cuda::ProductShape shape;
  Many a, b, c;
  bool add;
};

Product drawn_product(Rng& rng) {
  constexpr int sizes[] = {1, 2, 3, 7, 17, 33, 64, 129};
  const auto size = [&] { return std::int64_t{sizes[rng.integer(0, 7)]}; };
  const cuda::ProductShape s{size(), size(), size(), rng.integer(1, 4)};
  const bool ta = rng.integer(0, 1) == 1, tb = rng.integer(0, 1) == 1;
  return {s, drawn(s.m, s.k, s.count, ta, rng), drawn(s.k, s.n, s.count, tb, rng), drawn(s.m, s.n, s.count, false, rng),
          rng.integer(0, 1) == 1};
}

std::vector<double> on_gpu(const Product& p, std::size_t width, Precision precision) {
  Gpu gpu(width, 1, precision);
  cuda::Memory memory(gpu.stream());
  cuda::Products products({gpu.stream(), 16, precision}, width, memory);
  const auto place = [&](const Many& m) { return test::DeviceTensor(gpu.kernels(), m.numbers, 1); };
  const test::DeviceTensor a = place(p.a), b = place(p.b), c = place(p.c);
  const auto based = [](cuda::Matrices m, const test::DeviceTensor& at) {
    m.base = at.tensor.data;
    return m;
  };
  products.multiply(p.shape, based(p.a.where, a), based(p.b.where, b), based(p.c.where, c), p.add);
  return c.download();
}

/// How much larger the largest difference is than `bound` sqrt(K + 1) (|A||B|)_ij; what is outside of the result has
/// to be as it was.
double worst(const Product& p, const std::vector<double>& actual, double bound) {
  double largest = 0;
  std::vector<double> outside = p.c.numbers, rest = actual;
  for (std::int64_t i = 0; i < p.shape.count; ++i)
    for (std::int64_t row = 0; row < p.shape.m; ++row)
      for (std::int64_t column = 0; column < p.shape.n; ++column) {
        const auto at =
            static_cast<std::size_t>(p.c.where.offset + i * p.c.where.distance + row * p.c.where.stride + column);
        double sum = p.add ? p.c.numbers[at] : 0, size = std::abs(sum);
        for (std::int64_t t = 0; t < p.shape.k; ++t) {
          const double term = p.a.at(i, row, t) * p.b.at(i, t, column);
          sum += term;
          size += std::abs(term);
        }
        const double allowed = bound * std::sqrt(static_cast<double>(p.shape.k) + 1) * size;
        largest = std::max(largest, std::abs(actual[at] - sum) / allowed);
        outside[at] = rest[at] = 0;
      }
  CHECK(outside == rest);
  return largest;
}

}  // namespace

// |found - exact| <= 4 sqrt(K) u (|A||B|), with u = 2^-53 or 2^-24, and 2^-11 and 2^-8 where operands are rounded
// first.
TEST_CASE("products of all shapes, transposed and not, of many matrices, apart in memory") {
  Rng rng(1, "products");
  for (int i = 0; i < 60; ++i) {
    const Product p = drawn_product(rng);
    CAPTURE(i);
    CHECK(worst(p, on_gpu(p, 8, Precision::Exact), 4 * 0x1p-53) <= 1);
    CHECK(worst(p, on_gpu(p, 4, Precision::Exact), 4 * 0x1p-24) <= 1);
    CHECK(worst(p, on_gpu(p, 4, Precision::Tf32), 4 * 0x1p-11) <= 1);
    CHECK(worst(p, on_gpu(p, 4, Precision::Bf16), 4 * 0x1p-8) <= 1);
  }
}

// c = a b + bias in one product: the sum has one rounding more than the product alone.
TEST_CASE("products with a bias, of all shapes, at all places in memory") {
  Rng rng(3, "products");
  for (int i = 0; i < 60; ++i) {
    Product p = drawn_product(rng);
    p.shape.count = 1;
    p.add = false;
    const int place = rng.integer(0, 5);  // Where the bias begins in its array: it may be aligned to one number alone.
    std::vector<double> bias(static_cast<std::size_t>(place + p.shape.n));
    for (double& x : bias) x = static_cast<double>(static_cast<float>(rng.uniform(-2, 2)));
    Gpu gpu(4, 1, Precision::Tf32);
    cuda::Memory memory(gpu.stream());
    cuda::Products products({gpu.stream(), 16, Precision::Tf32}, 4, memory);
    const test::DeviceTensor a(gpu.kernels(), p.a.numbers, 1), b(gpu.kernels(), p.b.numbers, 1),
        c(gpu.kernels(), p.c.numbers, 1), d(gpu.kernels(), bias, 1);
    const auto based = [](cuda::Matrices m, const test::DeviceTensor& at) {
      m.base = at.tensor.data;
      return m;
    };
    CAPTURE(i);
    REQUIRE(products.multiply_with_bias(p.shape, based(p.a.where, a), based(p.b.where, b), based(p.c.where, c),
                                        static_cast<const float*>(d.tensor.data) + place));
    // This equals a sum on top of a result that holds the bias in every row.
    p.add = true;
    for (std::int64_t row = 0; row < p.shape.m; ++row)
      for (std::int64_t column = 0; column < p.shape.n; ++column)
        p.c.numbers[static_cast<std::size_t>(p.c.where.offset + row * p.c.where.stride + column)] =
            bias[static_cast<std::size_t>(place + column)];
    CHECK(worst(p, c.download(), 4 * 0x1p-11) <= 1);
  }
}

// sums[row] = the sum of a row of a, which equals a product with ones; the product itself is as without sums.
TEST_CASE("products with sums of the rows of their first factor, of all shapes") {
  Rng rng(4, "products");
  for (int i = 0; i < 60; ++i) {
    Product p = drawn_product(rng);
    p.shape.count = 1;
    p.add = true;
    Gpu gpu(4, 1, Precision::Tf32);
    cuda::Memory memory(gpu.stream());
    cuda::Products products({gpu.stream(), 16, Precision::Tf32}, 4, memory);
    const int place = rng.integer(0, 5);
    const test::DeviceTensor a(gpu.kernels(), p.a.numbers, 1), b(gpu.kernels(), p.b.numbers, 1),
        c(gpu.kernels(), p.c.numbers, 1),
        d(gpu.kernels(), std::vector<double>(static_cast<std::size_t>(place + p.shape.m), 7), 1);
    const auto based = [](cuda::Matrices m, const test::DeviceTensor& at) {
      m.base = at.tensor.data;
      return m;
    };
    CAPTURE(i);
    REQUIRE(products.multiply_with_row_sums(p.shape, based(p.a.where, a), based(p.b.where, b), based(p.c.where, c),
                                            static_cast<float*>(d.tensor.data) + place));
    CHECK(worst(p, c.download(), 4 * 0x1p-11) <= 1);
    const std::vector<double> sums = d.download();
    for (std::int64_t row = 0; row < p.shape.m; ++row) {
      double sum = 0, size = 0;
      for (std::int64_t t = 0; t < p.shape.k; ++t) sum += p.a.at(0, row, t), size += std::abs(p.a.at(0, row, t));
      const double allowed = 4 * 0x1p-11 * std::sqrt(static_cast<double>(p.shape.k) + 1) * size;
      CHECK(std::abs(sums[static_cast<std::size_t>(place + row)] - sum) <= allowed);
    }
  }
}

TEST_CASE("doubles are never rounded first, and equal calls give equal bits") {
  Rng rng(2, "products");
  const Product p = drawn_product(rng);
  const std::vector<double> exact = on_gpu(p, 8, Precision::Exact);
  CHECK(on_gpu(p, 8, Precision::Bf16) == exact);
  CHECK(on_gpu(p, 8, Precision::Exact) == exact);
}

#ifdef STAGECRAFT_EMULATED_GPU
TEST_CASE("the emulated tensor cores round: 1 + 2^-10 stays in tf32, 1 + 2^-7 in bf16, and half of that does not") {
  Product p{{1, 1, 1, 1}, {}, {}, {}, false};
  for (Many* const m : {&p.a, &p.b, &p.c}) *m = {{nullptr, 0, 1, 1, false}, {1}};
  const auto rounded = [&](double x, Precision precision) {
    p.a.numbers[0] = x;
    return on_gpu(p, 4, precision)[0];
  };
  CHECK(rounded(1 + 0x1p-10, Precision::Tf32) == 1 + 0x1p-10);
  CHECK(rounded(1 + 0x1p-11, Precision::Tf32) == 1 + 0x1p-10);  // A tie, away from zero.
  CHECK(rounded(1 + 0x1p-12, Precision::Tf32) == 1);
  CHECK(rounded(1 + 0x1p-7, Precision::Bf16) == 1 + 0x1p-7);
  CHECK(rounded(1 + 0x1p-8, Precision::Bf16) == 1);  // A tie, to even.
  CHECK(rounded(1 + 0x1p-8 + 0x1p-20, Precision::Bf16) == 1 + 0x1p-7);
  CHECK(rounded(1 + 0x1p-20, Precision::Exact) == 1 + 0x1p-20);
}

TEST_CASE("without an algorithm for one kind of exact product there is another; rounding is never left out silently") {
  const auto multiply = [](Precision precision, std::vector<int> refused) {
    emulated_gpu::Machine machine;
    machine.refused_products = std::move(refused);
    emulated_gpu::reset(machine);
    cudaStream_t stream = nullptr;
    cuda::check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "a stream");
    cuda::Memory memory(stream);
    cuda::Products products({stream, 16, precision}, 4, memory);
    const cuda::Block numbers(64);
    const cuda::Matrices square{numbers.as<void>(), 0, 4, 0, false};
    products.multiply({4, 4, 4}, square, square, square, false);
    cuda::check(cudaStreamSynchronize(stream), "waiting");
  };
  CHECK_NOTHROW(multiply(Precision::Exact, {CUBLAS_COMPUTE_32F_PEDANTIC}));
  CHECK_THROWS_WITH_AS(multiply(Precision::Exact, {CUBLAS_COMPUTE_32F_PEDANTIC, CUBLAS_COMPUTE_32F}),
                       doctest::Contains("no algorithm for a product of 4x4 by 4x4"), cuda::CudaError);
  CHECK_THROWS_WITH_AS(multiply(Precision::Tf32, {CUBLAS_COMPUTE_32F_FAST_TF32}),
                       doctest::Contains("run.gpu.precision: exact"), cuda::CudaError);
}

TEST_CASE("a bias is added apart in exact precision and where no algorithm adds one") {
  const auto adds = [](Precision precision, bool refuses) {
    emulated_gpu::Machine machine;
    machine.refuses_bias = refuses;
    emulated_gpu::reset(machine);
    cudaStream_t stream = nullptr;
    cuda::check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "a stream");
    cuda::Memory memory(stream);
    cuda::Products products({stream, 16, precision}, 4, memory);
    const cuda::Block numbers(64);
    const cuda::Matrices square{numbers.as<void>(), 0, 4, 0, false};
    const bool first = products.multiply_with_bias({4, 4, 4}, square, square, square, numbers.as<void>());
    CHECK(products.multiply_with_bias({4, 4, 4}, square, square, square, numbers.as<void>()) == first);
    cuda::check(cudaStreamSynchronize(stream), "waiting");
    return first;
  };
  CHECK(adds(Precision::Tf32, false));
  CHECK(!adds(Precision::Tf32, true));
  CHECK(!adds(Precision::Exact, false));
}

namespace {

/// Launches of a linear layer with a bias, forward and for the gradient of its weights.
std::int64_t launches_of_linear(Precision precision, std::size_t width, bool refuses, int samples) {
  test::Trial t;
  t.op.kind = OperationKind::Linear;
  t.op.rows = 64, t.op.columns = 8, t.op.inner = 8, t.op.bias = true;
  t.samples = samples;
  t.columns = {8};
  emulated_gpu::Machine machine;
  machine.refuses_bias = refuses;
  emulated_gpu::reset(machine);
  cudaStream_t stream = nullptr;
  cuda::check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "a stream");
  const auto kernels = cuda::make_kernels({stream, 16, precision}, width);
  test::ComputedTrial device(*kernels, t, test::data_for(t, width));
  cuda::LaunchLimit limit;
  const cuda::LimitedLaunches limited(&limit);
  limit.share_queues(1);
  device.weight_gradient();
  const std::int64_t calls = limit.calls();
  REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
  limit.forget();
  return calls;
}

}  // namespace

TEST_CASE("a linear layer of many rows takes a launch less where the product makes the gradient of its bias") {
  for (const int samples : {1, 8}) {
    const std::int64_t exact = launches_of_linear(Precision::Exact, 4, false, samples);
    CHECK(launches_of_linear(Precision::Tf32, 4, false, samples) == exact - (samples > 4));
    CHECK(launches_of_linear(Precision::Tf32, 4, true, samples) == exact);
    CHECK(launches_of_linear(Precision::Exact, real::kMixedWidth, false, samples) == exact - (samples > 4));
  }
}

TEST_CASE(
    "the fastest of the algorithms is timed once for a shape and number of multiprocessors; exact takes the first") {
  emulated_gpu::Machine machine;
  machine.product_seconds = {4e-3, 3e-3, 1e-3, 2e-3};
  const auto on = [&](Precision precision, std::size_t width, int multiprocessors, double k) {
    emulated_gpu::reset(machine);
    cudaStream_t stream = nullptr;
    cuda::check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "a stream");
    cuda::Memory memory(stream);
    cuda::Products products({stream, multiprocessors, precision}, width, memory);
    const auto kernels = cuda::make_kernels({stream, multiprocessors, precision}, width);
    const std::vector<double> numbers{1, 2, 3, 4};
    const test::DeviceTensor a(*kernels, numbers, 2), c(*kernels, {k, k, k, k}, 2);
    const cuda::Matrices factor{a.tensor.data, 0, 2, 0, false}, sum{c.tensor.data, 0, 2, 0, false};
    for (int n = 0; n < 2; ++n) products.multiply({2, 2, 2}, factor, factor, sum, true);
    CHECK(c.download() == std::vector<double>{14 + k, 20 + k, 30 + k, 44 + k});  // Twice the product; nothing more.
    std::vector<std::int64_t> runs;
    for (std::size_t n = 0; n < 4; ++n) runs.push_back(emulated_gpu::products(n));
    if (runs[1] > 0) runs[0] = std::min<std::int64_t>(runs[0], 8);  // It warms the GPU up, too.
    return runs;
  };
  using Runs = std::vector<std::int64_t>;
  CHECK(on(Precision::Exact, 4, 16, 1) == Runs{2, 0, 0, 0});
  CHECK(on(Precision::Exact, 8, 16, 1) == Runs{2, 0, 0, 0});
  CHECK(on(Precision::Tf32, 8, 16, 1) == Runs{2, 0, 0, 0});
  CHECK(on(Precision::Tf32, 4, 16, 1) ==
        Runs{8, 8, 10, 8});  // Each once, then seven times to be timed, then the third.
  CHECK(on(Precision::Tf32, 4, 16, 2) == Runs{0, 0, 2, 0});
  CHECK(on(Precision::Tf32, 4, 32, 1) == Runs{8, 8, 10, 8});
  CHECK(on(Precision::Bf16, 4, 16, 1) == Runs{8, 8, 10, 8});
  const std::vector<std::string> timed = cuda::timed_products();
  CHECK(std::count(timed.begin(), timed.end(), "2x2x2, 1 of them, on 16 multiprocessors: 3 of 4") == 2);
  CHECK(std::count(timed.begin(), timed.end(), "2x2x2, 1 of them, on 32 multiprocessors: 3 of 4") == 1);
}

namespace {

/// The algorithm, counted from 0, that products of a shape that no other test has take on such a machine.
int chosen_on(const emulated_gpu::Machine& machine, int size) {
  emulated_gpu::reset(machine);
  cudaStream_t stream = nullptr;
  cuda::check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "a stream");
  cuda::Memory memory(stream);
  cuda::Products products({stream, 16, Precision::Tf32}, 4, memory);
  const cuda::Block numbers(sizeof(float) * static_cast<std::size_t>(size * size));
  const cuda::Matrices square{numbers.as<void>(), 0, size, 0, false};
  const auto counts = [&] {
    std::vector<std::int64_t> counted;
    for (std::size_t n = 0; n < machine.product_seconds.size(); ++n) counted.push_back(emulated_gpu::products(n));
    return counted;
  };
  products.multiply({size, size, size}, square, square, square, false);
  const std::vector<std::int64_t> timed = counts();
  products.multiply({size, size, size}, square, square, square, false);
  cuda::check(cudaStreamSynchronize(stream), "waiting");
  const std::vector<std::int64_t> after = counts();
  return static_cast<int>(std::mismatch(timed.begin(), timed.end(), after.begin()).first - timed.begin());
}

}  // namespace

TEST_CASE("whatever times are drawn, equal algorithms leave the first, and one that is faster by a tenth is taken") {
  emulated_gpu::Machine machine;
  machine.product_noise = 0.02;  // And one product in twenty takes five times as long.
  for (int i = 0; i < 40; ++i) {
    machine.seed = static_cast<std::uint64_t>(i) + 1;
    CAPTURE(i);
    machine.product_seconds = {10e-3, 10e-3, 10e-3, 10e-3};
    CHECK(chosen_on(machine, 41 + 2 * i) == 0);
    machine.product_seconds = {10e-3, 10e-3, 9e-3, 12e-3};
    CHECK(chosen_on(machine, 42 + 2 * i) == 2);
  }
}

TEST_CASE("clocks have risen before algorithms are compared") {
  emulated_gpu::Machine machine;
  machine.product_seconds = {1e-3, 1.1e-3};
  machine.clock_rise = 40e-3;  // The first algorithm, first of all, would take four times as long.
  CHECK(chosen_on(machine, 130) == 0);
}

TEST_CASE("an algorithm that cuBLASLt names and does not support is not taken") {
  emulated_gpu::Machine machine;
  machine.product_seconds = {-1, 4e-3, -1, 3e-3};
  CHECK(chosen_on(machine, 131) == 3);
}

namespace {

/// The algorithm of a product with choices from this file, to which it may be added.
int chosen_with_file(const std::string& file, std::vector<double> seconds, int size) {
  cuda::ProductChoices& choices = cuda::ProductChoices::of_process();
  choices.open(file);
  emulated_gpu::Machine machine;
  machine.product_seconds = std::move(seconds);
  const int chosen = chosen_on(machine, size);
  choices.save();
  choices.open("");
  return chosen;
}

}  // namespace

TEST_CASE("choices that a file has are taken again, whatever would be the fastest now") {
  const test::Folder folder;
  const std::string file = folder / "products.json", other = folder / "other.json";
  CHECK(chosen_with_file(file, {3e-3, 1e-3, 2e-3}, 132) == 1);
  const std::string text = read_output(file);
  CHECK(text.find("\"machine\": \"Emulated GPU with cuBLASLt") != std::string::npos);
  CHECK(text.find("132x132x132, 1 of them, on 16 multiprocessors; tf32, ") != std::string::npos);
  // As another process would find it: its own choice is another one.
  std::string changed = text;
  changed.replace(changed.find("\"algorithm\": 2"), 14, "\"algorithm\": 3");
  test::write_file(file, changed);
  CHECK(chosen_with_file(file, {1e-3, 2e-3, 3e-3}, 132) == 2);
  CHECK(read_output(file) == changed);
  CHECK(chosen_with_file(file, {1e-3, 2e-3, 3e-3}, 133) == 0);  // Added to it.
  CHECK(read_output(file).find("133x133x133") != std::string::npos);
  CHECK(chosen_with_file(other, {1e-3, 2e-3, 3e-3}, 132) == 2);  // An earlier choice of the process, written, too.
  CHECK(read_output(other).find("\"algorithm\": 3") != std::string::npos);
}

TEST_CASE("a file of choices of another GPU or library, of other algorithms, or of anything else is refused") {
  const test::Folder folder;
  const std::string file = folder / "products.json";
  chosen_with_file(file, {3e-3, 1e-3, 2e-3}, 134);
  const std::string text = read_output(file);
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string changed = text;
    const std::size_t at = changed.find(from);
    REQUIRE(at != std::string::npos);
    test::write_file(file, changed.replace(at, from.size(), to));
    std::string why = "accepted";
    try {
      chosen_with_file(file, {3e-3, 1e-3, 2e-3}, 134);
    } catch (const InputError& e) {
      why = std::string(e.what()) + "; help: " + e.problems().front().help;
    }
    cuda::ProductChoices::of_process().open("");
    return why;
  };
  const auto has = [](const std::string& why, const std::string& part) {
    CAPTURE(why);
    CHECK(why.find(part) != std::string::npos);
  };
  has(with("Emulated GPU", "NVIDIA H100"), "products.json has the choices for NVIDIA H100 with cuBLASLt");
  const std::string others = with("\"of\": 3", "\"of\": 4");
  has(others, "has one of 4 algorithms for the product 134x134x134");
  has(others, "help: delete it, or name one that does not exist yet");
  has(with("\"of\": 3", "\"of\": 1"), "has no choices of matrix products: algorithm 2 of 1 is none");
  has(with("\"algorithm\": 2", "\"algorithm\": 2.5"), "has no choices of matrix products");
  has(with("products/1", "products/2"), "has no choices of matrix products");
  has(with("\"products\"", "\"product\""), "has no choices of matrix products");
  has(with("}", ""), "has no choices of matrix products: ");
}

TEST_CASE("GPUs of two kinds in one run have no file of choices together") {
  const test::Folder folder;
  cuda::ProductChoices& choices = cuda::ProductChoices::of_process();
  choices.open(folder / "new.json");
  choices.require_machine("a");
  choices.require_machine("a");
  try {
    choices.require_machine("b");
    FAIL("b is accepted");
  } catch (const InputError& e) {
    CHECK(std::string(e.what()).find("new.json would have the choices for one kind of GPU, and this run has a and b") !=
          std::string::npos);
    CHECK(e.problems().front().help.find("CUDA_VISIBLE_DEVICES") != std::string::npos);
  }
  choices.open("");
}

TEST_CASE("a product of sizes that do not fit, or beyond its memory, is found") {
  Gpu gpu(4);
  cuda::Memory memory(gpu.stream());
  cuda::Products products({gpu.stream(), 16, Precision::Exact}, 4, memory);
  const test::DeviceTensor x(gpu.kernels(), std::vector<double>(16, 1), 4);
  const cuda::Matrices square{x.tensor.data, 0, 4, 0, false}, narrow{x.tensor.data, 0, 2, 0, false};
  CHECK_THROWS_WITH_AS(products.multiply({4, 4, 4}, square, narrow, square, false), doctest::Contains("4x4"),
                       cuda::CudaError);
  const cuda::Matrices far{x.tensor.data, std::int64_t{1} << 30, 4, 0, false};
  products.multiply({4, 4, 4}, square, far, square, false);
  CHECK_THROWS_AS(cudaStreamSynchronize(gpu.stream()), emulated_gpu::Misuse);
}
#endif

}  // namespace stagecraft::matmul_test
