// The last step of a search: swaps two or three unlike devices in the plans of the first rows, as long as that makes
// them shorter, because the lists of devices that a search tries are few of many orders.

#include <algorithm>
#include <array>
#include <optional>
#include <tuple>

#include <fmt/core.h>

#include "sim/core/stop_point.hpp"
#include "sim/core/text.hpp"
#include "sim/search/choice_search.hpp"
#include "sim/search/device_orders.hpp"
#include "sim/search/trial_json.hpp"

namespace stagecraft {
namespace {

constexpr std::size_t kRows = 3, kMostDevices = 64;
constexpr int kMostSwaps = 600;
constexpr double kShareOfOps = 0.25, kFewestOps = 5e5;  // Share of the ops that were simulated before; some seconds.

/// Places in a list of devices, each of which gets the device of the next one, and the last one that of the first. -1:
/// there are two.
using Rotation = std::array<int, 3>;

/// All of two places, then all of three, which no two swaps reach where the first of them makes a plan longer.
std::vector<Rotation> rotations(int places) {
  std::vector<Rotation> list;
  for (int a = 0; a < places; ++a)
    for (int b = a + 1; b < places; ++b) list.push_back({a, b, -1});
  for (int a = 0; a < places; ++a)
    for (int b = a + 1; b < places; ++b)
      for (int c = b + 1; c < places; ++c) list.insert(list.end(), {{a, b, c}, {a, c, b}});
  return list;
}

std::vector<DeviceId> rotated(std::vector<DeviceId> devices, const Rotation& places) {
  const auto [a, b, c] = places;
  std::swap(devices[a], devices[b]);
  if (c >= 0) std::swap(devices[b], devices[c]);
  return devices;
}

/// Whether no two of the devices that change their places are alike: else fewer do the same.
bool are_unlike(const std::vector<DeviceId>& devices, const Rotation& places, const UnlikeDevices& unlike) {
  const auto [a, b, c] = places;
  return unlike(devices[a], devices[b]) &&
         (c < 0 || (unlike(devices[a], devices[c]) && unlike(devices[b], devices[c])));
}

}  // namespace

std::optional<Trial> ChoiceSearch::trial_on(std::vector<DeviceId> devices, double amount, Combination& combination) {
  PlanVariant variant = combination.candidate->variant;
  variant.plan.devices = std::move(devices);
  bool is_too_large = false;
  combination.candidate = runner_.candidate(variant, kInfinity, is_too_large);
  if (!combination.candidate || !combination.candidate->bound.fits) return {};
  if (combination.candidate->properties.amount >= amount * kLess) return {};
  std::optional<Trial> trial = saved_.find(join(runner_.sets_of(combination)));
  if (trial) {
    *trial = with_properties(std::move(*trial), combination);
    runner_.set_amount(combination, trial->choice);
  } else {
    trial = runner_.run(combination);
  }
  if (trial->result == TrialResult::Ran && asked_.contended && !trial->choice.replayed && is_worth(trial->choice))
    runner_.replay(combination, *trial);
  saved_.add(join(runner_.sets_of(combination)), *trial);
  return trial->result == TrialResult::Ran ? trial : std::nullopt;
}

void ChoiceSearch::swap_devices_of(const Choice& row, double max_ops) {
  Combination best = tried_[row.id];
  const PlanSpec& plan = best.candidate->variant.plan;
  if (plan.planner->name != "balanced") return;
  const Cluster& cluster = configured_.cluster();
  std::vector<DeviceId> devices = plan.devices ? *plan.devices : std::vector<DeviceId>();
  for (const DeviceId d : cluster.devices.ids())
    if (!plan.devices) devices.push_back(d);
  const UnlikeDevices unlike(cluster, devices);
  const std::vector<Rotation> moves = rotations(static_cast<int>(devices.size()));
  Choice shortest = row;
  for (std::size_t next = 0, in_vain = 0; in_vain < moves.size(); ++in_vain, next = (next + 1) % moves.size()) {
    if (!are_unlike(devices, moves[next], unlike)) continue;
    const int max_swaps = std::min(kMostSwaps, asked_.max_simulations - table_.simulated);
    swaps_end_early_ = !reason_to_stop().empty() || swaps_ >= max_swaps || swapped_ops_ >= max_ops;
    if (swaps_end_early_) return;
    show();
    std::vector<DeviceId> swapped_devices = rotated(devices, moves[next]);
    Combination swapped = best;
    const std::optional<Trial> trial = trial_on(swapped_devices, shortest.amount, swapped);
    ++swaps_;
    swapped_ops_ += work_of({.combination = best});
    const bool is_better = trial && trial->choice.amount < shortest.amount * kLess &&
                           (!trial->choice.is_tight || row.is_tight) && (!asked_.contended || trial->choice.replayed);
    if (!is_better) continue;
    devices = std::move(swapped_devices), best = std::move(swapped), shortest = trial->choice, in_vain = 0;
    keep(best, shortest);
  }
}

void ChoiceSearch::swap_devices() {
  const Cluster& cluster = configured_.cluster();
  if (table_.front.empty() || cluster.devices.size() > kMostDevices || DeviceOrders(cluster).are_alike()) return;
  std::vector<Choice> rows = table_.front;
  std::stable_sort(rows.begin(), rows.end(), [](const Choice& a, const Choice& b) {
    return std::tuple(a.is_tight, a.amount, a.memory, a.id) < std::tuple(b.is_tight, b.amount, b.memory, b.id);
  });
  if (rows.size() > kRows) rows.resize(kRows);
  const double first = rows.front().amount, max_ops = std::max(kFewestOps, kShareOfOps * ops_);
  try {
    for (const Choice& row : rows)
      if (row.id >= 0) swap_devices_of(row, max_ops);
  } catch (const Stopped&) {  // In a simulation.
    swaps_end_early_ = true;
  }
  const std::optional<Choice>& best = rows.front().is_tight ? best_tight_ : best_;
  if (best) least_bound_ = std::min(least_bound_, best->amount);
  if (swaps_ > 0 || swaps_end_early_)
    reasons_.add_line(
        fmt::format("{} of two or three unlike devices tried in the plans of the first rows{}{}",
                    pluralize(swaps_, "swap"), swaps_end_early_ ? ", others not" : "",
                    best && best->amount < first * kLess
                        ? fmt::format("; the first row is {:.2g} % better for them", 100 * (1 - best->amount / first))
                        : std::string()));
}

}  // namespace stagecraft
