#include "sim/plan/planner.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <unordered_map>

#include "sim/core/text.hpp"

namespace stagecraft {

void add_data_edges(Plan& plan, const ModelGraph& model) {
  std::vector<int> stage_of(model.layers.size(), -1);
  for (int s = 0; s < plan.stage_count(); ++s)
    for (LayerId layer : plan.stages[static_cast<std::size_t>(s)].layers) stage_of[static_cast<std::size_t>(layer)] = s;

  // A tensor that several layers of one stage read is sent there once.
  std::set<std::pair<LayerId, int>> sent;
  std::map<std::pair<int, int>, Bytes> edges;
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    for (LayerId input : model.layers[i].inputs) {
      const int from = stage_of[static_cast<std::size_t>(input)], to = stage_of[i];
      if (from < 0 || to < 0 || from == to || !sent.emplace(input, to).second) continue;
      edges[{from, to}] += model.layers[static_cast<std::size_t>(input)].output;
    }
  }
  for (const auto& [ends, bytes] : edges) plan.edges.push_back({StageId{ends.first}, StageId{ends.second}, bytes});
}

void count_samples(Plan& plan, const PlannerInput& input) {
  int largest = 1;
  for (const Stage& stage : plan.stages) largest = std::max(largest, stage.micro_batch_size);
  if (largest > std::numeric_limits<int>::max() / input.micro_batches)
    throw InputError(
        fmt::format("{} micro-batches of {} samples are more than can be counted", input.micro_batches, largest),
        fmt::format("at most {} samples in an iteration", std::numeric_limits<int>::max()));
  plan.mini_batch = input.micro_batches * largest;
}

void finish_plan(Plan& plan, const PlannerInput& input, bool sequential) {
  count_samples(plan, input);
  add_data_edges(plan, input.model);
  if (sequential) make_sequential(plan);
  check_plan(plan);
}

std::vector<DeviceId> read_devices(const config::Value& names, const Cluster& cluster, const std::string& path,
                                   config::Problems& problems) {
  std::vector<std::string> known;
  std::unordered_map<std::string_view, DeviceId> by_name;
  for (const Device& device : cluster.devices) {
    by_name.emplace(device.name, DeviceId{static_cast<std::int64_t>(known.size())});
    known.push_back(device.name);
  }
  std::vector<DeviceId> devices;
  const auto look_up = [&](const config::Value& name, const std::string& place) {
    const auto found = by_name.find(name.text);
    if (found != by_name.end()) return devices.push_back(found->second);
    problems.add(name.where, place, fmt::format("the cluster has no device '{}'", name.text), suggest(name.text, known),
                 "unknown-device");
  };
  if (names.is_scalar()) look_up(names, path);
  for (std::size_t i = 0; i < names.items.size(); ++i) look_up(names.items[i], fmt::format("{}[{}]", path, i));
  return devices;
}

std::vector<DeviceId> available_devices(const PlannerInput& input) {
  std::vector<DeviceId> devices;
  if (const config::Value* names = input.options.find("devices")) {
    config::Problems problems;
    devices = read_devices(*names, input.cluster, "devices", problems);
    problems.throw_if_any();
  } else {
    for (std::size_t d = 0; d < input.cluster.devices.size(); ++d)
      devices.push_back(DeviceId{static_cast<std::int64_t>(d)});
  }
  return devices;
}

config::Field share_field() {
  return config::choice("share", {"samples", "micro_batches"})
      .fallback("samples")
      .doc(
          "What replicas divide: the samples of each micro-batch, or the micro-batches, which they take in turn "
          "(PipeDream).");
}

Share share_of(const config::Value& options) {
  return options.at("share").text == "samples" ? Share::Samples : Share::MicroBatches;
}

}  // namespace stagecraft
