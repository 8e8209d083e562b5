// Waits for the moments at which the changes of a cluster give links other rates and latencies; running_network.cpp
// applies them. Only `validate --network` changes links.

#include "backends/box/link_changes.hpp"

#include <poll.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <tuple>

#include "sim/core/numbers.hpp"

namespace stagecraft::box {
namespace {

/// Waits until one of the files can be read, at most `seconds`. Returns the first that can be read, or -1.
int wait_for(std::initializer_list<int> files, double seconds) {
  std::vector<pollfd> polled;
  for (const int file : files) polled.push_back({file, POLLIN, 0});
  constexpr double kLongest = 3600;
  const double bounded = std::clamp(seconds, 0.0, kLongest);
  const timespec time{static_cast<time_t>(bounded), static_cast<long>(std::fmod(bounded, 1.0) * 1e9)};
  if (ppoll(polled.data(), polled.size(), &time, nullptr) <= 0) return -1;
  for (const pollfd& p : polled)
    if (p.revents != 0) return p.fd;
  return -1;
}

double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

bool are_equal(const Condition& a, const Condition& b) {
  return std::tie(a.rate, a.latency, a.down) == std::tie(b.rate, b.latency, b.down);
}

}  // namespace

void apply_link_changes(const Network& network, int begin, int stop,
                        const std::function<void(LinkId, const Condition&)>& apply) {
  for (int file = -1; file != begin;)
    if ((file = wait_for({stop, begin}, kInfinity)) == stop) return;
  const double origin = steady_seconds();
  const Conditions conditions(network.cluster);
  std::map<LinkId, Condition> applied;
  while (true) {
    const double now = steady_seconds() - origin;
    double next = kInfinity;
    for (const LinkId link : conditions.changing_links()) {
      const Availability& availability = *conditions.availability_of(link);
      const Condition condition = availability.at(now);
      if (!are_equal(applied[link], condition)) apply(link, applied[link] = condition);
      next = std::min(next, availability.next(now));
    }
    if (wait_for({stop}, next - (steady_seconds() - origin)) == stop) return;
  }
}

}  // namespace stagecraft::box
