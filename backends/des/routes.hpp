#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "sim/cluster/cluster.hpp"
#include "sim/cluster/conditions.hpp"
#include "sim/program/program.hpp"

namespace stagecraft::des {

/// The way of every pair in `program.routes`, in that order, then one hop for each link of memory that devices share.
/// A device reaches itself over no hop.
///
/// Every link that is crossed is checked, because network libraries take nonsense without a word: throws InputError
/// when a bandwidth is not above zero or a latency is negative, Infeasible when a pair is not connected. InputError
/// also when a device that shares its memory changes its speed.
std::vector<Route> routes_of(const Program& program, const Cluster& cluster);

/// The index in routes_of() of the route that each device's memory traffic takes; -1: it does not share its memory.
std::vector<std::int32_t> memory_routes(const Program& program, const Cluster& cluster);

/// Memory traffic in whole bytes of copies, each of which is read and written.
inline std::uint64_t copied_bytes(double read_and_written) {
  return static_cast<std::uint64_t>(read_and_written / 2 + 0.5);
}

/// The links whose bandwidth changes, for networks that have to follow them.
class LinkRates {
 public:
  explicit LinkRates(const Conditions& conditions) : next_(kForEver) {
    for (LinkId link : conditions.changing_links()) links_.push_back({link, conditions.availability_of(link)});
    if (!links_.empty()) next_ = 0;
  }

  bool any() const { return !links_.empty(); }
  double next_time() const { return next_; }
  /// Calls use(LinkId, rate) for each link whose rate is not what it was; to be called at begin with 0, and whenever
  /// transfers start or go on at or after next_time().
  template <class Use>
  void advance(double now, Use&& use) {
    if (now < next_) return;
    next_ = kForEver;
    for (Entry& entry : links_) {
      if (entry.next <= now) {
        const double rate = entry.over_time->at(now).rate;
        entry.next = entry.over_time->next(now);
        if (rate != entry.rate) use(entry.link, entry.rate = rate);
      }
      next_ = std::min(next_, entry.next);
    }
  }

 private:
  struct Entry {
    LinkId link;
    const Availability* over_time;
    double rate = 1, next = 0;
  };
  std::vector<Entry> links_;
  double next_;
};

}  // namespace stagecraft::des
