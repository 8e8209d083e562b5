// The losses, weights, versions and measured memory of a process as bytes, and merged over all processes.

#include "backends/real/records.hpp"

#include <algorithm>
#include <tuple>

#include "backends/real/byte_text.hpp"

namespace stagecraft::real {

std::string to_bytes(const Records& records) {
  ByteWriter out;
  out.put(records.replicas.size());
  for (const ReplicaRecord& record : records.replicas) {
    out.put(record.stage);
    out.put(record.replica);
    out.put(record.weight_buffers);
    out.put(record.losses.size());
    for (const auto& [micro, loss] : record.losses) {
      out.put(micro);
      out.put(loss);
    }
    out.put(record.snapshots.size());
    for (const auto& [updates, numbers] : record.snapshots) {
      out.put(updates);
      out.put(numbers);
    }
    out.put(record.weights);
  }
  out.put(records.devices);
  out.put(records.versions);
  return out.take();
}

Records records_from(std::string_view bytes) {
  ByteReader in(bytes);
  Records records;
  records.replicas.resize(in.get<std::size_t>());
  for (ReplicaRecord& record : records.replicas) {
    record.stage = in.get<StageId>();
    record.replica = in.get<int>();
    record.weight_buffers = in.get<int>();
    for (auto left = in.get<std::size_t>(); left > 0; --left) {
      const int micro = in.get<int>();
      record.losses[micro] = in.get<double>();
    }
    for (auto left = in.get<std::size_t>(); left > 0; --left) {
      const int updates = in.get<int>();
      record.snapshots[updates] = in.get_list<double>();
    }
    record.weights = in.get_list<double>();
  }
  records.devices = in.get_list<DeviceRecord>();
  records.versions = in.get_list<VersionRecord>();
  return records;
}

Records merged(std::vector<Records> records) {
  Records sum;
  for (Records& one : records) {
    std::move(one.replicas.begin(), one.replicas.end(), std::back_inserter(sum.replicas));
    sum.devices.insert(sum.devices.end(), one.devices.begin(), one.devices.end());
    sum.versions.insert(sum.versions.end(), one.versions.begin(), one.versions.end());
  }
  std::sort(sum.replicas.begin(), sum.replicas.end(), [](const ReplicaRecord& a, const ReplicaRecord& b) {
    return std::tie(a.stage, a.replica) < std::tie(b.stage, b.replica);
  });
  return sum;
}

}  // namespace stagecraft::real
