// How long a host takes to update weights whose optimizer states it has, with the copies that this needs.

#include "sim/plan/host_optimizer.hpp"

#include <algorithm>
#include <cmath>

namespace stagecraft {

Seconds host_update_time(const Precision& precision, double parameters, double parameters_of_host, const Route& down,
                         const Route& up, Bandwidth host, bool beside) {
  if (parameters <= 0) return {};
  constexpr double kAdamBytes = 28, kBucket = 25.0 * (1 << 20);
  const Bytes gradients{precision.gradient * parameters}, weights{precision.weight * parameters};
  const Seconds parts[] = {down.latency + gradients / down.bandwidth, Bytes{kAdamBytes * parameters_of_host} / host,
                           up.latency + weights / up.bandwidth};
  const Seconds sum = parts[0] + parts[1] + parts[2], longest = std::max({parts[0], parts[1], parts[2]});
  const double buckets = beside ? std::max(1.0, std::ceil(gradients.value / kBucket)) : 1;
  return longest + (1 / buckets) * (sum - longest);
}

}  // namespace stagecraft
