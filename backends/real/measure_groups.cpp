// Measures the layers and collectives of groups of devices that are threads of this host; measure.cpp calls it.

#include "backends/real/measure_groups.hpp"

#include <algorithm>
#include <map>
#include <memory>

#include "backends/real/group_readings.hpp"
#include "backends/real/host_runs.hpp"
#include "backends/real/thread_communicator.hpp"
#include "sim/core/cores.hpp"

namespace stagecraft::real {
namespace {

/// Times the operations and the collectives in them.
class GroupStopwatch final : public HostStopwatch, public CollectiveWatch {
 public:
  using HostStopwatch::HostStopwatch;
  void ended(CollectiveUse use, CollectiveKind kind, int ranks, std::int64_t numbers, double seconds) override {
    collectives.push_back({use, kind, ranks, numbers, part_, node_, seconds});
  }

  std::vector<InnerCollective> collectives;
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
  /// Ends the waits of all members.
  void interrupt() {
    waits_.interrupted = true;
    for (const auto& [key, communicator] : communicators_) communicator->interrupt();
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
    GroupStopwatch watch(runs_.net().nodes.size());
    runs_.once(&watch, &watch);
    if (counts) readings.push_back(readings_of(runs_, std::move(watch.times), watch.collectives));
  }

  std::vector<GroupReadings> readings;

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
    runs.push_back(std::make_unique<MemberRuns>(
        request, samples, weights, factory(width_of(request.workload), DeviceId{t}),
        group_part(stage, member,
                   [&](const std::vector<DeviceId>& d) { return communicators.member(group, d, DeviceId{member}); })));
  }
  return runs;
}

}  // namespace

void measure_group_layers(const ProfileRequest& request, int samples, std::span<const double> weights,
                          const KernelFactory& factory, Profile& profile) {
  const int members = group_members(request.workload), groups = std::max(1, request.threads / members);
  profile.threads = groups * members;
  Communicators communicators(profile.threads <= usable_cores().count());
  const auto runs = member_runs(request, samples, groups, weights, factory, communicators);
  // Between two runs, too, a member waits for the others in the next collective and nowhere else, as in a real run.
  repeat_together(
      profile.threads, request.seconds, [&](int t, bool counts) { runs[t]->once(counts); }, kGroupBlock,
      [&] { communicators.interrupt(); });
  std::vector<std::vector<GroupReadings>> of_devices;
  for (const auto& member : runs) of_devices.push_back(std::move(member->readings));
  put_group(request, samples, of_devices, profile);
}

}  // namespace stagecraft::real
