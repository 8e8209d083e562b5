// Measures the layers and collectives of groups of devices on GPUs; measure.cpp calls it for profiles of groups.

#include "backends/cuda/measure_groups.hpp"

#include <algorithm>
#include <map>
#include <memory>

#include "backends/cuda/device_stopwatch.hpp"
#include "backends/cuda/queued_communicator.hpp"
#include "backends/real/clocks.hpp"
#include "backends/real/group_readings.hpp"
#include "sim/core/diagnostic.hpp"

namespace stagecraft::cuda {
namespace {

/// Devices that meet inside of their work, each on a host thread.
class Members {
 public:
  explicit Members(GpuRuntime& runtime) : runtime_(runtime), threads_(runtime.launch_limit()) {}

  real::GroupMember member(const std::vector<int>& devices, int device) {
    if (devices.size() < 2) return {};
    auto& communicator = communicators_[devices];
    if (!communicator) {
      std::vector<DeviceId> members;
      for (const int d : devices) members.emplace_back(d);
      communicator = queued_communicator(runtime_, threads_, {std::move(members), devices});
    }
    return {communicator.get(), static_cast<int>(std::find(devices.begin(), devices.end(), device) - devices.begin())};
  }

  /// Enqueues the work of the first `count` devices.
  void enqueue(int count, const std::function<void(int device)>& work) {
    int ended = 0;
    for (int d = 0; d < count; ++d)
      threads_.run(d, [&, d] {
        work(d);
        ++ended;
      });
    while (threads_.resume()) continue;
    if (ended < count) throw InternalError("devices of a group do not come to the same exchange");
  }

 private:
  GpuRuntime& runtime_;
  CooperativeThreads threads_;
  std::map<std::vector<int>, std::unique_ptr<real::GroupCommunicator>> communicators_;
};

/// Times the operations and the collectives in them, as on the CPU. A collective begins when the device has come to it,
/// so that it includes the wait for the others.
class GroupStopwatch final : public DeviceStopwatch, public real::CollectiveWatch {
 public:
  GroupStopwatch(GpuRuntime& runtime, int queue) : DeviceStopwatch(runtime, queue), waits_(runtime, queue) {}

  void arrived() override { waits_.start(); }
  void ended(CollectiveUse use, CollectiveKind kind, int ranks, std::int64_t numbers, double) override {
    waits_.stop();
    collectives_.push_back({use, kind, ranks, numbers, parts_.back().part, parts_.back().node});
  }

  real::GroupReadings readings(const real::LayerRuns& runs) {
    for (std::size_t n = 0; n < collectives_.size(); ++n) collectives_[n].seconds = waits_.seconds(n);
    return readings_of(runs, times(runs.net().nodes.size()), collectives_);
  }

 private:
  Laps waits_;
  std::vector<real::InnerCollective> collectives_;
};

/// The model of each device of some equal groups.
class GroupRuns {
 public:
  GroupRuns(const ProfileRequest& request, int samples, std::span<const double> weights, int groups,
            GpuRuntime& runtime)
      : runtime_(runtime), members_(runtime) {
    const Workload one = real::profiled_stage(request.workload);
    const int size = real::group_members(request.workload);
    for (int d = 0; d < groups * size; ++d) {
      const int first = d / size * size;
      const auto in = [&](const std::vector<DeviceId>& group) {
        std::vector<int> there;
        for (const DeviceId device : group) there.push_back(first + static_cast<int>(device.value));
        return members_.member(there, d);
      };
      kernels_.push_back(queue_kernels(runtime, d));
      runs_.push_back(std::make_unique<real::LayerRuns>(request, samples, weights, *kernels_.back(),
                                                        real::group_part(one.stages.front(), d - first, in)));
    }
  }

  int devices() const { return static_cast<int>(runs_.size()); }

  /// An untimed run goes first, so that devices stay busy until the timed run is enqueued.
  void once(std::vector<std::vector<real::GroupReadings>>* readings) {
    watches_.clear();
    for (int d = 0; d < devices(); ++d) watches_.emplace_back(runtime_, runtime_.compute_queue(d));
    members_.enqueue(devices(), [&](int d) { runs_[d]->once(nullptr); });
    members_.enqueue(devices(), [&](int d) { runs_[d]->once(&watches_[d], &watches_[d]); });
    runtime_.finish();
    for (int d = 0; d < devices() && readings; ++d) (*readings)[d].push_back(watches_[d].readings(*runs_[d]));
  }

 private:
  GpuRuntime& runtime_;
  std::vector<std::unique_ptr<real::Kernels>> kernels_;
  std::vector<std::unique_ptr<real::LayerRuns>> runs_;
  std::deque<GroupStopwatch> watches_;
  Members members_;  ///< Its threads may pause in the middle of a run after a failure, and end first.
};

}  // namespace

void measure_group_layers(const ProfileRequest& request, int samples, std::span<const double> weights,
                          GpuRuntime& runtime, Profile& profile) {
  const int groups = std::max(1, request.threads / real::group_members(request.workload));
  GroupRuns runs(request, samples, weights, groups, runtime);
  std::vector<std::vector<real::GroupReadings>> readings(runs.devices());
  const double begin = real::steady_seconds();
  for (int round = 0; round < real::kMost + real::kWarmUps; ++round) {
    const int counted = round - real::kWarmUps;
    if (counted >= real::kFewest && real::steady_seconds() - begin > request.seconds) break;
    runs.once(counted >= 0 ? &readings : nullptr);
  }
  profile.threads = runs.devices();
  put_group(request, samples, readings, profile);
}

Seconds DeviceMemberTimer::time(int count, const std::function<void(const real::GroupMember&)>& once) {
  constexpr int kRounds = 20;
  Members members(runtime_);
  std::vector<int> devices;
  for (int d = 0; d < count; ++d) devices.push_back(d);
  const auto run = [&](int d) { once(members.member(devices, d)); };
  runtime_.finish();  // One device may read arrays that others have just written.
  std::vector<std::vector<double>> of_members(count);
  for (int round = 0; round < kRounds; ++round) {
    std::deque<Laps> laps;
    for (int d = 0; d < count; ++d) laps.emplace_back(runtime_, runtime_.compute_queue(d));
    members.enqueue(count, run);
    members.enqueue(count, [&](int d) {
      laps[d].start();
      run(d);
      laps[d].stop();
    });
    runtime_.finish();
    for (int d = 0; d < count; ++d) of_members[d].push_back(laps[d].seconds(0));
  }
  return real::median_of_means(of_members);
}

}  // namespace stagecraft::cuda
