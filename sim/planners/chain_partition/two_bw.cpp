// The formulas of PipeDream-2BW for time and memory, and its even division of layers; two_bw_planner.cpp calls it.

#include "sim/planners/chain_partition/two_bw.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "sim/cluster/phases.hpp"
#include "sim/core/diagnostic.hpp"

namespace stagecraft::chain_partition {
namespace {

/// Parts that each hold as much as `limit` allows, but leave one element for every part still to come.
std::vector<int> greedy_parts(const std::vector<double>& amounts, int parts, double limit) {
  const int count = static_cast<int>(amounts.size());
  std::vector<int> starts;
  int next = 0;
  for (int part = 0; part < parts; ++part) {
    starts.push_back(next);
    const int end = count - (parts - part - 1);
    double sum = amounts[next++];
    while (next < end && sum + amounts[next] <= limit) sum += amounts[next++];
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

/// Parts that each hold as much as `limit` allows of what elements are to them; none when the last cannot hold the
/// rest, or some part not even one.
std::vector<int> greedy_parts(const std::vector<std::vector<double>>& amounts, double limit) {
  const std::size_t count = amounts.front().size();
  std::vector<int> starts;
  std::size_t next = 0;
  for (std::size_t part = 0; part < amounts.size(); ++part) {
    starts.push_back(static_cast<int>(next));
    const std::size_t end = count - (amounts.size() - part - 1);
    if (amounts[part][next] > limit) return {};
    double sum = amounts[part][next++];
    while (next < end && sum + amounts[part][next] <= limit) sum += amounts[part][next++];
  }
  return next < count ? std::vector<int>{} : starts;
}

}  // namespace

double period_of(const TwoBwPipeline& p) {
  const double extra = p.recompute ? 4.0 / 3 : 1;
  double period = 0;
  for (const TwoBwStage& stage : p.stages) {
    const double messages = 2 * (stage.received + stage.sent) / p.depth_bandwidth;
    const double reduce = ring_share(p.width) * stage.memory.weights.value / p.width_bandwidth;
    period = std::max({period, extra * stage.seconds + messages, reduce / p.micro_batches});
  }
  return period;
}

double memory_of(const TwoBwPipeline& p, const TwoBwStage& stage) {
  MemoryUnits units = stage.memory;
  if (p.recompute) units.recompute_stash = std::exchange(units.stash, {});
  units.stash += Bytes{stage.received};
  return stage_memory(units, static_cast<int>(p.stages.size()), 2).total().value;
}

double memory_of(const TwoBwPipeline& p) {
  double peak = 0;
  for (const TwoBwStage& stage : p.stages) peak = std::max(peak, memory_of(p, stage));
  return peak;
}

std::vector<int> cut_evenly(const std::vector<double>& amounts, int parts) {
  STAGECRAFT_CHECK(parts >= 1 && parts <= std::ssize(amounts));
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

std::vector<int> cut_evenly(const std::vector<std::vector<double>>& amounts) {
  STAGECRAFT_CHECK(!amounts.empty() && amounts.size() <= amounts.front().size());
  double low = 0, high = 0;
  for (const std::vector<double>& layer_amounts : amounts)
    high = std::max(high, std::accumulate(layer_amounts.begin(), layer_amounts.end(), 0.0));
  std::vector<int> best = greedy_parts(amounts, high);
  while (high - low > 1e-12 * high) {
    const double limit = (low + high) / 2;
    if (limit <= low || limit >= high) break;
    if (std::vector<int> starts = greedy_parts(amounts, limit); !starts.empty())
      high = limit, best = std::move(starts);
    else
      low = limit;
  }
  return best;
}

}  // namespace stagecraft::chain_partition
