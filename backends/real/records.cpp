#include "backends/real/records.hpp"

#include <algorithm>
#include <tuple>

#include "backends/real/byte_text.hpp"

namespace stagecraft::real {

std::string to_bytes(const Records& records) {
  ByteWriter out;
  out.put(records.seats.size());
  for (const SeatRecord& seat : records.seats) {
    out.put(seat.stage);
    out.put(seat.replica);
    out.put(seat.weight_buffers);
    out.put(seat.losses.size());
    for (const auto& [micro, loss] : seat.losses) {
      out.put(micro);
      out.put(loss);
    }
    out.put(seat.snapshots.size());
    for (const auto& [updates, numbers] : seat.snapshots) {
      out.put(updates);
      out.put(numbers);
    }
    out.put(seat.weights);
  }
  out.put(records.devices);
  out.put(records.versions);
  return out.take();
}

Records records_from(std::string_view bytes) {
  ByteReader in(bytes);
  Records records;
  records.seats.resize(in.get<std::size_t>());
  for (SeatRecord& seat : records.seats) {
    seat.stage = in.get<StageId>();
    seat.replica = in.get<int>();
    seat.weight_buffers = in.get<int>();
    for (auto left = in.get<std::size_t>(); left > 0; --left) {
      const int micro = in.get<int>();
      seat.losses[micro] = in.get<double>();
    }
    for (auto left = in.get<std::size_t>(); left > 0; --left) {
      const int updates = in.get<int>();
      seat.snapshots[updates] = in.get_list<double>();
    }
    seat.weights = in.get_list<double>();
  }
  records.devices = in.get_list<DeviceRecord>();
  records.versions = in.get_list<VersionRecord>();
  return records;
}

Records merged(std::vector<Records> all) {
  Records sum;
  for (Records& one : all) {
    std::move(one.seats.begin(), one.seats.end(), std::back_inserter(sum.seats));
    sum.devices.insert(sum.devices.end(), one.devices.begin(), one.devices.end());
    sum.versions.insert(sum.versions.end(), one.versions.begin(), one.versions.end());
  }
  std::sort(sum.seats.begin(), sum.seats.end(), [](const SeatRecord& a, const SeatRecord& b) {
    return std::tie(a.stage, a.replica) < std::tie(b.stage, b.replica);
  });
  return sum;
}

}  // namespace stagecraft::real
