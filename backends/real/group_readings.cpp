// Collects what the members of a group measured, and puts their layers and collectives into a profile.

#include "backends/real/group_readings.hpp"

#include <algorithm>
#include <numeric>

#include "sim/core/numbers.hpp"

namespace stagecraft::real {
namespace {

double mean(const std::vector<double>& numbers) {
  return std::accumulate(numbers.begin(), numbers.end(), 0.0) / static_cast<double>(numbers.size());
}

/// The readings of all devices in one block of runs.
GroupReadings joined(const std::vector<std::vector<GroupReadings>>& of_devices, std::size_t first, std::size_t end) {
  GroupReadings sum;
  for (const std::vector<GroupReadings>& runs : of_devices)
    for (std::size_t n = first; n < end; ++n) {
      for (const auto& [name, r] : runs[n].layers) append(sum.layers[name], r);
      for (const auto& [key, times] : runs[n].collectives) {
        std::vector<double>& more = sum.collectives[key];
        more.insert(more.end(), times.begin(), times.end());
      }
    }
  return sum;
}

GroupReadings means_of(const std::vector<std::vector<GroupReadings>>& of_devices) {
  GroupReadings means;
  const std::size_t count = of_devices.front().size();
  for (std::size_t first = 0; first < count; first += kGroupBlock) {
    const GroupReadings block = joined(of_devices, first, std::min(count, first + kGroupBlock));
    for (const auto& [name, r] : block.layers) {
      Readings& of_layer = means.layers[name];
      of_layer.forward.push_back(mean(r.forward));
      if (!r.input_gradient.empty()) of_layer.input_gradient.push_back(mean(r.input_gradient));
      of_layer.weight_gradient.push_back(mean(r.weight_gradient));
      of_layer.total.push_back(mean(r.total));
    }
    for (const auto& [key, times] : block.collectives) means.collectives[key].push_back(mean(times));
  }
  return means;
}

}  // namespace

GroupReadings readings_of(const LayerRuns& runs, NodeTimes times, std::span<const InnerCollective> collectives) {
  GroupReadings run;
  const StageNet& net = runs.net();
  using Pass = std::tuple<int, bool, LayerPass, CollectiveKind, int>;  // Layer, whether of its experts; ranks.
  std::map<Pass, std::pair<std::int64_t, double>> sums;                // Numbers and seconds.
  for (const InnerCollective& c : collectives) {
    const Node& node = net.nodes[c.node];
    const bool is_of_op = c.use == CollectiveUse::Ops;
    if (is_of_op && c.part == LayerPass::WeightGradient) continue;
    times.seconds_of(c.part, c.node) -= c.seconds;
    if (is_of_op) {
      run.collectives[{c.use, c.kind, c.ranks, c.numbers}].push_back(c.seconds);
    } else {
      auto& [numbers, seconds] = sums[{node.layer, node.weights >= net.dense_weights, c.part, c.kind, c.ranks}];
      numbers += c.numbers, seconds += c.seconds;
    }
  }
  for (const auto& [pass, sum] : sums)
    run.collectives[{CollectiveUse::Parameters, std::get<3>(pass), std::get<4>(pass), sum.first}].push_back(sum.second);
  runs.file(std::move(times), run.layers);
  return run;
}

void put_group(const ProfileRequest& request, int samples, const std::vector<std::vector<GroupReadings>>& of_devices,
               Profile& profile) {
  const StageWorkload& stage = request.workload.stages.front();
  const GroupReadings means = means_of(of_devices);
  const auto first = std::ssize(profile.layers);
  put_layers(means.layers, samples, profile);
  for (auto layer = profile.layers.begin() + first; layer != profile.layers.end(); ++layer)
    layer->group = group_text(stage.degrees, stage.exchange);
  const std::size_t width = width_of(request.workload);
  for (const auto& [key, times] : means.collectives) {
    const auto& [use, kind, ranks, numbers] = key;
    const bool is_wide = use == CollectiveUse::Parameters && kind != CollectiveKind::AllGather;  // Gradients.
    const std::size_t each = is_wide ? wide_width(width) : width;
    const MeasuredCollective one{kind, use, ranks, Bytes{static_cast<double>(each) * static_cast<double>(numbers)},
                                 Seconds{median(times)}};
    const bool is_known = std::any_of(profile.collectives.begin(), profile.collectives.end(), [&](const auto& c) {
      return c.kind == one.kind && c.use == one.use && c.ranks == one.ranks &&
             c.bytes == one.bytes;  // From another micro-batch size.
    });
    if (!is_known) profile.collectives.push_back(one);
  }
}

}  // namespace stagecraft::real
