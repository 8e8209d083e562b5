// Attention by cuDNN in mixed precision, against the kernels of the CPU.
#include <algorithm>
#include <cmath>
#include <cstring>

#include <doctest/doctest.h>

#include "backends/cuda/attention_plan.hpp"
#include "backends/cuda/launch_limit.hpp"
#include "backends/real/formulas/bfloat16.hpp"
#include "tests/backends/cuda/kernels/gpu.hpp"
#include "tests/backends/cuda/kernels/shapes.hpp"

namespace stagecraft::library_attention_test {
using namespace stagecraft::test;

namespace {

Trial attention(int samples, int rows, int heads, int width, bool causal) {
  Trial t;
  t.op.kind = OperationKind::Attention;
  t.op.rows = rows;
  t.op.heads = heads;
  t.op.columns = heads * width;
  t.op.causal = causal;
  t.samples = samples;
  t.columns = {3 * t.op.columns};
  t.name = to_text(t.op) + ", " + std::to_string(samples) + " samples";
  return t;
}

TrialData rounded_data(const Trial& t) {
  TrialData data = data_for(t, real::kMixedWidth);
  for (double& x : data.d_output) x = static_cast<float>(real::Bfloat16(static_cast<float>(x)));
  return data;
}

struct Results {
  std::vector<double> output, saved, gradient, added;

