#include "backends/cuda/kernels/staging.hpp"

#include <algorithm>
#include <bit>

#include "backends/cuda/driver.hpp"
#include "backends/cuda/patience.hpp"

namespace stagecraft::cuda {
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
  held_ = 0;
}

/// A free one; a new one while all together stay small; otherwise the stream is waited for. Copies of one stream end in
/// their order, so that behind the first buffer that is busy none is free.
Staging::Buffer& Staging::take(std::size_t bytes) {
  for (auto buffer = buffers_.begin(); buffer != buffers_.end(); ++buffer) {
    if (cudaEventQuery(buffer->free) != cudaSuccess) break;
    if (buffer->size >= bytes) return last(buffer);
  }
  const std::size_t size = std::max(kLeast, std::bit_ceil(bytes));
  if (held_ + size > most_ && !buffers_.empty()) {
    at_most(kPatience)([&] { return over(stream_); });
    for (auto buffer = buffers_.begin(); buffer != buffers_.end(); ++buffer)
      if (buffer->size >= bytes) return last(buffer);
    clear();
  }
  Buffer buffer;
  buffer.size = size;
  check(cudaHostAlloc(&buffer.data, size, cudaHostAllocDefault), "cudaHostAlloc");
  if (const cudaError_t made = cudaEventCreateWithFlags(&buffer.free, cudaEventDisableTiming); made != cudaSuccess) {
    cudaFreeHost(buffer.data);
    check(made, "cudaEventCreate");
  }
  held_ += size;
  return buffers_.emplace_back(buffer);
}

Staging::Buffer& Staging::last(std::list<Buffer>::iterator buffer) {
  buffers_.splice(buffers_.end(), buffers_, buffer);
  return buffers_.back();
}

void Staging::copy_up(const Buffer& buffer, void* to, std::size_t bytes) {
  check(cudaMemcpyAsync(to, buffer.data, bytes, cudaMemcpyHostToDevice, stream_), "a copy to the device");
  check(cudaEventRecord(buffer.free, stream_), "cudaEventRecord");
}

void Staging::copy_down(const void* from, const Buffer& buffer, std::size_t bytes) {
  check(cudaMemcpyAsync(buffer.data, from, bytes, cudaMemcpyDeviceToHost, stream_), "a copy from the device");
  at_most(kPatience)([&] { return over(stream_); });
}

}  // namespace stagecraft::cuda
