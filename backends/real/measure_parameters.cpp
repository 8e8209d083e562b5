// Measures sums of gradients and gathers of weights around updates, for the collectives in a profile.

#include <memory>
#include <vector>

#include "backends/real/collectives.hpp"
#include "backends/real/host_runs.hpp"
#include "backends/real/layer_runs.hpp"
#include "backends/real/measure_groups.hpp"
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

  std::int64_t numbers(const CollectiveCall&) override { return numbers_; }
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
  /// Inside of an update: each member sums its part of gradients, or gathers them or weights, which may be narrow.
  void scatter_sum_of(const GroupMember& member) { scatter_sum(member, memory(member), whole(member)); }
  void gather(const GroupMember& member, bool is_wide) {
    const ShardRange shard = shard_of(numbers_, member.size(), member.rank);
    const auto first = shard.first * static_cast<std::int64_t>(is_wide ? wide_width(width_) : width_);
    char* const data = static_cast<char*>(whole(member).data);
    gather_range(member, memory(member), numbers_, {data + first, 1, shard.count, is_wide}, {0, numbers_}, data);
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
  CollectiveCall collective_;
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
    if (stage_.sharding <= StateSharding::Optimizer) {
      if (stage_.degrees.context > 1 && stage_.degrees.context == ranks_)
        put(sum, numbers, timer_.time(ranks_, [&](const GroupMember& member) {
          arrays.scatter_sum_of(member);
          if (!divides) arrays.gather(member, true);
        }));
      else
        put(sum, numbers, timer_.time(1, [&](const GroupMember&) { arrays.run(sum); }));
    }
    const bool gathers_each_pass = stage_.shards(StateSharding::Weights) && stage_.reshard;
    if (divides && !gathers_each_pass)
      put(CollectiveKind::AllGather, numbers,
          timer_.time(ranks_, [&](const GroupMember& member) { arrays.gather(member, false); }));
  }

 private:
  void put(CollectiveKind kind, std::int64_t numbers, Seconds time) {
    const std::size_t width = width_of(request_.workload);
    const std::size_t each = kind == CollectiveKind::AllGather ? width : wide_width(width);
    profile_.collectives.push_back({kind, CollectiveUse::Parameters, ranks_,
                                    Bytes{static_cast<double>(each) * static_cast<double>(numbers)}, time});
  }

  const ProfileRequest& request_;
  const StageWorkload& stage_;
  const KernelFactory& factory_;
  MemberTimer& timer_;
  Profile& profile_;
  int ranks_;
};

}  // namespace

Seconds HostMemberTimer::time(int members, const std::function<void(const GroupMember&)>& once) {
  constexpr double kSeconds = 0.1;
  GroupWaits waits;
  waits.spins = members <= usable_cores().count();
  ThreadCommunicator group(members, waits);
  std::vector<std::vector<double>> of_members(members);
  std::vector<CacheFlush> flushes(members, CacheFlush(touched_bytes(request_)));
  const auto once_of = [&](int t, bool counts) {
    flushes[t]();
    const double begin = steady_seconds();
    once(members > 1 ? GroupMember{&group, t} : GroupMember{});
    if (counts) of_members[t].push_back(steady_seconds() - begin);
  };
  repeat_together(members, kSeconds, once_of, 1, [&] {
    waits.interrupted = true;
    group.interrupt();
  });
  return median_of_means(of_members);
}

Seconds median_of_means(const std::vector<std::vector<double>>& of_members) {
  std::vector<double> means(of_members.front().size());
  for (const std::vector<double>& runs : of_members)
    for (std::size_t n = 0; n < means.size(); ++n) means[n] += runs[n] / static_cast<double>(of_members.size());
  return Seconds{median(std::move(means))};
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
}

}  // namespace stagecraft::real
