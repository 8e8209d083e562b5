#pragma once

#include <cstdint>
#include <vector>

namespace stagecraft {

/// Some devices of several types.
struct DeviceMix {
  std::vector<int> of_type;
  int devices = 0;
  std::uint64_t types = 0;  ///< A bit for each of the first 64 types that is among them.
};

/// True when `whole` has at least as many devices of each type.
bool is_within(const DeviceMix& part, const DeviceMix& whole);

/// Every mix that some counts of devices allow. Mixes are numbered: each type is a digit of its count plus one values,
/// and the first type is the lowest. Number 0 has no device and number size() - 1 has all of them. The number of two
/// mixes together is the sum of their numbers, and a mix with one device more has a larger number.
class DeviceMixes {
 public:
  explicit DeviceMixes(std::vector<int> counts);
  /// Number of mixes as a double, so that it can be reported even when it exceeds memory.
  static double count(const std::vector<int>& counts);

  std::int64_t size() const { return size_; }
  std::int64_t stride(int type) const { return strides_[type]; }
  int devices_of(std::int64_t mix, int type) const {
    return static_cast<int>(mix / strides_[type] % (counts_[type] + std::int64_t{1}));
  }
  bool has_free(std::int64_t mix, int type) const { return devices_of(mix, type) < counts_[type]; }

  DeviceMix mix(std::int64_t number) const;
  std::int64_t number_of(const DeviceMix&) const;
  /// All mixes in the order of their numbers.
  std::vector<DeviceMix> list() const;
  /// Mixes of at least one and at most `max_devices` devices, in the order of their numbers.
  std::vector<DeviceMix> up_to(int max_devices) const;

 private:
  std::vector<int> counts_;
  std::vector<std::int64_t> strides_;
  std::int64_t size_ = 1;
};

}  // namespace stagecraft
