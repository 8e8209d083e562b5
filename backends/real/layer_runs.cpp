// Runs a model again and again to time its layers and updates; profiles of the CPU and of GPUs share it.

#include "backends/real/layer_runs.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "backends/real/clocks.hpp"
#include "backends/real/group_devices.hpp"
#include "backends/real/stage_weights.hpp"
#include "sim/core/numbers.hpp"
#include "sim/weights/optimizer_state.hpp"

namespace stagecraft::real {

double& NodeTimes::seconds_of(LayerPass part, std::size_t node) {
  return (part == LayerPass::Forward         ? forward
          : part == LayerPass::InputGradient ? input_gradient
                                             : weight_gradient)[node];
}

void append(Readings& to, const Readings& from) {
  for (auto member : {&Readings::forward, &Readings::input_gradient, &Readings::weight_gradient, &Readings::total})
    (to.*member).insert((to.*member).end(), (from.*member).begin(), (from.*member).end());
}

std::vector<double> profile_weights(const ProfileRequest& request, std::size_t width) {
  constexpr std::int64_t kDistinct = (1 << 16) + 1;  // A prime, so that rows of matrices are not alike.
  const Workload workload = as_one_stage(request.workload);
  return initial_weights(compile_stage(workload, StageId{0}, width), workload, false, kDistinct);
}

int group_members(const Workload& workload) {
  const StageWorkload& stage = workload.stages.front();
  if (stage.shards(StateSharding::Gradients)) return static_cast<int>(stage.replicas.size());
  const Degrees& d = stage.degrees;
  return d.divides() ? std::lcm(d.group(), d.expert * d.expert_tensor) : 1;
}

Workload profiled_stage(const Workload& workload) {
  Workload one = as_one_stage(workload);
  const int members = group_members(workload);
  if (members == 1) return one;
  const StageWorkload& first = workload.stages.front();
  StageWorkload& stage = one.stages.front();
  stage.degrees = first.degrees;
  stage.degrees.replicas = members / first.degrees.group();
  stage.exchange = first.exchange;
  if (first.shards(StateSharding::Gradients)) stage.sharding = first.sharding, stage.reshard = first.reshard;
  stage.replicas.clear();
  for (int m = 0; m < members; ++m)
    stage.replicas.push_back({DeviceId{m}, {stage.place(m).replica, 1}});  // In micro-batches of a replica.
  return one;
}

GroupPart group_part(const StageWorkload& stage, int member,
                     const std::function<GroupMember(const std::vector<DeviceId>&)>& member_of) {
  const GroupDevices devices = group_devices(stage, member);
  GroupPart part{member, {member_of(devices.tensor), member_of(devices.context), member_of(devices.experts)}};
  if (!stage.shards(StateSharding::Gradients)) return part;
  part.data = member_of(devices.data), part.expert_data = member_of(devices.expert_data);
  part.data.measured_as = part.expert_data.measured_as = CollectiveUse::Parameters;
  return part;
}

namespace {

StageNet net_of(const Workload& one, int member, std::size_t width) {
  const StageWorkload& stage = one.stages.front();
  return stage.degrees.divides() ? compile_part(one, StageId{0}, stage.place(member), width)
                                 : compile_stage(one, StageId{0}, width);
}

/// As in a real run: what a device has of divided arrays, and whom it exchanges them with.
ShardedArrays sharded_arrays(const StageNet& net, const StageWorkload& stage, const GroupPart& part) {
  if (!stage.shards(StateSharding::Gradients)) return {};
  ShardedArrays sharded{stage.shards(StateSharding::Weights) && stage.reshard, true,
                        weight_sections(net, stage, part.member)};
  sharded.sections.front().group = part.data;
  if (sharded.sections.size() > 1) sharded.sections.back().group = part.expert_data;
  return sharded;
}

}  // namespace

LayerRuns::LayerRuns(const ProfileRequest& request, int samples, std::span<const double> weights, Kernels& kernels,
                     const GroupPart& part)
    : workload_(profiled_stage(request.workload)),
      part_(part),
      samples_(samples),
      kernels_(kernels),
      memory_(kernels),
      net_(net_of(workload_, part.member, kernels.width())),
      sharded_(sharded_arrays(net_, workload_.stages.front(), part)) {
  const Training& training = workload_.training;
  const StageWorkload& stage = workload_.stages.front();
  workload_.task.mini_batch = std::int64_t{samples} * stage.degrees.replicas;
  data_ = get_from(tasks::catalog(), "task", training.task).make(workload_.task, training.seed);
  std::vector<double> part_weights;
  if (stage.degrees.divides()) {
    const StageNet whole = compile_stage(workload_, StageId{0}, kernels.width());
    part_weights = part_of_weights(net_, whole, {weights.begin(), weights.end()});
    weights = part_weights;
  }
  if (sharded_.weights) {
    part_weights = parts_of(sharded_.sections, weights);
    weights = part_weights;
  }
  const std::int64_t sums = sharded_.gradients ? part_numbers(sharded_.sections) : net_.weights;
  weights_ = Array(memory_, 1, std::ssize(weights), Use::Weights);
  sum_ = Array(memory_, 1, sums, Use::Gradients);
  kernels_.upload(weights, weights_.data());
  weights_ = rounded(memory_, weights_, Use::Weights);
  kernels_.zero(sum_.data(), bytes_of(kernels_, sum_.tensor()));
}

void LayerRuns::once(Stopwatch* watch, CollectiveWatch* collectives) {
  MemberGroups groups = part_.groups;
  ShardedArrays sharded = sharded_;
  for (GroupMember* member : {&groups.tensor, &groups.context, &groups.experts}) member->watch = collectives;
  for (WeightSection& section : sharded.sections) section.group.watch = collectives;
  const StageWorkload& stage = workload_.stages.front();
  const GroupPlace place = stage.place(part_.member);
  const NetRun run(net_, memory_, *data_, watch, false, groups, std::move(sharded),
                   {stage.degrees.expert, stage.degrees.expert_tensor, place.expert, place.expert_tensor});
  // Other samples each time, as in training: what was looked up once is cheaper the second time.
  const std::int64_t replicas = stage.degrees.replicas;
  const Samples samples{samples_ * (replicas * round_++ + place.replica), samples_, samples_ * replicas, false};
  Activations a;
  run.forward(samples, weights_.data(), true, a);
  run.backward(samples, weights_.data(), true, sum_.data(), a);
}

void LayerRuns::file(NodeTimes times, LayerReadings& readings) const {
  for (std::size_t n = 0; n < net_.nodes.size();) {
    const int layer = net_.nodes[n].layer;
    double f = 0, i = 0, w = 0;
    for (; n < net_.nodes.size() && net_.nodes[n].layer == layer; ++n)
      f += times.forward[n], i += times.input_gradient[n], w += times.weight_gradient[n];
    Readings& r = readings[signature(workload_.layers[LayerId{layer}].operations, workload_.precision)];
    r.forward.push_back(f);
    if (i > 0) r.input_gradient.push_back(i);  // None where it would be that of data.
    r.weight_gradient.push_back(w);
    r.total.push_back(f + i + w);
  }
}

void put_layers(const LayerReadings& readings, int samples, Profile& profile) {
  for (const auto& [name, r] : readings) {
    const double middle = median(r.total);
    profile.layers.push_back({name, samples, Seconds{median(r.forward)}, Seconds{median(r.input_gradient)},
                              Seconds{median(r.weight_gradient)},
                              middle > 0 ? (quantile(r.total, 0.75) - quantile(r.total, 0.25)) / 2 / middle : 0});
  }
}

namespace {

/// Arrays and optimizer state with this many elements.
class UpdateRuns {
 public:
  UpdateRuns(const ProfileRequest& request, std::int64_t count, Kernels& kernels, const SecondsOf& seconds_of)
      : rule_(request.workload.training.optimizer),
        count_(count),
        kernels_(kernels),
        memory_(kernels),
        seconds_of_(seconds_of) {
    for (int i = 0; i < 5; ++i) {
      arrays_.emplace_back(memory_, 1, count, Use::Weights);
      kernels.zero(arrays_.back().data(), bytes());
    }
    const OptimizerStateTensors tensors = state_tensors(rule_.kind, {});
    if (tensors.first) state_.first = arrays_[2].data();
    if (tensors.second) state_.second = arrays_[3].data();
    state_.last = state_.first ? nullptr : arrays_[4].data();
  }

