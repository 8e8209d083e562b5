// Arrays in the memory of a device, counted by what they are used for, for the measured peaks of a run.

#include "backends/real/array.hpp"

#include <algorithm>

namespace stagecraft::real {

void* DeviceMemory::take(std::size_t bytes, Use use) {
  const std::lock_guard lock(mutex_);
  void* data = kernels_->allocate(bytes);
  auto& live = live_[use];
  live += static_cast<std::int64_t>(bytes);
  auto& peak = peaks_[use];
  peak = std::max(peak, live);
  most_ = std::max(most_, live_[0] + live_[1] + live_[2] + live_[3]);
  return data;
}

void DeviceMemory::give(void* data, std::size_t bytes, Use use) {
  const std::lock_guard lock(mutex_);
  kernels_->release(data, bytes);
  live_[use] -= static_cast<std::int64_t>(bytes);
}

MeasuredMemory DeviceMemory::peak() const {
  const std::lock_guard lock(mutex_);
  const auto bytes = [&](Use use) { return Bytes{static_cast<double>(peaks_[use])}; };
  return {Bytes{static_cast<double>(most_)},
          bytes(Use::Weights),
          bytes(Use::Gradients),
          bytes(Use::Optimizer),
          bytes(Use::Activations),
          0,
          Bytes{}};
}

void DeviceMemory::forget_peaks() {
  const std::lock_guard lock(mutex_);
  peaks_ = live_;
  most_ = live_[0] + live_[1] + live_[2] + live_[3];
}

Array::Array(DeviceMemory& memory, std::int64_t rows, std::int64_t columns, Use use, NumberWidth width)
    : tensor_{nullptr, rows, columns} {
  tensor_.is_wide = width == NumberWidth::ByUse ? use != Use::Activations : width == NumberWidth::Wide;
  const std::size_t bytes = bytes_of(memory.kernels(), tensor_);
  tensor_.data = memory.take(bytes, use);
  block_ = std::shared_ptr<void>(tensor_.data, [&memory, bytes, use](void* data) { memory.give(data, bytes, use); });
}

Array rounded(DeviceMemory& memory, const Array& wide, Use use) {
  Kernels& kernels = memory.kernels();
  if (kernels.width() != kMixedWidth) return wide;
  Array copy(memory, wide.tensor().rows, wide.tensor().columns, use, NumberWidth::Narrow);
  kernels.narrow(wide.tensor(), copy.tensor());
  return copy;
}

}  // namespace stagecraft::real
