#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <vector>

#include <doctest/doctest.h>

#include "backends/cpu/kernels.hpp"
#include "backends/real/array.hpp"
#include "sim/core/random.hpp"
#include "tests/backends/cuda/kernels/gpu.hpp"

namespace stagecraft::test {

/// Arrays of random numbers in the memory of one device, and what was computed there.
class Computation {
 public:
  explicit Computation(real::Kernels& kernels) : kernels_(kernels), memory_(kernels), rng_(3, "groups") {}

  real::Kernels& kernels() { return kernels_; }
  /// Eighths up to 1, which 16 bits hold.
  real::Tensor array(std::int64_t rows, std::int64_t columns, real::NumberWidth width = real::NumberWidth::Narrow) {
    return uploaded(rows, columns, width, [&] { return rng_.integer(-8, 8) / 8.0; });
  }
  real::Tensor wide_array(std::int64_t rows, std::int64_t columns) {
    return array(rows, columns, real::NumberWidth::Wide);
  }
  /// Whole numbers below `end`.
  real::Tensor words(std::int64_t rows, int end) {
    return uploaded(rows, 1, real::NumberWidth::Wide, [&] { return static_cast<double>(rng_.integer(0, end - 1)); });
  }
  std::vector<double> numbers(const real::Tensor& tensor) {
    std::vector<double> result(static_cast<std::size_t>(tensor.size()));
    if (kernels_.width() != real::kMixedWidth || tensor.is_wide) {
      kernels_.download(tensor.data, result);
      return result;
    }
    const real::Array wide(memory_, tensor.rows, tensor.columns, real::Use::Activations, real::NumberWidth::Wide);
    kernels_.zero(wide.data(), real::bytes_of(kernels_, wide.tensor()));
    kernels_.add(tensor, wide.tensor());
    kernels_.download(wide.data(), result);
    return result;
  }

 private:
  real::Tensor uploaded(std::int64_t rows, std::int64_t columns, real::NumberWidth width,
                        const std::function<double()>& number) {
    std::vector<double> host(static_cast<std::size_t>(rows * columns));
    for (double& x : host) x = number();
    const real::Array wide(memory_, rows, columns, real::Use::Activations, real::NumberWidth::Wide);
    kernels_.upload(host, wide.data());
    const bool rounds = width == real::NumberWidth::Narrow;
    return arrays_.emplace_back(rounds ? real::rounded(memory_, wide, real::Use::Activations) : wide).tensor();
  }

  real::Kernels& kernels_;
  real::DeviceMemory memory_;
  Rng rng_;
  std::vector<real::Array> arrays_;
};

/// Each array that a computation made.
using Results = std::vector<std::vector<double>>;

/// The largest difference, relative to numbers beyond 1, in any order of threads. `share`: how many of all numbers may
/// differ.
inline void compare_with_cpu(std::size_t width, double bound, const std::function<Results(Computation&)>& compute,
                             double share = 1) {
  const auto kernels = cpu::make_kernels(width);
  Computation on_cpu(*kernels);
  const Results expected = compute(on_cpu);
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    Gpu gpu(width, seed);
    Computation on_gpu(gpu.kernels());
    const Results actual = compute(on_gpu);
    REQUIRE(actual.size() == expected.size());
    std::size_t differ = 0, all_numbers = 0;
    for (std::size_t n = 0; n < actual.size(); ++n) {
      REQUIRE(actual[n].size() == expected[n].size());
      CAPTURE(n);
      double worst = 0;
      all_numbers += actual[n].size();
      for (std::size_t i = 0; i < actual[n].size(); ++i) {
        worst = std::max(worst, std::abs(actual[n][i] - expected[n][i]) / std::max(1.0, std::abs(expected[n][i])));
        differ += actual[n][i] != expected[n][i];
      }
      CHECK(worst <= bound);
    }
    CHECK(static_cast<double>(differ) <= share * static_cast<double>(all_numbers));
  }
}

/// 64 roundings: no sum here has more than 40 terms.
inline double bound_of(std::size_t width) { return 64 * (width == sizeof(double) ? 0x1p-53 : 0x1p-24); }

}  // namespace stagecraft::test
