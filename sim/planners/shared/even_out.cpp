// Moves boundaries between stages that share devices until no move lowers the load of the busiest ones (a local
// optimum), and bounds that load from below; the planner `balanced` calls it.

#include "sim/planners/shared/even_out.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>

#include "sim/core/numbers.hpp"
#include "sim/core/stop_point.hpp"

namespace stagecraft {
namespace {

using DeviceShares = std::vector<StageShare>;

/// Unit of loads, as a share of the largest load at the start. It is larger than the rounding errors of sums of the
/// same layers at other positions, so these do not count as better.
constexpr double kSame = 1e-10;

/// Whether two devices have the same load wherever the boundaries are.
bool have_equal_loads(const DeviceShares& a, const DeviceShares& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const StageShare& x, const StageShare& y) {
    return x.stage == y.stage && x.sums == y.sums && x.micro_batches == y.micro_batches;
  });
}

/// The first device of each kind, where all kinds have as many: the lists of their loads compare as the lists of all
/// loads do. Else all devices. Idle devices are left out.
std::vector<DeviceShares> first_of_each_kind(const std::vector<DeviceShares>& devices) {
  std::vector<DeviceShares> busy, first;
  std::vector<int> counts;
  std::map<int, std::vector<std::size_t>> kinds;  // [first stage]: indices of `first`.
  for (const DeviceShares& device : devices) {
    if (device.empty()) continue;
    busy.push_back(device);
    std::vector<std::size_t>& candidates = kinds[device.front().stage];
    const auto kind = std::find_if(candidates.begin(), candidates.end(),
                                   [&](std::size_t k) { return have_equal_loads(first[k], device); });
    if (kind != candidates.end()) {
      ++counts[*kind];
      continue;
    }
    candidates.push_back(first.size());
    first.push_back(device), counts.push_back(1);
  }
  const bool are_even = std::all_of(counts.begin(), counts.end(), [&](int count) { return count == counts.front(); });
  return are_even ? first : busy;
}

class Boundaries {
 public:
  Boundaries(std::vector<int>& bounds, const std::vector<DeviceShares>& devices)
      : bounds_(bounds),
        devices_(devices),
        stages_(static_cast<int>(bounds.size()) - 1),
        all_(devices.size()),
        touched_(bounds.size()),
        unit_(kSame * largest_load(devices, bounds)) {
    std::iota(all_.begin(), all_.end(), std::size_t{0});
    for (std::size_t d = 0; d < devices.size(); ++d)
      for (const StageShare& share : devices[d])
        for (const int b : {share.stage, share.stage + 1})
          if (touched_[b].empty() || touched_[b].back() != d) touched_[b].push_back(d);
  }

  /// Moves the boundary in front of `stage` to the best position; true if it moved.
  bool move(int stage) {
    const std::vector<std::size_t>& devices = touched_[stage];
    const int start = bounds_[stage];
    int best = start;
    std::vector<double> best_loads = loads(devices);
    for (int place = bounds_[stage - 1] + 1; place < bounds_[stage + 1]; ++place) {
      bounds_[stage] = place;
      std::vector<double> moved = loads(devices);
      if (moved < best_loads) best_loads = std::move(moved), best = place;
    }
    bounds_[stage] = best;
    return best != start;
  }

  /// Moves neighboring boundaries together by one layer, from or to one of the busiest device; true if that helped.
  bool slide() {
    const auto& busiest =
        *std::max_element(devices_.begin(), devices_.end(),
                          [&](const DeviceShares& a, const DeviceShares& b) { return load(a) < load(b); });
    const std::vector<double> before = loads(all_);
    for (const StageShare& share : busiest)
      for (const int boundary : {share.stage, share.stage + 1})
        for (int other = 1; other < stages_; ++other)
          for (const int step : {-1, 1})
            if (boundary > 0 && boundary < stages_ &&
                slide(busiest, before, std::min(boundary, other), std::max(boundary, other), step))
              return true;
    return false;
  }

 private:
  bool slide(const DeviceShares& busiest, const std::vector<double>& before, int first, int last, int step) {
    const int loser = step < 0 ? first - 1 : last;
    if (bounds_[loser + 1] - bounds_[loser] < 2) return false;
    for (int b = first; b <= last; ++b) bounds_[b] += step;
    if (load(busiest) < before.front() && loads(all_) < before) return true;
    for (int b = first; b <= last; ++b) bounds_[b] -= step;
    return false;
  }

  double load(const DeviceShares& device) const { return unit_ > 0 ? std::round(load_of(device, bounds_) / unit_) : 0; }

  /// Loads of these devices, busiest first. A move does not change the loads of other devices, so comparing these lists
  /// is equivalent to comparing the lists of all devices.
  std::vector<double> loads(const std::vector<std::size_t>& devices) const {
    std::vector<double> result;
    for (const std::size_t d : devices) result.push_back(load(devices_[d]));
    std::sort(result.begin(), result.end(), std::greater<>());
    return result;
  }

  std::vector<int>& bounds_;
  const std::vector<DeviceShares>& devices_;
  int stages_;
  std::vector<std::size_t> all_;                   ///< Indices of all devices.
  std::vector<std::vector<std::size_t>> touched_;  ///< Devices whose load each boundary changes.
  double unit_;                                    ///< Loads are whole numbers of this.
};

}  // namespace

double load_of(const DeviceShares& device, const std::vector<int>& bounds) {
  double total = 0;
  for (const auto& [stage, sums, micro_batches] : device)
    total += micro_batches * ((*sums)[bounds[stage + 1]] - (*sums)[bounds[stage]]);
  return total;
}

double largest_load(const std::vector<std::vector<StageShare>>& devices, const std::vector<int>& bounds) {
  double largest = 0;
  for (const auto& device : devices) largest = std::max(largest, load_of(device, bounds));
  return largest;
}

double least_load(const std::vector<std::vector<StageShare>>& devices) {
  std::map<const LayerSums*, double> speed;
  double total_speed = 0, copies = 0;
  for (const auto& device : devices) {
    if (device.empty() || device.front().sums->back() <= 0) continue;
    const LayerSums* sums = device.front().sums;
    total_speed += speed[sums] = 1 / sums->back();
    for (const StageShare& share : device) copies += share.stage == 0 ? share.micro_batches : 0;
  }
  if (speed.empty()) return 0;
  double load = 0;
  for (std::size_t l = 1; l < speed.begin()->first->size(); ++l) {
    double smallest = kInfinity;
    for (const auto& [sums, y] : speed) smallest = std::min(smallest, y / total_speed * ((*sums)[l] - (*sums)[l - 1]));
    load += smallest;
  }
  return copies * load;
}

void even_out(std::vector<int>& bounds, const std::vector<DeviceShares>& devices) {
  const std::vector<DeviceShares> different = first_of_each_kind(devices);
  Boundaries boundaries(bounds, different);
  const int stages = static_cast<int>(bounds.size()) - 1;
  do {
    for (bool moved = true; moved;) {
      moved = false;
      for (int s = 1; s < stages; ++s) moved |= boundaries.move(s);
    }
    stop_point();
  } while (boundaries.slide());
}

}  // namespace stagecraft
