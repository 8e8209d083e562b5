// Scratch memory in stream order, and pinned host memory for copies that do not block.

#include "backends/cuda/kernels/memory.hpp"

#include <fmt/core.h>
#include <algorithm>
#include <bit>
#include <iterator>
#include <limits>

#include "backends/cuda/driver.hpp"
#include "backends/cuda/kernels/watch.hpp"
#include "backends/cuda/launch_limit.hpp"
#include "sim/core/diagnostic.hpp"

namespace stagecraft::cuda {
namespace {

constexpr std::size_t kStep = 256, kFirst = std::size_t{2} << 20;

std::size_t rounded(std::size_t bytes) { return std::max<std::size_t>((bytes + kStep - 1) / kStep, 1) * kStep; }

}  // namespace

Memory::~Memory() {
  if (blocks_.empty()) return;
  if (!ended(stream_)) return;  // cudaFree would block without end.
  for (const Block& block : blocks_) cudaFree(block.data);
}

/// Doubles the memory, so that a run takes few blocks; takes only what is needed when the device has no more.
void Memory::grow(std::size_t room) {
  Block block;
  block.size = std::max({room, reserved_, kFirst});
  block.data = static_cast<char*>(device_memory(block.size));
  if (!block.data) {
    block.size = room;
    block.data = static_cast<char*>(device_memory(room));
  }
  if (!block.data) {
    std::size_t free = 0, total = 0;
    cudaMemGetInfo(&free, &total);
    throw BackendError(
        fmt::format("The GPU has no memory for a block of {} bytes: {} of {} are free. Fewer or smaller "
                    "micro-batches, recomputation or more stages would need less.",
                    room, free, total));
  }
  reserved_ += block.size;
  blocks_.push_back(std::move(block));
  put_gap(blocks_.size() - 1, 0, blocks_.back().size);
}

void Memory::put_gap(std::size_t block, std::size_t offset, std::size_t size) {
  blocks_[block].gaps[offset] = size;
  gaps_.emplace(size, block, offset);
}

void Memory::drop_gap(std::size_t block, std::size_t offset) {
  const auto it = blocks_[block].gaps.find(offset);
  gaps_.erase(Gap{it->second, block, offset});
  blocks_[block].gaps.erase(it);
}

void* Memory::allocate(std::size_t bytes) {
  if (bytes > std::numeric_limits<std::size_t>::max() / 4)
    throw BackendError(fmt::format("The GPU has no memory for a block of {} bytes.", bytes));
  const std::size_t room = rounded(bytes);
  const std::lock_guard lock(mutex_);
  auto it = gaps_.lower_bound(Gap{room, 0, 0});
  if (it == gaps_.end()) {
    grow(room);
    it = gaps_.lower_bound(Gap{room, 0, 0});
  }
  const auto [size, block, offset] = *it;
  drop_gap(block, offset);
  if (size > room) put_gap(block, offset + room, size - room);
  in_use_ += room;
  void* const data = blocks_[block].data + offset;
  watch_given_out(stream_, data, room);
  return data;
}

void Memory::release(void* data, std::size_t bytes) {
  if (!data) return;
  const std::lock_guard lock(mutex_);
  auto* const at = static_cast<char*>(data);
  const auto block = std::find_if(blocks_.begin(), blocks_.end(),
                                  [at](const Block& b) { return at >= b.data && at < b.data + b.size; });
  STAGECRAFT_CHECK(block != blocks_.end());
  const auto b = static_cast<std::size_t>(block - blocks_.begin());
  std::size_t offset = static_cast<std::size_t>(at - block->data), size = rounded(bytes);
  in_use_ -= size;
  watch_released(stream_, data, bytes, size);
  auto& gaps = block->gaps;
  if (const auto next = gaps.find(offset + size); next != gaps.end()) {
    size += next->second;
    drop_gap(b, next->first);
  }
  if (auto next = gaps.lower_bound(offset); next != gaps.begin()) {
    const auto before = std::prev(next);
    if (before->first + before->second == offset) {
      offset = before->first;
      size += before->second;
      drop_gap(b, offset);
    }
  }
  put_gap(b, offset, size);
}

namespace {

constexpr double kPatience = 300;  // Seconds.
constexpr std::size_t kLeast = std::size_t{64} << 10;

}  // namespace

Staging::~Staging() {
  if (buffers_.empty()) return;
  if (ended(stream_)) clear();
}

void Staging::clear() noexcept {
  for (const Buffer& buffer : buffers_) {
    cudaEventDestroy(buffer.free);
    cudaFreeHost(buffer.data);
  }
  buffers_.clear();
  reserved_ = 0;
}

/// Takes a free buffer, or a new one while all together stay small; otherwise waits for the stream. Copies of one
/// stream end in order, so no buffer after the first busy one is free.
Staging::Buffer& Staging::take(std::size_t bytes) {
  for (auto buffer = buffers_.begin(); buffer != buffers_.end(); ++buffer) {
    if (cudaEventQuery(buffer->free) != cudaSuccess) break;
    if (buffer->size >= bytes) return last(buffer);
  }
  const std::size_t size = std::max(kLeast, std::bit_ceil(bytes));
  if (reserved_ + size > limit_ && !buffers_.empty()) {
    at_most(kPatience)([&] { return over(stream_); });
    for (auto buffer = buffers_.begin(); buffer != buffers_.end(); ++buffer)
      if (buffer->size >= bytes) return last(buffer);
    clear();
  }
  Buffer buffer;
  buffer.size = size;
  check(cudaHostAlloc(&buffer.data, size, cudaHostAllocDefault), "cudaHostAlloc");
  if (const cudaError_t status = cudaEventCreateWithFlags(&buffer.free, cudaEventDisableTiming);
      status != cudaSuccess) {
    cudaFreeHost(buffer.data);
    check(status, "cudaEventCreate");
  }
  reserved_ += size;
  return buffers_.emplace_back(buffer);
}

Staging::Buffer& Staging::last(std::list<Buffer>::iterator buffer) {
  buffers_.splice(buffers_.end(), buffers_, buffer);
  return buffers_.back();
}

void Staging::copy_up(const Buffer& buffer, void* to, std::size_t bytes) {
  check(cudaMemcpyAsync(to, buffer.data, bytes, cudaMemcpyHostToDevice, stream_), "a copy to the device");
  submitted(stream_, "a copy to the device");
  check(cudaEventRecord(buffer.free, stream_), "cudaEventRecord");
}

void Staging::copy_down(const void* from, const Buffer& buffer, std::size_t bytes) {
  check(cudaMemcpyAsync(buffer.data, from, bytes, cudaMemcpyDeviceToHost, stream_), "a copy from the device");
  at_most(kPatience)([&] { return over(stream_); });
}

}  // namespace stagecraft::cuda
