#include <algorithm>
#include <memory>

#include "backends/real/collectives.hpp"
#include "backends/real/host_runs.hpp"
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
  /// Inside of an update: each member sums or takes over its part.
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

/// A collective of one size; medians over the repetitions, of the means over the members.
class ParameterRuns {
 public:
  ParameterRuns(const ProfileRequest& request, std::int64_t numbers, const KernelFactory& factory)
      : request_(request),
        ranks_(request.workload.stages.front().data_ranks()),
        width_(width_of(request.workload)),
        arrays_(ranks_, numbers, width_, factory),
        numbers_(numbers) {
    waits_.spins = ranks_ <= usable_cores().count();
    group_ = std::make_unique<ThreadCommunicator>(ranks_, waits_);
  }

  /// `once`: what each member does; members do not meet before it.
  template <class Once>
  MeasuredCollective measure(CollectiveKind kind, int threads, Once&& once) {
    std::vector<std::vector<double>> times(threads);
    std::vector<CacheFlush> flushes(threads, CacheFlush(touched_bytes(request_)));
    repeat_together(threads, kSeconds, [&](int t, bool counts) {
      flushes[t]();
      const double begin = steady_seconds();
      once(GroupMember{group_.get(), t});
      if (counts) times[t].push_back(steady_seconds() - begin);
    });
    std::vector<double> means;
    for (std::size_t n = 0; n < times.front().size(); ++n) {
      double sum = 0;
      for (const auto& of_thread : times) sum += of_thread[n];
      means.push_back(sum / threads);
    }
    return {kind, CollectiveUse::Parameters, ranks_,
            Bytes{static_cast<double>(numbers_) * static_cast<double>(wide_width(width_))},
            Seconds{median(std::move(means))}};
  }

  /// What the update or the program of such a stage exchanges.
  void put(Profile& profile) {
    const StageWorkload& stage = request_.workload.stages.front();
    const bool divides = stage.sharding == StateSharding::Optimizer;
    const CollectiveKind sum = divides ? CollectiveKind::ReduceScatter : CollectiveKind::AllReduce;
    if (stage.degrees.context > 1 && stage.degrees.context == ranks_)
      profile.collectives.push_back(measure(sum, ranks_, [&](const GroupMember& member) {
        arrays_.scatter_sum_of(member);
        if (!divides) arrays_.gather(member);
      }));
    else
      profile.collectives.push_back(measure(sum, 1, [&](const GroupMember&) { arrays_.run(sum); }));
    if (divides)
      profile.collectives.push_back(
          measure(CollectiveKind::AllGather, ranks_, [&](const GroupMember& member) { arrays_.gather(member); }));
  }

 private:
  static constexpr double kSeconds = 0.1;

  const ProfileRequest& request_;
  int ranks_;
  std::size_t width_;
  ParameterArrays arrays_;
  std::int64_t numbers_;
  GroupWaits waits_;
  std::unique_ptr<ThreadCommunicator> group_;
};

}  // namespace

void measure_parameter_collectives(const ProfileRequest& request, const KernelFactory& factory, Profile& profile) {
  const StageWorkload& stage = request.workload.stages.front();
  const bool has_group = stage.degrees.divides() || stage.sharding != StateSharding::None;
  if (!has_group || stage.data_ranks() < 2 || stage.sharding > StateSharding::Optimizer) return;
  const auto largest = static_cast<std::int64_t>(request.workload.parameters);
  for (const std::int64_t numbers : {largest, largest / 8, largest / 64})
    if (numbers >= stage.data_ranks()) ParameterRuns(request, numbers, factory).put(profile);
}

}  // namespace stagecraft::real
