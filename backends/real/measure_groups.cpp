#include "backends/real/measure_groups.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <numeric>
#include <tuple>

#include "backends/real/group_devices.hpp"
#include "backends/real/host_runs.hpp"
#include "backends/real/thread_communicator.hpp"
#include "sim/core/cores.hpp"
#include "sim/core/numbers.hpp"

namespace stagecraft::real {
namespace {

double mean(const std::vector<double>& numbers) {
  return std::accumulate(numbers.begin(), numbers.end(), 0.0) / static_cast<double>(numbers.size());
}

using CollectiveKey = std::tuple<CollectiveKind, int, std::int64_t>;  ///< Kind, ranks, numbers of the array.
using CollectiveReadings = std::map<CollectiveKey, std::vector<double>>;

/// Takes collectives out of the operations that they are part of. The gradients of weights contain theirs.
class GroupStopwatch final : public HostStopwatch, public CollectiveWatch {
 public:
  using HostStopwatch::HostStopwatch;
  void ended(CollectiveKind kind, int ranks, std::int64_t numbers, double seconds) override {
    if (sum_ == nullptr || part_ == LayerPass::WeightGradient) return;
    *sum_ -= seconds;
    collectives[{kind, ranks, numbers}].push_back(seconds);
  }

  CollectiveReadings collectives;
};

/// What one run of one device showed.
struct RunReadings {
  LayerReadings layers;
  CollectiveReadings collectives;
};

/// The communicators of the groups that run at the same time.
class Communicators {
 public:
  explicit Communicators(bool spins) { waits_.spins = spins; }
  /// `group`: which of the equal groups.
  GroupMember member(int group, const std::vector<DeviceId>& devices, DeviceId device) {
    if (devices.size() < 2) return {};
    auto& communicator = communicators_[{group, devices}];
    if (!communicator) communicator = std::make_unique<ThreadCommunicator>(static_cast<int>(devices.size()), waits_);
    return {communicator.get(), static_cast<int>(std::find(devices.begin(), devices.end(), device) - devices.begin())};
  }

 private:
  GroupWaits waits_;
  std::map<std::pair<int, std::vector<DeviceId>>, std::unique_ptr<ThreadCommunicator>> communicators_;
};

/// One thread's runs.
class MemberRuns {
 public:
  MemberRuns(const ProfileRequest& request, int samples, std::span<const double> weights,
             std::unique_ptr<Kernels> kernels, const GroupPart& part)
      : kernels_(std::move(kernels)), runs_(request, samples, weights, *kernels_, part) {}

  void once(bool counts) {
    GroupStopwatch watch(runs_.nodes());
    runs_.once(&watch, &watch);
    if (!counts) return;
    RunReadings& run = readings.emplace_back();
    runs_.file(std::move(watch.times), run.layers);
    run.collectives = std::move(watch.collectives);
  }

  std::vector<RunReadings> readings;

 private:
  std::unique_ptr<Kernels> kernels_;
  LayerRuns runs_;
};

std::vector<std::unique_ptr<MemberRuns>> member_runs(const ProfileRequest& request, int samples, int groups,
                                                     std::span<const double> weights, const KernelFactory& factory,
                                                     Communicators& communicators) {
  const Workload one = profiled_stage(request.workload);
  const StageWorkload& stage = one.stages.front();
  const int members = group_members(request.workload);
  std::vector<std::unique_ptr<MemberRuns>> runs;
  for (int t = 0; t < groups * members; ++t) {
    const int group = t / members, member = t % members;
    const GroupDevices devices = group_devices(stage, member);
    const auto in = [&](const std::vector<DeviceId>& d) { return communicators.member(group, d, DeviceId{member}); };
    runs.push_back(std::make_unique<MemberRuns>(
        request, samples, weights, factory(width_of(request.workload), DeviceId{t}),
        GroupPart{member, {in(devices.tensor), in(devices.context), in(devices.experts)}}));
  }
  return runs;
}

/// Runs of which means are taken. What delays a device delays its group, so delays add up over an iteration, and the
/// median over single runs would lose the long ones.
constexpr int kBlock = 4;

/// Means over the devices and the equal layers of each block of runs.
struct Means {
  LayerReadings layers;
  CollectiveReadings collectives;
};

Means means_of(const std::vector<std::unique_ptr<MemberRuns>>& runs) {
  Means means;
  const std::size_t count = runs.front()->readings.size();
  for (std::size_t first = 0; first < count; first += kBlock) {
    RunReadings joined;
    for (const auto& member : runs)
      for (std::size_t n = first; n < std::min(count, first + kBlock); ++n) {
        for (const auto& [name, r] : member->readings[n].layers) append(joined.layers[name], r);
        for (const auto& [key, times] : member->readings[n].collectives) {
          std::vector<double>& sum = joined.collectives[key];
          sum.insert(sum.end(), times.begin(), times.end());
        }
      }
    for (const auto& [name, r] : joined.layers) {
      Readings& of_layer = means.layers[name];
      of_layer.forward.push_back(mean(r.forward));
      if (!r.input_gradient.empty()) of_layer.input_gradient.push_back(mean(r.input_gradient));
      of_layer.weight_gradient.push_back(mean(r.weight_gradient));
      of_layer.total.push_back(mean(r.total));
    }
    for (const auto& [key, times] : joined.collectives) means.collectives[key].push_back(mean(times));
  }
  return means;
}

}  // namespace

void measure_group_layers(const ProfileRequest& request, int samples, std::span<const double> weights,
                          const KernelFactory& factory, Profile& profile) {
  const int members = group_members(request.workload), groups = std::max(1, request.threads / members);
  const StageWorkload& stage = request.workload.stages.front();
  profile.threads = groups * members;
  Communicators communicators(profile.threads <= usable_cores().count());
  const auto runs = member_runs(request, samples, groups, weights, factory, communicators);
  // Between two runs, too, a member waits for the others in the next collective and nowhere else, as in a real run.
  repeat_together(
      profile.threads, request.seconds, [&](int t, bool counts) { runs[t]->once(counts); }, kBlock);
  const Means means = means_of(runs);
  const auto first = std::ssize(profile.layers);
  put_layers(means.layers, samples, profile);
  for (auto layer = profile.layers.begin() + first; layer != profile.layers.end(); ++layer)
    layer->group = group_text(stage.degrees, stage.exchange);
  const auto width = static_cast<double>(width_of(request.workload));
  for (const auto& [key, times] : means.collectives) {
    const MeasuredCollective one{std::get<0>(key), CollectiveUse::Ops, std::get<1>(key),
                                 Bytes{width * static_cast<double>(std::get<2>(key))}, Seconds{median(times)}};
    const bool is_known = std::any_of(profile.collectives.begin(), profile.collectives.end(), [&](const auto& c) {
      return c.kind == one.kind && c.ranks == one.ranks && c.bytes == one.bytes;  // From another micro-batch size.
    });
    if (!is_known) profile.collectives.push_back(one);
  }
}

}  // namespace stagecraft::real
