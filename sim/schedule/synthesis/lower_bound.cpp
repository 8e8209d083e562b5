// Lower bounds on the time of every order, which the schedule `synthesised` reports its distance to.

#include "sim/schedule/synthesis/lower_bound.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/core.h>

#include "sim/core/common_unit.hpp"
#include "sim/schedule/synthesis/bound_model.hpp"

namespace stagecraft::synthesis {
namespace {

void raise(double& best, std::string& reason, double value, std::string why) {
  if (value <= best * (1 + 1e-12)) return;
  best = value;
  reason = std::move(why);
}

/// A rank holds a sum of whole parts of micro-batches, so some of its capacity may be out of reach.
ResourceLimits in_whole_parts(const SchedulingProblem& p, ResourceLimits limit) {
  constexpr double kSame = 1e-6;
  for (Resource& r : limit)
    for (int rank = 0; rank < p.ranks(); ++rank) {
      double& capacity = r.capacity[rank];
      std::vector<double> parts;
      for (const int s : p.stages[rank])
        for (const double part : {r.stash[s], r.boundary[s], r.stash[s] * r.freed_at_input}) parts.push_back(part);
      const double measure = common_measure(parts);
      if (measure > 0 && std::isfinite(capacity))
        capacity = std::min(capacity, std::floor(capacity / measure + kSame) * measure);
    }
  return limit;
}

double end_of(const SchedulingProblem& p, const HeadTailTimes& times, int rank) {
  std::vector<Job> jobs;
  for (const int s : p.stages[rank]) times.add_jobs(s, jobs);
  return one_machine(std::move(jobs));
}

/// Each rank as one machine. When iterations follow each other, the row of a rank r runs from its own first start to
/// its own last end before it begins the next; everything that comes from r and returns to it in this iteration lies in
/// between, on any machine. W of another rank does not return, so it may come later, but it counts on its own row.
void machine_bounds(const LowerBoundModel& model, const std::string& why, LowerBound& b) {
  const SchedulingProblem& p = model.problem;
  // Larger problems only get the simpler bounds.
  constexpr double kMostLooks = 2e7, kMostMachines = 2e6;
  std::size_t constraints = p.rank_of.size();
  for (const auto& list : model.constraints) constraints += list.size();
  const double looks = static_cast<double>(p.ranks()) * p.pieces();
  const bool each = looks * static_cast<double>(constraints) <= kMostLooks * static_cast<double>(p.rank_of.size());
  const HeadTailTimes times(model, HeadTailTimes::kAll);
  raise(b.makespan, b.makespan_reason, times.round_trip(), "the round trip of one micro-batch" + why);
  for (int r = 0; r < p.ranks(); ++r) {
    raise(b.makespan, b.makespan_reason, end_of(p, times, r), fmt::format("the work of rank {}{}", r, why));
    if (!each) continue;
    const HeadTailTimes from_rank(model, r);
    for (int other = 0; other < p.ranks(); ++other)
      if (other == r || looks <= kMostMachines)
        raise(b.period, b.period_reason, end_of(p, from_rank, other), fmt::format("what rank {} waits for{}", r, why));
  }
}

/// Lower bound on the integral of a resource over time on one rank.
double min_in_use(const LowerBoundModel& model, const Resource& resource, int rank) {
  double sum = 0;
  for (const int s : model.problem.stages[rank]) {
    const double last = (1 - resource.freed_at_input) * model.weight[s];
    const double boundary = resource.boundary[s];
    sum += model.problem.micros[s] *
           (boundary * (model.trip[s] + last) + (resource.stash[s] - boundary) * (model.input(s) + last));
  }
  return sum;
}

double sent(const SchedulingProblem& p, int rank) {
  double sum = 0;
  for (const int s : p.stages[rank])
    for (int piece = p.first_piece[s]; piece < p.first_piece[s] + p.micros[s]; ++piece)
      for (const auto* outputs : {&p.forward_outputs, &p.gradient_outputs})
        for (const Output& o : (*outputs)[piece]) sum += o.exact ? o.sending : 0;
  return sum;
}

}  // namespace

LowerBound lower_bound(const SchedulingProblem& p, const ResourceLimits& limit, bool split) {
  const ResourceLimits room = in_whole_parts(p, limit);
  const LowerBoundModel model(p, {}, split), with_memory(p, room, split);
  LowerBound b;
  const auto raise_both = [&](double value, const std::string& why) {
    raise(b.period, b.period_reason, value, why);
    raise(b.makespan, b.makespan_reason, value, why);
  };
  for (int r = 0; r < p.ranks(); ++r) {
    raise_both(p.busy[r], fmt::format("the work of rank {}", r));
    raise_both(sent(p, r), fmt::format("what rank {} sends", r));
  }
  machine_bounds(model, "", b);
  machine_bounds(with_memory, " in so little memory", b);
  for (int r = 0; r < p.ranks(); ++r)
    for (const Resource& resource : room)
      if (resource.capacity[r] > 0)
        raise_both(min_in_use(model, resource, r) / resource.capacity[r], fmt::format("the memory of rank {}", r));
  return b;
}

}  // namespace stagecraft::synthesis
