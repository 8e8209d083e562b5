#include <algorithm>
#include <map>
#include <memory>

#include "backends/real/collectives.hpp"
#include "backends/real/host_runs.hpp"
#include "backends/real/layer_runs.hpp"
#include "backends/real/measure_groups.hpp"
#include "backends/real/stage_weights.hpp"
#include "backends/real/thread_communicator.hpp"
#include "sim/core/cores.hpp"
#include "sim/core/numbers.hpp"

namespace stagecraft::real {
namespace {

/// An array of each device that has equal parameters.
class ParameterArrays : public CollectiveArrays {
 public:
  ParameterArrays(int ranks, std::int64_t numbers, std::size_t width, const KernelFactory& factory)
      : numbers_(numbers), width_(width) {
    for (int r = 0; r < ranks; ++r) {
      kernels_.push_back(factory(width, DeviceId{r}));
      memories_.push_back(std::make_unique<DeviceMemory>(*kernels_.back()));
      arrays_.emplace_back(*memories_.back(), 1, numbers, Use::Gradients);
      kernels_.back()->zero(arrays_.back().data(), static_cast<std::size_t>(numbers) * wide_width(width));
    }
    program_.collective_shapes.resize(1);
    collective_ = {.first = InstructionId{0}, .members = ranks, .shape = 0};
  }

  std::int64_t numbers(const Collective&) override { return numbers_; }
  MemberArrays arrays(InstructionId member) override {
    return in_place(program_.collective_shapes.front().kind, collective_.members, static_cast<int>(member.value),
                    arrays_[member.value].tensor(), wide_width(width_));
  }
  Kernels* kernels_of(InstructionId member) override { return kernels_[member.value].get(); }

  /// As the instruction of a program: the thread of the last member that arrives does everything.
  void run(CollectiveKind kind) {
    program_.collective_shapes.front().kind = kind;
    run_collective(program_, collective_, *this);
  }
  /// Inside of an update: each member sums or gathers its part.
  void scatter_sum_of(const GroupMember& member) { scatter_sum(member, memory(member), whole(member)); }
  void gather(const GroupMember& member) {
    const ShardRange shard = shard_of(numbers_, member.size(), member.rank);
    const auto first = shard.first * static_cast<std::int64_t>(wide_width(width_));
    char* const data = static_cast<char*>(whole(member).data);
    gather_range(member, memory(member), numbers_, {data + first, 1, shard.count}, {0, numbers_}, data);
  }

 private:
  DeviceMemory& memory(const GroupMember& m) { return *memories_[static_cast<std::size_t>(m.rank)]; }
  Tensor whole(const GroupMember& m) { return arrays_[static_cast<std::size_t>(m.rank)].tensor(); }

  std::int64_t numbers_;
  std::size_t width_;
  std::vector<std::unique_ptr<Kernels>> kernels_;
  std::vector<std::unique_ptr<DeviceMemory>> memories_;
  std::vector<Array> arrays_;
  Program program_;
  Collective collective_;
};

/// What devices with divided gradients or weights exchange in the passes of the layers, one operation after another.
class PassArrays {
 public:
  PassArrays(const ProfileRequest& request, int ranks, const KernelFactory& factory)
      : one_(profiled_stage(request.workload)) {
    const StageWorkload& stage = one_.stages.front();
    const std::size_t width = width_of(one_);
    const StageNet net = stage.degrees.divides() ? compile_part(one_, StageId{0}, stage.place(0), width)
                                                 : compile_stage(one_, StageId{0}, width);
    section_ = net.dense_weights;
    std::int64_t largest = 0;
    for (const Node& node : net.nodes)
      if (node.count > 0 && node.weights < section_) {
        exchanges_.push_back({node.layer, {node.weights, node.count}});
        largest = std::max(largest, node.count);
      }
    for (int r = 0; r < ranks; ++r) {
      kernels_.push_back(factory(width, DeviceId{r}));
      memories_.push_back(std::make_unique<DeviceMemory>(*kernels_.back()));
      parts_.emplace_back(*memories_.back(), 1, std::max<std::int64_t>(1, shard_of(section_, ranks, r).count),
                          Use::Gradients);
      operations_.emplace_back(*memories_.back(), 1, std::max<std::int64_t>(1, largest), Use::Gradients);
      for (const Array* array : {&parts_.back(), &operations_.back()})
        kernels_.back()->zero(array->data(), bytes_of(*kernels_.back(), array->tensor()));
    }
  }

