#pragma once

#include <cstdint>
#include <memory>
#include <mutex>

#include "backends/real/kernels.hpp"
#include "sim/core/enum_array.hpp"
#include "sim/program/timeline.hpp"

namespace stagecraft::real {

/// What memory is used for.
enum class Use : std::uint8_t { Weights, Gradients, Optimizer, Activations };

/// Memory of one device: counts what is alive, by use. May be used by any thread.
class DeviceMemory {
 public:
  explicit DeviceMemory(Kernels& kernels) : kernels_(&kernels) {}

  void* take(std::size_t bytes, Use);
  void give(void*, std::size_t bytes, Use);
  MeasuredMemory peak() const;
  void forget_peaks();  ///< Sets peaks back to what is alive now.
  Kernels& kernels() { return *kernels_; }

 private:
  Kernels* kernels_;
  mutable std::mutex mutex_;
  EnumArray<Use, std::int64_t, 4> live_{}, peaks_{};
  std::int64_t most_ = 0;
};

/// Which numbers of mixed precision an array has; activations have narrow ones unless it is said.
enum class NumberWidth : std::uint8_t { ByUse, Narrow, Wide };

/// Numbers on a device, given back when the last holder lets go.
class Array {
 public:
  Array() = default;
  Array(DeviceMemory&, std::int64_t rows, std::int64_t columns, Use, NumberWidth = NumberWidth::ByUse);

  const Tensor& tensor() const { return tensor_; }
  explicit operator bool() const { return tensor_.data != nullptr; }
  void* data() const { return tensor_.data; }
  bool shared() const { return block_.use_count() > 1; }

 private:
  Tensor tensor_;
  std::shared_ptr<void> block_;
};

/// A rounded copy of wide numbers in mixed precision, else the same array.
Array rounded(DeviceMemory&, const Array& wide, Use);

}  // namespace stagecraft::real
