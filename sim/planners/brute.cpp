// The planner `brute`: tries every division of the layers into stages and replicas; chain_partition/brute.cpp has the
// search. To PipeDream's costs on one level it adds what simulation without contention has: whole samples, and
// messages with the latency and the links of their two devices, of which a device sends one after another.

#include <algorithm>
#include <numeric>
#include <utility>

#include "sim/cluster/link_table.hpp"
#include "sim/core/numbers.hpp"
#include "sim/planners/chain_partition/brute.hpp"
#include "sim/planners/chain_partition/planning.hpp"

namespace stagecraft::planners {
namespace {

constexpr std::int64_t kMostDivisions = 5'000'000;

const config::MapSpec kBruteFields{"Every division into stages and replicas, with the messages of each device.",
                                   chain_partition::pipedream_fields()};

/// What the busiest device does for a micro-batch: its part of the samples, or its messages one after another.
class DeviceTimes {
 public:
  /// `options` have no messages, which are `share_sent` of the bytes here.
  DeviceTimes(const PlannerInput& input, const std::vector<DeviceId>& devices, const chain_partition::WorkInUnit& work,
              chain_partition::PipeDreamOptions options, double share_sent)
      : input_(input), work_(work.mixed), options_(std::move(options)), share_sent_(share_sent) {
    const LinkTable links(input.cluster);
    for (const DeviceId from : devices)
      for (const DeviceId to : devices) {
        const LinkRate link = from == to ? LinkRate{} : links.link(from, to);
        latency_.push_back(work.unit(link.latency.value));
        each_byte_.push_back(from == to ? 0 : 1 / work.unit.rate(link.bandwidth.value));
      }
    sends_.resize(devices.size());
  }

  double operator()(const std::vector<chain_partition::FoundStage>& stages) {
    const double formula = chain_partition::period_of(work_, stages, options_);
    const bool shares_samples = input_.options.share == Share::Samples;
    if (formula == kInfinity) return formula;
    // The formula has sums of gradients, and parts of samples where replicas cannot share them evenly.
    double period = input_.trains || !shares_samples ? formula : 0;
    std::fill(sends_.begin(), sends_.end(), 0.0);
    for (std::size_t s = 0; s < stages.size(); ++s) {
      if (shares_samples) period = std::max(period, computing(stages[s]));
      const double bytes = share_sent_ * work_.by_type.front().crossing[stages[s].to];
      if (s + 1 == stages.size() || bytes <= 0) continue;
      if (shares_samples)
        add_parts(stages[s].devices, stages[s + 1].devices, bytes);
      else
        add_turns(stages[s].devices, stages[s + 1].devices, bytes);
    }
    return std::max(period, *std::max_element(sends_.begin(), sends_.end()));
  }

 private:
  /// The replica that computes longest, each with whole samples.
  double computing(const chain_partition::FoundStage& stage) const {
    const std::size_t size = input_.options.micro_batch_size, replicas = stage.devices.size();
    double longest = 0;
    for (std::size_t i = 0; i < replicas; ++i) {
      const chain_partition::Workload& on = work_.by_type[work_.type_of[stage.devices[i]]];
      const auto samples = static_cast<double>(size * (i + 1) / replicas - size * i / replicas);
      longest =
          std::max(longest, (on.seconds[stage.to] - on.seconds[stage.from]) * samples / static_cast<double>(size));
    }
    return longest;
  }

  /// A message from one replica to another in this share of all micro-batches, and its gradient back.
  void add(int from, int to, double bytes, double share) {
    const auto seconds = [&](int a, int b) {
      const std::size_t pair = static_cast<std::size_t>(a) * sends_.size() + static_cast<std::size_t>(b);
      return share * (latency_[pair] + bytes * each_byte_[pair]);
    };
    sends_[static_cast<std::size_t>(from)] += seconds(from, to);
    if (input_.trains) sends_[static_cast<std::size_t>(to)] += seconds(to, from);
  }

  /// Replicas share the samples of each micro-batch (see samples_of() in sim/plan).
  void add_parts(const std::vector<int>& from, const std::vector<int>& to, double bytes) {
    const std::size_t size = input_.options.micro_batch_size, senders = from.size(), receivers = to.size();
    for (std::size_t i = 0; i < senders; ++i)
      for (std::size_t j = size * i / senders * receivers / size; j < receivers; ++j) {
        const std::size_t low = std::max(size * i / senders, size * j / receivers),
                          high = std::min(size * (i + 1) / senders, size * (j + 1) / receivers);
        if (low < high) add(from[i], to[j], bytes * static_cast<double>(high - low) / static_cast<double>(size), 1);
        if (size * (j + 1) / receivers >= size * (i + 1) / senders) break;
      }
  }

  /// Replicas take micro-batches in turn.
  void add_turns(const std::vector<int>& from, const std::vector<int>& to, double bytes) {
    const std::size_t turns = std::lcm(from.size(), to.size());
    for (std::size_t m = 0; m < turns; ++m)
      add(from[m % from.size()], to[m % to.size()], bytes, 1 / static_cast<double>(turns));
  }

  const PlannerInput& input_;
  const chain_partition::MixedWork& work_;
  chain_partition::PipeDreamOptions options_;
  double share_sent_;
  std::vector<double> latency_, each_byte_;  ///< [from x devices + to]
  std::vector<double> sends_;                ///< [device]
};

Planned plan_brute(const PlannerInput& input) {
  const std::vector<DeviceId> devices = chain_partition::devices_of(input);
  const chain_partition::Types types = chain_partition::types_of(input.cluster, devices);
  const chain_partition::WorkInUnit in_unit = chain_partition::workload_of(input, types);
  chain_partition::PipeDreamOptions options = chain_partition::pipedream_rules(input);
  options.levels = {
      {static_cast<int>(devices.size()), in_unit.unit.rate(chain_partition::flat_bandwidth(input, devices))}};
  const double share_sent = std::exchange(options.transfers, 0);  // In place of the formula's messages.
  const auto pipeline = chain_partition::search_all(in_unit.mixed, options, kMostDivisions,
                                                    DeviceTimes(input, devices, in_unit, options, share_sent));
  if (!pipeline) chain_partition::refuse(input, in_unit.mixed.by_type.front(), devices.size());
  Planned result = chain_partition::planned(input, in_unit, *pipeline, devices);
  result.model_limit = result.predicted;
  result.limit_reason = "every division was looked at";
  return result;
}

}  // namespace

extern const PlannerDef brute{
    .name = "brute",
    .summary = "Tries every division into stages and replicas; for small models, and to check other planners.",
    .source = "PipeDream's costs of stages (Narayanan et al., SOSP 2019), messages as simulated; no pruning",
    .fields = &kBruteFields,
    .plan = plan_brute,
    .read = chain_partition::read_pipedream,
};

}  // namespace stagecraft::planners
