#pragma once

#include <cstdint>
#include <vector>

#include "sim/cluster/cluster.hpp"

namespace stagecraft {

/// Rate and latency of a device or link at one moment, relative to the rated ones.
struct Condition {
  double rate = 1;  ///< 0 while it is down.
  double latency = 1;
  bool down = false;
};

/// A Condition over time, constant between edges. Changes at the same time multiply. An edge counts as passed from
/// 1e-12 of its time before it, so that rounding does not decide what comes first.
class Availability {
 public:
  void add(const Change& change) { changes_.push_back(&change); }
  Condition at(double time) const;
  /// The next moment after `time` when the condition may change; kForEver when it stays as it is.
  double next(double time) const;
  /// The moment from which some change keeps the rate at zero without end; kForEver when none does.
  double gone() const;

 private:
  std::vector<const Change*> changes_;
};

struct Span {
  double start = 0, end = 0;  ///< kForEver: never.
};

/// The one place that says what changes of a cluster do to a program:
///
/// - A device computes at its rate; an op already begun goes on at the new one. Collectives inside an op take as long
/// as
///   before. At a rate of zero the op waits and keeps what is done.
/// - A device that is down starts nothing. The op it was at is lost and starts again, from nothing, when it is back:
///   the op's start is the first one. What the device has in memory stays, and messages pass it.
/// - A link carries at its rate, messages under way too. While it is down they wait, and so does the end of those
///   without bytes.
/// - A message pays the latencies of the moment when it starts.
/// - With jitter an op takes longer by a factor that its number and the seed determine.
///
/// The cluster must outlive this.
class Conditions {
 public:
  explicit Conditions(const Cluster& cluster);

  bool as_rated() const { return as_rated_; }  ///< Nothing ever changes.
  /// The op with this number, of `seconds` as rated, which may start at `ready`. `communicates` is the share of these
  /// seconds in collectives, which are as fast on a slow device; they are spread evenly over the op.
  Span compute(DeviceId device, std::int64_t number, double ready, double seconds, double communicates = 0) const;
  double latency(const Route& route, double at) const;
  /// When the last byte is there of a message that meets no other.
  double carry(const Route& route, double from, double bytes) const;

  const Availability* availability_of(DeviceId) const;  ///< Null: as rated.
  const Availability* availability_of(LinkId) const;
  std::vector<LinkId> changing_links() const;

 private:
  double factor(std::int64_t number) const;
  double bandwidth(const Route& route, double at) const;
  double next(const Route& route, double at) const;

  const Cluster& cluster_;
  std::vector<Availability> all_;
  IdVector<DeviceId, int> of_device_;  ///< Index into all_, or -1; empty when none changes.
  IdVector<LinkId, int> of_link_;      ///< Index into all_, or -1; empty when none changes.
  bool as_rated_ = true;
};

}  // namespace stagecraft
