// What a search minimizes (time, cost or energy) for a row, and its lower bounds.

#include "sim/search/search_objective.hpp"

#include <algorithm>
#include <map>
#include <string>

#include <fmt/core.h>

#include "sim/core/diagnostic.hpp"
#include "sim/experiment/packed_data.hpp"

namespace stagecraft {
namespace {

constexpr double kSecondsOfHour = 3600;

/// The sequences and the tokens of an iteration, in the mean; packs differ between plans, their sequences do not.
void count_sequences(const PackedBatches& packs, ObjectiveUnit& unit) {
  unit.samples = unit.tokens = 0;
  for (const Pack& pack : packs.packs) {
    unit.samples += static_cast<double>(pack.size()) / packs.iterations();
    for (const int n : pack) unit.tokens += static_cast<double>(n) / packs.iterations();
  }
}

}  // namespace

SearchObjective::SearchObjective(Objective objective, const PlannedExperiment& configured, int iterations)
    : cluster_(configured.cluster()), budget_(configured.experiment.budget), iterations_(iterations) {
  const double samples = configured.plan.mini_batch;
  unit_ = {.objective = objective, .samples = samples, .tokens = samples * tokens_of_sample(configured.model())};
  if (const PackedBatches* packs = configured.experiment.run.packs.get()) count_sequences(*packs, unit_);
  std::vector<DeviceId> devices;
  for (const DeviceId d : cluster_.devices.ids()) devices.push_back(d);
  const double price = dollars_per_second(devices);  // Refuses a type without a price where others have one.
  if (objective == Objective::Cost) {
    if (price <= 0)
      throw InputError("the scenario has no prices of devices, and the search is for the lowest cost",
                       "set report.price, or report.prices by device type: dollars for an hour of one device");
  }
  if (objective != Objective::Energy) return;
  for (const Device& d : cluster_.devices)
    if (const DeviceType& type = cluster_.types[d.type]; type.busy.value <= 0)
      throw InputError(
          fmt::format("the power of '{}' is not known, and the search is for the lowest energy", type.name),
          fmt::format("set cluster.types.{}.busy and cluster.types.{}.idle in watts", type.name, type.name));
}

double SearchObjective::dollars_per_second(const std::vector<DeviceId>& devices) const {
  std::map<std::string, int> by_type;
  for (const DeviceId d : devices) ++by_type[cluster_.type_of(d).name];
  const Economics e = economics(budget_, by_type, 0);
  return e.dollars_per_hour / kSecondsOfHour / e.goodput;
}

AmountBound SearchObjective::of_devices(const std::vector<DeviceId>& devices) const {
  if (unit_.objective == Objective::Cost) return {0, dollars_per_second(devices)};
  if (is_time()) return {};
  AmountBound bound{0, 0};
  for (const DeviceId d : devices) {
    const DeviceType& type = cluster_.type_of(d);
    bound.per_second += std::min(type.idle, type.busy).value;
  }
  return bound;
}

double SearchObjective::work_price(DeviceTypeId t) const {
  const DeviceType& type = cluster_.types[t];
  return unit_.objective == Objective::Energy ? std::max(0.0, (type.busy - type.idle).value) : 0;
}

double SearchObjective::least_price(DeviceTypeId t) const {
  if (unit_.objective == Objective::Energy) return cluster_.types[t].busy.value;
  if (is_time()) return 0;
  // A job fails the more often the more devices it has.
  const Economics e = economics(budget_, {{cluster_.types[t].name, 1}}, 0);
  return e.dollars_per_hour / kSecondsOfHour / e.goodput;
}

double SearchObjective::amount(const AmountBound& bound, Seconds period, Seconds work) const {
  if (unit_.objective != Objective::Energy) return bound.at(period);
  return bound.at((work + (iterations_ - 1) * period) / iterations_);
}

Economics SearchObjective::economics_of(const Choice& c) const {
  if (budget_.empty()) return {};
  return economics(budget_, c.devices_of_type, unit_.tokens / known_period(c).value);
}

double SearchObjective::amount(const AmountBound& bound, const Choice& c) const {
  if (unit_.objective != Objective::Energy) return bound.at(known_period(c));
  return (c.ran_contended() ? c.replayed->energy : c.energy).value;
}

}  // namespace stagecraft
