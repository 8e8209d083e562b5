// Puts stages on devices, makes a chain of stages without a model and runs a graph of stages as a sequence, and answers
// questions about any plan: its devices, its pipeline ranks, its text.

#include "sim/plan/plan.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include "sim/core/diagnostic.hpp"
#include "sim/core/enum_array.hpp"
#include "sim/core/text.hpp"

namespace stagecraft {
namespace {

std::string_view to_text(StageTask task) {
  constexpr EnumArray<StageTask, std::string_view, 6> kTaskNames = {
      "all", "forward", "input gradient", "weight gradient", "update", "taking in weights"};
  return kTaskNames[task];
}

}  // namespace

void Stage::place_on(const std::vector<DeviceId>& devices) {
  Degrees& d = shape.degrees;
  d.replicas = static_cast<int>(devices.size()) / d.group();
  if (d.devices() % (d.expert * d.expert_tensor) == 0)
    expert = expert_mesh(devices, d);  // check_group() refuses others.
  dense = dense_mesh(devices, d);
  leaders.clear();
  for (std::size_t first = 0; first < devices.size(); first += d.group()) leaders.push_back(dense.devices[first]);
}

void Stage::place_with(const Stage& other) {
  shape.degrees = other.shape.degrees;
  dense = other.dense;
  expert = other.expert;
  leaders = other.leaders;
}

Stage on_one_device(Stage stage) {
  const DeviceId first = stage.leaders.front();
  stage.shape.degrees = {};
  stage.place_on({first});
  return stage;
}

Digraph Plan::graph() const {
  Digraph graph(stage_count());
  for (const StageEdge& edge : edges) graph.add(edge.from.value, edge.to.value);
  return graph;
}

bool Plan::has_whole_stages() const {
  return std::all_of(stages.begin(), stages.end(), [](const Stage& s) { return s.task == StageTask::Whole; });
}

int Plan::different_stages() const {
  int count = 0;
  for (int s = 0; s < stage_count(); ++s) count += !stage(StageId{s}).twin.valid() || s < stage(StageId{s}).twin.value;
  return count;
}

int Plan::device_count() const {
  int count = 0;
  for (const Stage& stage : stages)
    for (DeviceId device : stage.dense.devices) count = std::max(count, device.value + 1);
  return count;
}

std::vector<DeviceId> devices_of(const Plan& plan) {
  std::vector<DeviceId> devices;
  for (const Stage& stage : plan.stages)
    devices.insert(devices.end(), stage.all_devices().begin(), stage.all_devices().end());
  std::sort(devices.begin(), devices.end());
  devices.erase(std::unique(devices.begin(), devices.end()), devices.end());
  return devices;
}

std::vector<DeviceId> devices_by_stage(const Plan& plan, int count) {
  std::vector<DeviceId> devices;
  IdVector<DeviceId, char> named(count, 0);
  const auto add = [&](DeviceId d) {
    if (!named[d]) devices.push_back(d);
    named[d] = 1;
  };
  for (const Stage& stage : plan.stages)
    for (const DeviceId d : stage.leaders) add(d);
  for (const DeviceId d : named.ids()) add(d);
  return devices;
}

IdVector<DeviceId, RankId> ranks_of(const Plan& plan) {
  // What a device has a part in: stages, each with the number of the replica where they take turns.
  IdVector<DeviceId, std::vector<std::pair<StageId, int>>> parts(plan.device_count());
  for (const StageId s : plan.stages.ids()) {
    const Stage& stage = plan.stages[s];
    for (int r = 0; r < std::ssize(stage.leaders); ++r)
      parts[stage.leaders[r]].emplace_back(s, stage.share == Share::MicroBatches ? r : 0);
  }
  IdVector<DeviceId, RankId> rank_of;
  std::map<std::vector<std::pair<StageId, int>>, RankId> rank_with;
  RankId next{0};
  for (const auto& part : parts) {
    const auto [at, is_new] = rank_with.try_emplace(part, next);
    if (part.empty()) at->second = next;  // A rank by itself.
    rank_of.push_back(at->second);
    if (is_new || part.empty()) ++next.value;
  }
  return rank_of;
}

Plan chain_plan(int stages, int ranks, int micro_batches) {
  Plan plan;
  plan.mini_batch = micro_batches;
  for (int s = 0; s < stages; ++s) {
    Stage stage;
    stage.name = fmt::format("s{}", s);
    stage.place_on({DeviceId{s % ranks}});
    plan.stages.push_back(std::move(stage));
    if (s > 0) plan.edges.push_back({StageId{s - 1}, StageId{s}, {}});
  }
  return plan;
}

void make_sequential(Plan& plan) {
  const Digraph graph = plan.graph();
  const auto order = topological_order(graph);
  if (!order) return check_plan(plan);
  for (std::size_t i = 1; i < order->size(); ++i) {
    const int from = (*order)[i - 1], to = (*order)[i];
    const std::vector<int>& next = graph.next[from];
    if (std::find(next.begin(), next.end(), to) == next.end()) plan.edges.push_back({StageId{from}, StageId{to}, {}});
  }
}

std::string to_text(const Plan& plan) {
  std::string text = fmt::format("{}, {} in an iteration\n", pluralize(plan.stage_count(), "stage"),
                                 pluralize(plan.mini_batch, "sample"));
  for (int s = 0; s < plan.stage_count(); ++s) {
    const Stage& stage = plan.stages[StageId{s}];
    std::string devices;
    for (DeviceId device : stage.leaders) devices += fmt::format(" {}", device.value);
    text += fmt::format("{} '{}': {}, devices{}, micro-batch {}", s, stage.name,
                        pluralize(std::ssize(stage.shape.layers), "layer"), devices, stage.micro_batch_size);
    if (stage.turns() > 1) text += ", in turn";
    if (stage.group > 1) text += fmt::format(", group {}", stage.group);
    if (stage.shape.recomputes_all()) text += ", recompute";
    const Recomputation kind = stage.shape.recomputation;
    if (kind == Recomputation::Selective) text += ", selective recompute";
    if (stage.shape.recomputes_layers()) text += ", recompute by layers";
    if (const int first = stage.shape.recomputed_layers; first > 0) text += fmt::format(", the first {} alone", first);
    if (stage.shape.recomputes_half()) text += ", recompute half of each layer";
    if (stage.shape.recomputes_operations()) text += fmt::format(", recompute {}", to_text(kind));
    if (stage.twin.valid())
      text += fmt::format(", {} of {} micro-batches, the others in {}", stage.micros.size(),
                          plan.micro_batches(StageId{s}), stage.twin.value);
    if (stage.task != StageTask::Whole) text += fmt::format(", {} alone", to_text(stage.task));
    for (const StageEdge& edge : plan.edges) {
      if (edge.from != StageId{s}) continue;
      const std::string what = edge.bytes.value > 0 ? to_text(edge.bytes) + " a sample" : std::string("order only");
      text += fmt::format("; to {} ({})", edge.to.value, what);
    }
    text += '\n';
  }
  for (const Reduction& r : plan.reductions) {
    if (r.source != ReductionSource::TiedParameters) continue;
    std::string stages;
    for (const StageId s : r.stages) stages += fmt::format(" {}", s.value);
    text += fmt::format("tied '{}': {} of gradients, stages{}\n", r.name, to_text(r.bytes), stages);
  }
  return text;
}

}  // namespace stagecraft