  void scatter(const GroupMember& member) const {
    for (const auto& [layer, range] : exchanges_)
      scatter_range(member, memory(member), section_, {operations_[member.rank].data(), 1, range.count, true}, range,
                    parts_[member.rank].data());
  }
  void gather(const GroupMember& member) const {
    for (const auto& [layer, range] : exchanges_)
      gather_range(member, memory(member), section_, parts_[member.rank].tensor(), range,
                   operations_[member.rank].data());
  }

  /// Seconds of the layers, by their numbers: medians over the runs, of the means over equally large layers.
  std::map<std::int64_t, double> seconds_of_layers(const std::vector<MemberTimes>& runs) const {
    std::map<int, std::int64_t> numbers;
    for (const auto& [layer, range] : exchanges_) numbers[layer] += range.count;
    std::map<std::int64_t, std::vector<double>> means;
    for (const MemberTimes& run : runs) {
      std::map<int, double> of_layer;
      for (std::size_t n = 0; n < exchanges_.size(); ++n) of_layer[exchanges_[n].layer] += run.collectives[n];
      std::map<std::int64_t, std::vector<double>> by_size;
      for (const auto& [layer, seconds] : of_layer) by_size[numbers[layer]].push_back(seconds);
      for (const auto& [size, seconds] : by_size) {
        double sum = 0;
        for (const double s : seconds) sum += s;
        means[size].push_back(sum / static_cast<double>(seconds.size()));
      }
    }
    std::map<std::int64_t, double> medians;
    for (auto& [size, seconds] : means) medians[size] = median(std::move(seconds));
    return medians;
  }

 private:
  struct OfOperation {
    int layer = 0;
    ShardRange range;
  };
  DeviceMemory& memory(const GroupMember& m) const { return *memories_[static_cast<std::size_t>(m.rank)]; }

  Workload one_;
  std::int64_t section_ = 0;
  std::vector<OfOperation> exchanges_;
  std::vector<std::unique_ptr<Kernels>> kernels_;
  std::vector<std::unique_ptr<DeviceMemory>> memories_;
  std::vector<Array> parts_, operations_;  ///< A part of all gradients or weights, and all of one operation.
};

/// Puts rows of what the devices of a stage exchange into a profile.
class ParameterRuns {
 public:
  ParameterRuns(const ProfileRequest& request, const KernelFactory& factory, MemberTimer& timer, Profile& profile)
      : request_(request),
        stage_(request.workload.stages.front()),
        factory_(factory),
        timer_(timer),
        profile_(profile),
        ranks_(stage_.data_ranks()) {}

  /// What the update or the program of such a stage exchanges.
  void put_updates(std::int64_t numbers) {
    ParameterArrays arrays(ranks_, numbers, width_of(request_.workload), factory_);
    const bool divides = stage_.sharding >= StateSharding::Optimizer;
    const CollectiveKind sum = divides ? CollectiveKind::ReduceScatter : CollectiveKind::AllReduce;
    const auto total = [&](int members, auto&& once) {
      std::vector<double> seconds;
      for (const MemberTimes& run : timer_.time(members, once)) seconds.push_back(run.seconds);
      return median(std::move(seconds));
    };
    if (stage_.sharding <= StateSharding::Optimizer) {
      if (stage_.degrees.context > 1 && stage_.degrees.context == ranks_)
        put(sum, numbers, total(ranks_, [&](const GroupMember& member) {
              arrays.scatter_sum_of(member);
              if (!divides) arrays.gather(member);
            }));
      else
        put(sum, numbers, total(1, [&](const GroupMember&) { arrays.run(sum); }));
    }
    if (divides)
      put(CollectiveKind::AllGather, numbers, total(ranks_, [&](const GroupMember& member) { arrays.gather(member); }));
  }