  Seconds update() {
    return median_time([&] {
      kernels_.update(rule_, {}, count_, arrays_[1].data(), state_, arrays_[0].data(), arrays_[0].data());
      kernels_.zero(arrays_[1].data(), bytes());
    });
  }
  Seconds predict() {
    return median_time([&] {
      kernels_.predict(rule_, Direction::Optimizer, 1, count_, state_, arrays_[0].data(), arrays_[1].data());
    });
  }

 private:
  std::size_t bytes() const { return count_ * wide_width(kernels_.width()); }

  Seconds median_time(const std::function<void()>& work) {
    std::vector<double> times;
    const double begin = steady_seconds();
    while (times.size() < kFewest + kWarmUps || (times.size() < kMost && steady_seconds() - begin < 0.05))
      times.push_back(seconds_of_(work));
    times.erase(times.begin(), times.begin() + kWarmUps);
    return Seconds{median(times)};
  }

  OptimizerRule rule_;
  std::int64_t count_;
  Kernels& kernels_;
  DeviceMemory memory_;
  const SecondsOf& seconds_of_;
  std::vector<Array> arrays_;
  OptimizerState state_;
};

}  // namespace

void put_updates(const ProfileRequest& request, Kernels& kernels, const SecondsOf& seconds_of, Profile& profile) {
  const double largest = std::max(1024.0, request.workload.parameters);
  for (double size = 256; size < 8 * largest; size *= 8) {
    UpdateRuns runs(request, static_cast<std::int64_t>(std::min(size, largest)), kernels, seconds_of);
    profile.updates.push_back({std::floor(std::min(size, largest)), runs.update(), runs.predict()});
    if (size >= largest) break;
  }
}

}  // namespace stagecraft::real
