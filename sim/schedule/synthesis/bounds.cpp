#include "sim/schedule/synthesis/bounds.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "sim/schedule/synthesis/ways.hpp"

namespace stagecraft::synthesis {
namespace {

void raise(double& best, std::string& reason, double value, std::string why) {
  if (value <= best * (1 + 1e-12)) return;
  best = value;
  reason = std::move(why);
}

/// What measures all of these (Euclid), or nothing when it is too small to tell.
double common_measure(const std::vector<double>& parts) {
  constexpr double kSame = 1e-12, kSmall = 1e-3;
  const double largest = *std::max_element(parts.begin(), parts.end());
  double measure = 0;
  for (double part : parts)
    while (part > kSame * largest) {
      const double rest = std::fmod(measure, part);
      measure = std::exchange(part, part - rest <= kSame * largest ? 0 : rest);
    }
  return measure >= kSmall * largest ? measure : 0;
}

/// What can be held is a sum of whole parts of micro-batches, so there may be less room than it seems.
Limit in_whole_parts(const Problem& p, Limit limit) {
  constexpr double kSame = 1e-6;
  for (Resource& r : limit)
    for (int rank = 0; rank < p.ranks(); ++rank) {
      double& most = r.most[rank];
      std::vector<double> parts;
      for (const int s : p.stages[rank])
        for (const double part : {r.stash[s], r.boundary[s], r.stash[s] * r.freed_at_input}) parts.push_back(part);
      const double measure = common_measure(parts);
      if (measure > 0 && std::isfinite(most)) most = std::min(most, std::floor(most / measure + kSame) * measure);
    }
  return limit;
}

double end_of(const Problem& p, const Ways& ways, int rank) {
  std::vector<Job> jobs;
  for (const int s : p.stages[rank]) ways.add_jobs(s, jobs);
  return one_machine(std::move(jobs));
}

/// Each rank as one machine. Of iterations back to back, the row of a rank r takes from its own first start to its own
/// last end before it begins the next; all that comes from r and goes back to it in this iteration lies in between,
/// on whatever machine. W of another rank does not go back, so it may lie behind, but on its own row it counts.
void machines(const Least& least, const std::string& why, Bound& b) {
  const Problem& p = least.problem;
  // Beyond some size the simpler bounds have to do.
  constexpr double kMostLooks = 2e7, kMostMachines = 2e6;
  std::size_t waits = p.rank_of.size();
  for (const auto& list : least.waits) waits += list.size();
  const double looks = static_cast<double>(p.ranks()) * p.pieces();
  const bool each = looks * static_cast<double>(waits) <= kMostLooks * static_cast<double>(p.rank_of.size());
  const Ways ways(least, Ways::kAll);
  raise(b.makespan, b.makespan_reason, ways.there_and_back(), "one micro-batch there and back" + why);
  for (int r = 0; r < p.ranks(); ++r) {
    raise(b.makespan, b.makespan_reason, end_of(p, ways, r), fmt::format("the work of rank {}{}", r, why));
    if (!each) continue;
    const Ways own(least, r);
    for (int other = 0; other < p.ranks(); ++other)
      if (other == r || looks <= kMostMachines)
        raise(b.period, b.period_reason, end_of(p, own, other), fmt::format("what rank {} waits for{}", r, why));
  }
}

/// Memory, and how long each micro-batch takes some of it at least, on one rank.
double held(const Least& least, const Resource& resource, int rank) {
  double sum = 0;
  for (const int s : least.problem.stages[rank]) {
    const double last = (1 - resource.freed_at_input) * least.weight[s];
    const double boundary = resource.boundary[s];
    sum += least.problem.micros[s] *
           (boundary * (least.trip[s] + last) + (resource.stash[s] - boundary) * (least.input(s) + last));
  }
  return sum;
}

double sent(const Problem& p, int rank) {
  double sum = 0;
  for (const int s : p.stages[rank])
    for (int piece = p.first_piece[s]; piece < p.first_piece[s] + p.micros[s]; ++piece)
      for (const auto* outputs : {&p.forward_outputs, &p.gradient_outputs})
        for (const Output& o : (*outputs)[piece]) sum += o.exact ? o.sending : 0;
  return sum;
}

}  // namespace

Bound lower_bound(const Problem& p, const Limit& limit, bool split) {
  const Limit room = in_whole_parts(p, limit);
  const Least least(p, {}, split), with_memory(p, room, split);
  Bound b;
  const auto raise_both = [&](double value, const std::string& why) {
    raise(b.period, b.period_reason, value, why);
    raise(b.makespan, b.makespan_reason, value, why);
  };
  for (int r = 0; r < p.ranks(); ++r) {
    raise_both(p.busy[r], fmt::format("the work of rank {}", r));
    raise_both(sent(p, r), fmt::format("what rank {} sends", r));
  }
  machines(least, "", b);
  machines(with_memory, " in so little memory", b);
  for (int r = 0; r < p.ranks(); ++r)
    for (const Resource& resource : room)
      if (resource.most[r] > 0)
        raise_both(held(least, resource, r) / resource.most[r], fmt::format("the memory of rank {}", r));
  return b;
}

}  // namespace stagecraft::synthesis