  /// What the passes of layers exchange where gradients, or weights, are divided.
  void put_passes() {
    const PassArrays arrays(request_, ranks_, factory_);
    const auto put_all = [&](CollectiveKind kind, auto&& once) {
      for (const auto& [numbers, seconds] : arrays.seconds_of_layers(timer_.time(ranks_, once)))
        put(kind, numbers, seconds);
    };
    put_all(CollectiveKind::ReduceScatter, [&](const GroupMember& member) { arrays.scatter(member); });
    if (stage_.reshard) put_all(CollectiveKind::AllGather, [&](const GroupMember& member) { arrays.gather(member); });
  }

 private:
  void put(CollectiveKind kind, std::int64_t numbers, double seconds) {
    const auto width = static_cast<double>(wide_width(width_of(request_.workload)));
    profile_.collectives.push_back(
        {kind, CollectiveUse::Parameters, ranks_, Bytes{static_cast<double>(numbers) * width}, Seconds{seconds}});
  }

  const ProfileRequest& request_;
  const StageWorkload& stage_;
  const KernelFactory& factory_;
  MemberTimer& timer_;
  Profile& profile_;
  int ranks_;
};

}  // namespace

std::vector<MemberTimes> HostMemberTimer::time(int members, const std::function<void(const GroupMember&)>& once) {
  constexpr double kSeconds = 0.1;
  struct Watch final : CollectiveWatch {
    void ended(CollectiveKind, int, std::int64_t, double time) override { seconds.push_back(time); }
    std::vector<double> seconds;
  };
  GroupWaits waits;
  waits.spins = members <= usable_cores().count();
  ThreadCommunicator group(members, waits);
  std::vector<std::vector<MemberTimes>> of_members(members);
  std::vector<CacheFlush> flushes(members, CacheFlush(touched_bytes(request_)));
  repeat_together(members, kSeconds, [&](int t, bool counts) {
    flushes[t]();
    Watch watch;
    const double begin = steady_seconds();
    once(members > 1 ? GroupMember{&group, t, &watch} : GroupMember{});
    if (counts) of_members[t].push_back({steady_seconds() - begin, std::move(watch.seconds)});
  });
  return means_over(of_members);
}

std::vector<MemberTimes> means_over(const std::vector<std::vector<MemberTimes>>& of_members) {
  std::vector<MemberTimes> means(of_members.front().size());
  for (const std::vector<MemberTimes>& runs : of_members)
    for (std::size_t n = 0; n < means.size(); ++n) {
      means[n].seconds += runs[n].seconds / static_cast<double>(of_members.size());
      means[n].collectives.resize(runs[n].collectives.size());
      for (std::size_t c = 0; c < runs[n].collectives.size(); ++c)
        means[n].collectives[c] += runs[n].collectives[c] / static_cast<double>(of_members.size());
    }
  return means;
}

void measure_parameter_collectives(const ProfileRequest& request, const KernelFactory& factory, MemberTimer& timer,
                                   Profile& profile) {
  const StageWorkload& stage = request.workload.stages.front();
  const bool has_group = stage.degrees.divides() || stage.sharding != StateSharding::None;
  if (!has_group || stage.data_ranks() < 2) return;
  ParameterRuns runs(request, factory, timer, profile);
  const auto largest = static_cast<std::int64_t>(request.workload.parameters);
  for (const std::int64_t numbers : {largest, largest / 8, largest / 64})
    if (numbers >= stage.data_ranks()) runs.put_updates(numbers);
  if (stage.sharding > StateSharding::Optimizer) runs.put_passes();
}

}  // namespace stagecraft::real
