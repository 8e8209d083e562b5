#pragma once

#include <vector>

#include "sim/result/report.hpp"

namespace stagecraft {

/// Memory of one device after each change, without resident memory.
struct MemorySample {
  double time = 0;  ///< Seconds.
  Bytes stash, received, outgoing;
  Bytes host;           ///< What it has in the memory of its host, which is not in total().
  int activations = 0;  ///< Whole stashes alive, also where a part of one is in host memory.
  InstructionId cause;

  Bytes total() const { return stash + received + outgoing; }
};
using MemoryCurve = std::vector<MemorySample>;

/// The histories of all devices, so that the buffers are sorted only once.
class MemoryHistory {
 public:
  MemoryHistory(const Program&, const Timeline&);
  MemoryCurve curve(DeviceId) const;
  /// The worst moment of a device.
  MemoryPeak peak(DeviceId, const Cluster&) const;
  /// [device]: its worst moment.
  IdVector<DeviceId, MemoryPeak> peaks(const Cluster&) const;

 private:
  /// Calls visit(sample) after each moment in which the memory of the device changes.
  template <class Visit>
  void for_each_sample(DeviceId, Visit&& visit) const;

  const Program* program_;
  const Timeline* timeline_;
  std::vector<std::uint32_t> first_;  ///< Device d has buffers_[first_[d] .. first_[d + 1]).
  std::vector<std::uint32_t> buffers_;
};

/// [index in Cluster::memories]: the most that all devices of the host have there at one time.
std::vector<Bytes> host_peaks(const Program&, const Timeline&, const Cluster&);

}  // namespace stagecraft
