#pragma once

#include <span>

#include "backends/cuda/gpu_runtime.hpp"
#include "backends/real/measure_groups.hpp"

namespace stagecraft::cuda {

/// Measures what real::measure_group_layers() does, by events: the device's part of each layer and the collectives
/// inside of ops, while whole groups run on all virtual devices that they fit on.
void measure_group_layers(const ProfileRequest&, int samples, std::span<const double> weights, GpuRuntime&, Profile&);

/// Times work of the first virtual devices by events.
class DeviceMemberTimer final : public real::MemberTimer {
 public:
  explicit DeviceMemberTimer(GpuRuntime& runtime) : runtime_(runtime) {}
  Seconds time(int members, const std::function<void(const real::GroupMember&)>& once) override;

 private:
  GpuRuntime& runtime_;
};

}  // namespace stagecraft::cuda
