// Hands released host memory out again, so that a training loop asks the system for memory only in its first iteration.

#include "backends/cpu/memory_pool.hpp"

#include <algorithm>
#include <bit>
#include <limits>

#include <fmt/core.h>

#include "sim/core/diagnostic.hpp"
#include "sim/core/host.hpp"

namespace stagecraft::cpu {
namespace {

constexpr std::size_t kAlignment = 64, kHugePage = std::size_t{2} << 20;

/// Rounded up to a multiple of 64 bytes, or of about an eighth of the size, so that blocks of about one size are
/// shared.
std::size_t rounded(std::size_t bytes) {
  const std::size_t step = std::max(kAlignment, std::bit_floor(bytes) / 8);
  return std::max<std::size_t>((bytes + step - 1) / step, 1) * step;
}

/// Null when the system has no memory left. Large blocks begin at a multiple of 2 MiB, so that the system can use huge
/// pages.
void* from_system(std::size_t size) {
  const std::size_t alignment = size > 2 * kHugePage ? kHugePage : kAlignment;
  void* const block = std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
  if (block) prefer_huge_pages(block, size);
  return block;
}

}  // namespace

void* MemoryPool::allocate(std::size_t bytes) {
  constexpr std::size_t limit = std::numeric_limits<std::size_t>::max() / 4;
  const std::size_t size = rounded(std::min(bytes, limit));
  const std::lock_guard lock(mutex_);
  std::vector<void*>& free = free_[size];
  if (free.empty()) {
    void* const block = bytes <= limit ? from_system(size) : nullptr;
    if (!block) throw BackendError(fmt::format("There is no memory for a block of {} bytes.", bytes));
    blocks_.emplace_back(block);
    free.push_back(block);
    reserved_ += size;
  }
  void* const block = free.back();
  free.pop_back();
  in_use_ += size;
  return block;
}

void MemoryPool::release(void* block, std::size_t bytes) {
  if (!block) return;
  const std::size_t size = rounded(bytes);
  const std::lock_guard lock(mutex_);
  free_[size].push_back(block);
  in_use_ -= size;
}

std::size_t MemoryPool::in_use() const {
  const std::lock_guard lock(mutex_);
  return in_use_;
}

std::size_t MemoryPool::reserved() const {
  const std::lock_guard lock(mutex_);
  return reserved_;
}

}  // namespace stagecraft::cpu