  /// Halves of floats may be what is not a number, which equals nothing.
  bool operator==(const Results& o) const {
    return output == o.output && gradient == o.gradient && added == o.added && saved.size() == o.saved.size() &&
           std::memcmp(saved.data(), o.saved.data(), saved.size() * sizeof(double)) == 0;
  }
};

Results all_of(real::Kernels& kernels, const Trial& t, std::size_t shift = 0) {
  ComputedTrial device(kernels, t, rounded_data(t), shift);
  return {device.output, device.saved(), device.input_gradient()[0], device.input_gradient(true, 0.5)[0]};
}

Results on_gpu(const Trial& t, std::uint64_t seed = 1, std::size_t shift = 0) {
  Gpu gpu(real::kMixedWidth, seed);
  return all_of(gpu.kernels(), t, shift);
}

std::string choice_of(const Trial& t) {
  const std::string shape = std::to_string(t.samples) + " x " + std::to_string(t.op.rows) + " rows, " +
                            std::to_string(t.op.heads) + " heads of width " +
                            std::to_string(t.op.columns / t.op.heads) + (t.op.causal ? ", causal" : ",");
  for (const std::string& line : cuda::attention_choices())
    if (line.starts_with(shape)) return line;
  return "";
}

double farthest(const std::vector<double>& a, const std::vector<double>& b) {
  REQUIRE(a.size() == b.size());
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    largest = std::isfinite(a[i]) ? std::max(largest, std::abs(a[i] - b[i])) : HUGE_VAL;
  return largest;
}

const std::vector<Trial>& trials() {
  static const std::vector<Trial> shapes{attention(1, 3, 1, 8, false),  attention(2, 12, 2, 8, true),
                                         attention(3, 33, 4, 16, true), attention(2, 17, 3, 24, false),
                                         attention(1, 64, 2, 64, true), attention(2, 5, 1, 128, true)};
  return shapes;
}

}  // namespace

// The bound of backends/cuda/README.md, as tests/backends/cpu/mixed_test.cpp derives it. cuDNN also takes the sum of
// d p over a row from the rounded output: w products of numbers below 2 are off by 4 w 2^-8, and with the factor
// p / sqrt(w) and R keys below 2 that is 2^-8 * 8 sqrt(w) R in a gradient, an eighth more.
TEST_CASE("attention by cuDNN is within the roundings of its probabilities and its output") {
  for (const Trial& t : trials()) {
    CAPTURE(t.name);
    const auto kernels = cpu::make_kernels(real::kMixedWidth);
    const Results gpu = on_gpu(t), cpu = all_of(*kernels, t);
    if (!kEmulated && gpu.saved.size() == cpu.saved.size()) {  // A GPU or a cuDNN without such an engine.
      MESSAGE(choice_of(t));
      continue;
    }
    CHECK(choice_of(t).find(": cuDNN ") != std::string::npos);
    CHECK(gpu.saved.size() == static_cast<std::size_t>(2 * t.samples * t.op.heads * t.op.rows));
    const double bound = 4 * 0x1p-8 * (18 * std::sqrt(t.op.columns / t.op.heads) * t.op.rows + 1);
    CHECK(farthest(gpu.output, cpu.output) <= 4 * 0x1p-8 + 1e-5);
    CHECK(farthest(gpu.gradient, cpu.gradient) <= bound);
    CHECK(farthest(gpu.added, cpu.added) <= bound + 0x1p-8);
    CHECK(gpu.gradient != cpu.gradient);  // Else nothing was rounded at another place, and the bound was not needed.
    double close = 0;
    for (const double x : cpu.gradient) close = std::max(close, std::abs(x));
    CHECK(farthest(gpu.gradient, cpu.gradient) < 0.05 * close);  // The bound is for the worst case.
  }
}

TEST_CASE("attention by cuDNN has equal bits in any order of threads, wherever its arrays lie") {
  for (const Trial& t : trials()) {
    CAPTURE(t.name);
    const Results first = on_gpu(t);
    CHECK(on_gpu(t, 2) == first);
    CHECK(on_gpu(t, 3, 5) == first);
  }
}

TEST_CASE("where cuDNN has no engine the kernels compute attention, and the choice says why") {
  for (const Trial& t : {attention(2, 12, 2, 4, true), attention(1, 7, 3, 12, false)}) {
    CAPTURE(t.name);
    Gpu gpu(real::kMixedWidth);
    CHECK(gpu.kernels().saved_numbers(t.op, t.samples) == real::keeps(t.op).numbers);
    CHECK(choice_of(t).find("not by cuDNN: ") != std::string::npos);
  }
  Gpu gpu(real::kMixedWidth);  // Two rows have as many probabilities as cuDNN keeps numbers.
  CHECK(gpu.kernels().saved_numbers(attention(1, 2, 1, 8, true).op, 1) == 4);
  CHECK(choice_of(attention(1, 2, 1, 8, true)) == "");
}

#ifdef STAGECRAFT_EMULATED_GPU
TEST_CASE("each forward and each backward is one execution of cuDNN") {
  const Trial t = attention(2, 12, 2, 8, true);
  on_gpu(t);
  CHECK(emulated_gpu::attentions() == 3);
  on_gpu(attention(2, 12, 2, 4, true));
  CHECK(emulated_gpu::attentions() == 0);
}

TEST_CASE("where cuDNN has no backward its forward is kept, and the kernels make gradients of its statistics") {
  for (const bool causal : {false, true}) {
    const Trial t = attention(2, 19, 3, 16, causal);  // Choices are for the process: no other test has this shape.
    emulated_gpu::reset({.refuses_attention_backward = true});
    cudaStream_t stream{};
    cuda::check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "a stream");
    const auto kernels = cuda::make_kernels({stream, 16, cuda::Precision::Exact}, real::kMixedWidth);
    const Results gpu = all_of(*kernels, t), cpu = all_of(*cpu::make_kernels(real::kMixedWidth), t);
    CHECK(emulated_gpu::attentions() == 1);
    CHECK(gpu.saved.size() == static_cast<std::size_t>(2 * t.samples * t.op.heads * t.op.rows));
    CHECK(choice_of(t).find(", but not its backward: none of the") != std::string::npos);
    // Probabilities are rounded where the CPU rounds them, from sums in another order: the bound without cuDNN.
    const double bound = 4 * 0x1p-8 * (16 * std::sqrt(t.op.columns / t.op.heads) * t.op.rows + 1);
    CHECK(farthest(gpu.output, cpu.output) <= 4 * 0x1p-8 + 1e-5);
    CHECK(farthest(gpu.gradient, cpu.gradient) <= bound);
    CHECK(farthest(gpu.added, cpu.added) <= bound + 0x1p-8);
    double close = 0;
    for (const double x : cpu.gradient) close = std::max(close, std::abs(x));
    CHECK(farthest(gpu.gradient, cpu.gradient) < 0.05 * close);
  }
}

