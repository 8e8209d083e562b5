#include <cstdint>
#include <limits>
#include <set>

#include <doctest/doctest.h>

#include "backends/cpu/memory_pool.hpp"
#include "sim/core/diagnostic.hpp"
#include "sim/core/numbers.hpp"
#include "tests/backends/cpu/trial.hpp"

namespace stagecraft::memory_test {

TEST_CASE("blocks lie at multiples of 64 bytes and do not overlap") {
  cpu::MemoryPool pool;
  const std::size_t sizes[] = {0, 1, 63, 64, 65, 1000, 4096, 100000, std::size_t{5} << 20, 1, 64};
  std::vector<std::pair<std::uintptr_t, std::size_t>> blocks;
  for (const std::size_t size : sizes) {
    void* const block = pool.allocate(size);
    const auto place = reinterpret_cast<std::uintptr_t>(block);
    CHECK(place % 64 == 0);
    for (const auto& other : blocks) CHECK((place + size <= other.first || other.first + other.second <= place));
    blocks.emplace_back(place, size);
    std::memset(block, 0x5a, size);
  }
}

TEST_CASE("released blocks are handed out again") {
  cpu::MemoryPool pool;
  const std::size_t sizes[] = {100, 5000, 70000, 70001, 3000000};
  std::size_t reserved = 0;
  for (int round = 0; round < 3; ++round) {
    std::vector<void*> blocks;
    std::size_t asked = 0;
    for (const std::size_t size : sizes) {
      blocks.push_back(pool.allocate(size));
      asked += size;
    }
    CHECK(pool.in_use() >= asked);
    CHECK(pool.in_use() <= asked + asked / 8 + 64 * blocks.size());
    if (round == 0) reserved = pool.reserved();
    CHECK(pool.reserved() == reserved);
    for (std::size_t i = 0; i < blocks.size(); ++i) pool.release(blocks[i], sizes[i]);
    CHECK(pool.in_use() == 0);
  }
  CHECK(reserved > 0);
}

TEST_CASE("a block that is still in use is not handed out") {
  cpu::MemoryPool pool;
  void* const first = pool.allocate(1000);
  void* const second = pool.allocate(1000);
  CHECK(first != second);
  pool.release(first, 1000);
  CHECK(pool.allocate(1000) == first);
  CHECK(pool.in_use() == pool.reserved());
}

TEST_CASE("memory that is not there is an error of the machine") {
  const auto kernels = cpu::make_kernels(8);
  CHECK_THROWS_AS(kernels->allocate(std::numeric_limits<std::size_t>::max()), BackendError);
  CHECK_THROWS_AS(kernels->allocate(std::numeric_limits<std::size_t>::max() / 3), BackendError);
  void* const block = kernels->allocate(8);
  CHECK(block != nullptr);
  kernels->release(block, 8);
}

TEST_CASE("numbers go to the device and back") {
  for (const std::size_t width : test::kWidths) {
    const auto kernels = cpu::make_kernels(width);
    CHECK(kernels->width() == width);
    const test::DeviceTensor from(*kernels, {1, -2.5, 0.1, 1e300}, 4), to(*kernels, {9, 9, 9, 9}, 4);
    const double tenth = width == 4 ? static_cast<double>(0.1F) : 0.1;
    const double largest = width == 4 ? kInfinity : 1e300;
    CHECK(from.download() == std::vector<double>{1, -2.5, tenth, largest});
    kernels->copy(from.tensor.data, to.tensor.data, 2 * width);
    CHECK(to.download() == std::vector<double>{1, -2.5, 9, 9});
    kernels->zero(to.tensor.data, 3 * width);
    CHECK(to.download() == std::vector<double>{0, 0, 0, 9});
  }
}

TEST_CASE("tensors are added number by number") {
  for (const std::size_t width : test::kWidths)
    for (const std::size_t count : {1U, 8U, 31U, 100U}) {
      const auto kernels = cpu::make_kernels(width);
      std::vector<double> x, y, sums;
      for (std::size_t i = 0; i < count; ++i) {
        x.push_back(static_cast<double>(i));
        y.push_back(2 - static_cast<double>(i * i));
        sums.push_back(x[i] + y[i]);
      }
      const test::DeviceTensor from(*kernels, x, 1), to(*kernels, y, 1);
      kernels->add(from.tensor, to.tensor);
      CHECK(to.download() == sums);
      CHECK(from.download() == x);
    }
}

TEST_CASE("numbers that are not finite are found wherever they are") {
  constexpr double infinity = kInfinity;
  for (const std::size_t width : test::kWidths) {
    const auto kernels = cpu::make_kernels(width);
    const double largest = width == 4 ? static_cast<double>(std::numeric_limits<float>::max()) : 1.7e308;
    for (std::size_t count = 1; count < 40; ++count) {
      std::vector<double> numbers(count, largest);
      numbers[0] = -largest;
      CHECK(kernels->finite(test::DeviceTensor(*kernels, numbers, 1).tensor));
      for (std::size_t i = 0; i < count; ++i)
        for (const double bad : {infinity, -infinity, std::numeric_limits<double>::quiet_NaN()}) {
          const double before = std::exchange(numbers[i], bad);
          CHECK_FALSE(kernels->finite(test::DeviceTensor(*kernels, numbers, 1).tensor));
          numbers[i] = before;
        }
    }
  }
}

TEST_CASE("there are kernels in three number types") {
  CHECK_THROWS_AS(cpu::make_kernels(3), InternalError);
  CHECK_THROWS_AS(cpu::make_kernels(16), InternalError);
}

}  // namespace stagecraft::memory_test
