#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "sim/cluster/cluster.hpp"

namespace stagecraft::test {

/// Stragglers, pauses, failures, slow links and links that are down within about `length` seconds; sometimes none. All
/// that stops goes on again, and what fails again and again leaves no op without time: only links do.
template <class Pick>
void random_changes(Cluster& cluster, double length, Pick&& pick) {
  if (pick(0, 2) == 0 || length <= 0) return;
  const auto moment = [&](int low, int high) { return Seconds{length * 0.99173 * pick(low, high) / 1000}; };
  const int count = pick(1, 4);
  for (int i = 0; i < count; ++i) {
    Change change;
    const bool links = !cluster.links.empty() && pick(0, 1) == 1;
    const int things = static_cast<int>(links ? cluster.links.size() : cluster.devices.size());
    for (int k = pick(1, 2); k > 0; --k) {
      const int one = pick(0, things - 1);
      if (links)
        change.links.push_back(LinkId{one});
      else
        change.devices.push_back(DeviceId{one});
    }
    change.from = moment(0, 800);
    const int kind = pick(0, 3);
    if (kind == 0) change.rate = 0.1 * pick(1, 9);
    if (kind == 1) change.rate = 0;
    if (kind == 2) change.down = true;
    if (kind == 3) change.rate = 0.1 * pick(1, 9), change.latency = links ? pick(1, 3) : 1;
    if (kind == 1 || kind == 2 || pick(0, 1) == 1) change.until = change.from + moment(1, 400);
    if ((links || kind != 2) && pick(0, 2) == 0) {
      change.every = moment(30, 300);
      change.lasts = change.every * (0.1 * pick(1, 9));
    }
    cluster.changes.push_back(change);
  }
  if (pick(0, 4) == 0) cluster.jitter = {0.01 * pick(1, 50), static_cast<std::uint64_t>(pick(0, 99))};
}

inline std::string changes_of(const Cluster& cluster) {
  std::string text;
  for (const Change& c : cluster.changes) text += to_text(c, cluster) + "\n";
  return text;
}

/// The number of kinds of changes in a cluster that a test wants to have met.
struct ChangesMet {
  int slow = 0, down = 0, links = 0, periodic = 0, jitter = 0;

  void count(const Cluster& cluster) {
    for (const Change& c : cluster.changes) {
      slow += !c.devices.empty() && c.rate < 1;
      down += !c.devices.empty() && c.down;
      links += !c.links.empty();
      periodic += c.every.value > 0;
    }
    jitter += cluster.jitter.max_fraction > 0;
  }
  int min_count() const { return std::min({slow, down, links, periodic, jitter}); }
};

}  // namespace stagecraft::test
