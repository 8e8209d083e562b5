#include "sim/plan/spp/device_order.hpp"

#include <algorithm>
#include <numeric>

#include "sim/core/numbers.hpp"

namespace stagecraft::spp {
namespace {

std::vector<int> ordered(const Bandwidths& bandwidth, std::vector<int> devices) {
  if (devices.size() <= 2) return devices;
  const auto [one_side, other_side] = least_cut(bandwidth, devices);
  std::vector<int> a = ordered(bandwidth, one_side), b = ordered(bandwidth, other_side), best;
  double fastest = -1;
  for (int way = 0; way < 4; ++way) {
    if (way % 2 == 1) std::reverse(b.begin(), b.end());
    if (way == 2) std::reverse(a.begin(), a.end());
    const double junction = bandwidth[a.back()][b.front()];
    if (junction <= fastest) continue;
    fastest = junction;
    best = a;
    best.insert(best.end(), b.begin(), b.end());
  }
  return best;
}

}  // namespace

std::pair<std::vector<int>, std::vector<int>> least_cut(const Bandwidths& bandwidth, const std::vector<int>& devices) {
  const std::size_t n = devices.size();
  std::vector<std::vector<double>> weight(n, std::vector<double>(n, 0));
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j < n; ++j)
      if (i != j) weight[i][j] = bandwidth[devices[i]][devices[j]];
  std::vector<std::vector<int>> merged;
  for (const int d : devices) merged.push_back({d});
  std::vector<std::size_t> left(n);
  std::iota(left.begin(), left.end(), std::size_t{0});
  std::vector<int> side;
  double least = kInfinity;
  while (left.size() > 1) {  // One phase: the last vertex, cut off from all others, is a candidate.
    std::vector<double> tied(n, 0);
    std::vector<bool> added(n, false);
    std::size_t before = left.front(), last = left.front();
    for (std::size_t step = 0; step < left.size(); ++step) {
      std::size_t next = n;
      for (const std::size_t v : left)
        if (!added[v] && (next == n || tied[v] > tied[next])) next = v;
      added[next] = true;
      before = last, last = next;
      for (const std::size_t v : left)
        if (!added[v]) tied[v] += weight[next][v];
    }
    if (tied[last] < least) least = tied[last], side = merged[last];
    merged[before].insert(merged[before].end(), merged[last].begin(), merged[last].end());
    for (const std::size_t v : left)
      if (v != before) weight[before][v] = weight[v][before] += weight[last][v];
    left.erase(std::find(left.begin(), left.end(), last));
  }
  std::vector<int> rest;
  std::sort(side.begin(), side.end());
  for (const int d : devices)
    if (!std::binary_search(side.begin(), side.end(), d)) rest.push_back(d);
  return {rest, side};
}

std::vector<int> order_devices(const Bandwidths& bandwidth) {
  std::vector<int> all(bandwidth.size());
  std::iota(all.begin(), all.end(), 0);
  return ordered(bandwidth, all);
}

}  // namespace stagecraft::spp
