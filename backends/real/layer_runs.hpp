#pragma once

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "backends/backend.hpp"
#include "backends/real/net_run.hpp"

// Runs a model again and again to time its layers: what profiles of the CPU and of GPUs share.

namespace stagecraft::real {

/// Runs that do not count, and the fewest and the most runs that do.
inline constexpr int kWarmUps = 2, kFewest = 7, kMost = 400;

/// Seconds that each node of a net took.
struct NodeTimes {
  std::vector<double> forward, input_gradient, weight_gradient;

  explicit NodeTimes(std::size_t nodes) : forward(nodes, 0), input_gradient(forward), weight_gradient(forward) {}
  double& seconds_of(LayerPass, std::size_t node);
};

/// Readings of one kind of layer: one entry a layer and run.
struct Readings {
  std::vector<double> forward, input_gradient, weight_gradient, total;
};
void append(Readings& to, const Readings& from);
using LayerReadings = std::map<std::string, Readings>;  ///< By signature.

/// Weights for all runs of a request on numbers of `width` bytes: random, as times depend on it on GPUs, but with only
/// 65,537 different numbers in each operation, because drawing all of a large model takes longer than measuring it.
std::vector<double> profile_weights(const ProfileRequest&, std::size_t width);

/// Devices that have to run together to measure the layers of a workload: those that divide them, or that divide
/// gradients or weights, which they exchange in every pass; or one.
int group_members(const Workload&);
/// All layers of all stages as one stage on these devices, numbered from 0.
Workload profiled_stage(const Workload&);

/// A device of those that run together; a default one is alone.
struct GroupPart {
  int member = 0;
  MemberGroups groups = {};
  GroupMember data = {}, expert_data = {};  ///< See GroupDevices.
};
/// `member_of`: gives the place of this device in a group of these.
GroupPart group_part(const StageWorkload&, int member,
                     const std::function<GroupMember(const std::vector<DeviceId>&)>& member_of);

/// One device's runs of the whole model with `samples` samples, forward and backward.
class LayerRuns {
 public:
  /// `weights`: profile_weights() of this request.
  LayerRuns(const ProfileRequest&, int samples, std::span<const double> weights, Kernels&, const GroupPart& = {});

  const StageNet& net() const { return net_; }
  /// The watches may be null.
  void once(Stopwatch*, CollectiveWatch* = nullptr);
  void file(NodeTimes, LayerReadings&) const;

 private:
  Workload workload_;
  GroupPart part_;
  int samples_;
  std::int64_t round_ = 0;
  Kernels& kernels_;
  DeviceMemory memory_;
  StageNet net_;
  std::unique_ptr<Dataset> data_;
  ShardedArrays sharded_;
  Array weights_, sum_;
};

/// Their medians become figures of the profile.
void put_layers(const LayerReadings&, int samples, Profile&);

/// Seconds of one call of some work; the median of many.
using SecondsOf = std::function<double(const std::function<void()>& work)>;
/// Updates and predictions of several sizes: they read and write more than fits a cache, or less.
void put_updates(const ProfileRequest&, Kernels&, const SecondsOf&, Profile&);

}  // namespace stagecraft::real
