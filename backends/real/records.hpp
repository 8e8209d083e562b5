#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "sim/timeline/timeline.hpp"

namespace stagecraft::real {

/// What one stage on one device leaves behind.
struct SeatRecord {
  StageId stage;
  int replica = 0, weight_buffers = 0;
  std::map<int, double> losses;                  ///< Of each micro-batch.
  std::map<int, std::vector<double>> snapshots;  ///< By number of updates; of the first replica.
  std::vector<double> weights;                   ///< At the end; of the first replica.
};

struct DeviceRecord {
  DeviceId device;
  MeasuredMemory memory;
};

struct VersionRecord {
  InstructionId instruction;
  std::int32_t version = 0;
};

/// What a real run leaves on the devices of one process, or of all.
struct Records {
  std::vector<SeatRecord> seats;
  std::vector<DeviceRecord> devices;
  std::vector<VersionRecord> versions;
};

/// For processes of one program on like machines.
std::string to_bytes(const Records&);
Records records_from(std::string_view bytes);

/// All of several processes, seats by stage and replica.
Records merged(std::vector<Records>);

}  // namespace stagecraft::real
