// Enumerates how many devices of each type a stage may have, and numbers these mixes.

#include "sim/planners/shared/device_mix.hpp"

#include <utility>

namespace stagecraft {

bool is_within(const DeviceMix& part, const DeviceMix& whole) {
  for (int type = 0; type < std::ssize(part.of_type); ++type)
    if (part.of_type[type] > whole.of_type[type]) return false;
  return true;
}

DeviceMixes::DeviceMixes(std::vector<int> counts) : counts_(std::move(counts)) {
  for (const int count : counts_) {
    strides_.push_back(size_);
    size_ *= count + std::int64_t{1};
  }
}

double DeviceMixes::count(const std::vector<int>& counts) {
  double product = 1;
  for (const int count : counts) product *= count + 1.0;
  return product;
}

DeviceMix DeviceMixes::mix(std::int64_t number) const {
  DeviceMix mix;
  for (int type = 0; type < std::ssize(counts_); ++type) {
    const int devices = devices_of(number, type);
    mix.of_type.push_back(devices);
    mix.devices += devices;
    if (devices > 0 && type < 64) mix.types |= std::uint64_t{1} << type;
  }
  return mix;
}

std::int64_t DeviceMixes::number_of(const DeviceMix& mix) const {
  std::int64_t number = 0;
  for (int type = 0; type < std::ssize(counts_); ++type) number += mix.of_type[type] * strides_[type];
  return number;
}

std::vector<DeviceMix> DeviceMixes::list() const {
  std::vector<DeviceMix> mixes;
  for (std::int64_t number = 0; number < size_; ++number) mixes.push_back(mix(number));
  return mixes;
}

std::vector<DeviceMix> DeviceMixes::up_to(int max_devices) const {
  std::vector<DeviceMix> mixes;
  for (std::int64_t number = 1; number < size_; ++number)
    if (DeviceMix next = mix(number); next.devices <= max_devices) mixes.push_back(std::move(next));
  return mixes;
}

}  // namespace stagecraft
