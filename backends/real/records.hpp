#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "sim/program/timeline.hpp"

namespace stagecraft::real {

/// Results of one replica of a stage.
struct ReplicaRecord {
  StageId stage;
  int replica = 0, weight_buffers = 0;
  std::map<int, double> losses;                  ///< By micro-batch.
  std::map<int, std::vector<double>> snapshots;  ///< Weights by number of updates; first replica only.
  std::vector<double> weights;                   ///< Final weights; first replica only.
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
  std::vector<ReplicaRecord> replicas;
  std::vector<DeviceRecord> devices;
  std::vector<VersionRecord> versions;
};

/// The format is the machine's own, so processes must run the same build on machines of one kind.
std::string to_bytes(const Records&);
Records records_from(std::string_view bytes);

/// Joins the records of several processes; replicas are sorted by stage and replica.
Records merged(std::vector<Records>);

}  // namespace stagecraft::real