TEST_CASE("an execution of cuDNN counts as eight driver calls, more than its kernels can be") {
  const Trial t = attention(2, 12, 2, 8, true);
  Gpu gpu(real::kMixedWidth);
  cuda::LaunchLimit limit;
  const cuda::LimitedLaunches limited(&limit);
  limit.share_queues(1);
  ComputedTrial device(gpu.kernels(), t, rounded_data(t));
  const std::int64_t forward = limit.calls();
  device.input_gradient();
  CHECK(emulated_gpu::attentions() == 2);
  CHECK(forward >= 8);
  CHECK(limit.calls() - forward >= 8);
  limit.forget();
}

TEST_CASE("versions of cuDNN with errors in attention are not taken") {
  const auto kernels_of = [](std::size_t version) {
    emulated_gpu::reset({.cudnn_version = version});
    cudaStream_t stream{};
    cuda::check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "a stream");
    return cuda::make_kernels({stream, 16, cuda::Precision::Exact}, real::kMixedWidth);
  };
  const Operation odd = attention(1, 10, 1, 8, false).op, even = attention(1, 128, 1, 8, false).op;
  CHECK(kernels_of(91500)->saved_numbers(odd, 1) == real::keeps(odd).numbers);
  CHECK(kernels_of(91500)->saved_numbers(even, 1) < real::keeps(even).numbers);
  CHECK(kernels_of(91001)->saved_numbers(even, 2) == real::keeps(even).numbers);
  CHECK(kernels_of(91600)->saved_numbers(odd, 2) < real::keeps(odd).numbers);
  CHECK(choice_of(attention(1, 10, 1, 8, false)).find("has errors in attention") != std::string::npos);
}

TEST_CASE("a cuDNN that refuses an attention is no error") {
  const Trial t = attention(1, 9, 1, 8, false);  // Choices are for the process, so no other test may have this shape.
  emulated_gpu::reset({.refuses_attention = true});
  cudaStream_t stream{};
  cuda::check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "a stream");
  const auto kernels = cuda::make_kernels({stream, 16, cuda::Precision::Exact}, real::kMixedWidth);
  CHECK(kernels->saved_numbers(t.op, 1) == real::keeps(t.op).numbers);
  CHECK(choice_of(t).find("none of the 2 configurations of cuDNN is supported and gives equal bits") !=
        std::string::npos);
}
#endif

TEST_CASE("cuDNN refuses operations on arrays that do not fit together") {
  Gpu gpu(0);
  using namespace cuda::cudnn;
  OperationGraph graph;
  const Array a{{1, 1, 8, 16}, {128, 128, 16, 1}, DataType::Bfloat16}, wide{{1, 1, 8, 8}, {64, 64, 8, 1}};
  const Descriptor x = graph.tensor(a, 1), y = graph.tensor(a, 2);
  CHECK_THROWS_AS(graph.matmul(x, y, graph.between(wide)), Refusal);
  CHECK_THROWS_AS(graph.pointwise(Pointwise::Exp, wide, x), Refusal);
  CHECK_THROWS_AS(graph.tensor({{1, 1, 8, 0}, {8, 8, 8, 1}}, 3), Refusal);
  OwnedDescriptor tensor(TensorDescriptor);
  CHECK_THROWS_AS(tensor.set(TensorType, OfInt64, DataType::Float), Refusal);
  CHECK_THROWS_AS(tensor.finish(), Refusal);
}

}  // namespace stagecraft::library_attention_test
