#include "sim/plan/msr/two_bw.hpp"

#include <algorithm>
#include <numeric>

#include "sim/core/diagnostic.hpp"

namespace stagecraft::msr {
namespace {

/// Parts that each hold as much as `limit` allows, but leave one element for every part still to come.
std::vector<int> greedy_parts(const std::vector<double>& amounts, int parts, double limit) {
  const int count = static_cast<int>(amounts.size());
  std::vector<int> starts;
  int next = 0;
  for (int part = 0; part < parts; ++part) {
    starts.push_back(next);
    const int end = count - (parts - part - 1);
    double sum = amounts[static_cast<std::size_t>(next++)];
    while (next < end && sum + amounts[static_cast<std::size_t>(next)] <= limit)
      sum += amounts[static_cast<std::size_t>(next++)];
  }
  if (next < count) starts.clear();
  return starts;
}

double largest_part(const std::vector<double>& amounts, std::vector<int> starts) {
  starts.push_back(static_cast<int>(amounts.size()));
  double largest = 0;
  for (std::size_t p = 0; p + 1 < starts.size(); ++p)
    largest = std::max(largest, std::accumulate(amounts.begin() + starts[p], amounts.begin() + starts[p + 1], 0.0));
  return largest;
}

}  // namespace

double period_of(const TwoBwPipeline& p) {
  const double extra = p.recompute ? 4.0 / 3 : 1;
  double period = 0;
  for (const TwoBwStage& stage : p.stages) {
    const double messages = 2 * (stage.received + stage.sent) / p.depth_bandwidth;
    const double reduce = 2.0 * (p.width - 1) / p.width * stage.weights / p.width_bandwidth;
    period = std::max({period, extra * stage.seconds + messages, reduce / p.micro_batches});
  }
  return period;
}

double memory_of(const TwoBwPipeline& p) {
  const auto depth = static_cast<double>(p.stages.size());
  double most = 0;
  for (const TwoBwStage& stage : p.stages)
    most = std::max(most, 2 * stage.weights + stage.other_state + (p.recompute ? 1 : depth) * stage.activations +
                              depth * stage.received);
  return most;
}

std::vector<int> cut_evenly(const std::vector<double>& amounts, int parts) {
  STAGECRAFT_CHECK(parts >= 1 && static_cast<std::size_t>(parts) <= amounts.size());
  double high = std::accumulate(amounts.begin(), amounts.end(), 0.0), low = high / parts;
  std::vector<int> best = greedy_parts(amounts, parts, high);
  while (high - low > 1e-12 * high) {
    const double limit = (low + high) / 2;
    if (std::vector<int> starts = greedy_parts(amounts, parts, limit); !starts.empty()) {
      high = std::min(limit, largest_part(amounts, starts));
      best = std::move(starts);
    } else {
      low = limit;
    }
  }
  return best;
}

}  // namespace stagecraft::msr
