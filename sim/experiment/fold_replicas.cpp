// Replaces equal replicas by one set of them, which runs, searches and sweeps simulate: the other sets have the same
// times.

#include "sim/experiment/fold_replicas.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "sim/core/disjoint_sets.hpp"
#include "sim/schedule/layout.hpp"

namespace stagecraft {
namespace {

/// Replicas of every stage, ascending.
using Replicas = std::vector<int>;

/// What the plan and the run must be like before devices and links are compared.
bool may_fold(const PlannedExperiment& p) {
  const Experiment& e = p.experiment;
  if (!p.plan.loads.empty()) return false;  // Replicas have different packs.
  if (!e.cluster->changes.empty() || e.cluster->jitter.max_fraction > 0) return false;  // Replicas differ by chance.
  if (e.rules->flows || e.run.each_replica) return false;
  if (e.plan.offload) return false;  // Replicas share hosts.
  const Stage& first = p.plan.stages.front();
  const int replicas = first.replicas(), size = first.micro_batch_size;
  if (replicas < 2 || size % replicas != 0) return false;
  const bool equal = std::all_of(p.plan.stages.begin(), p.plan.stages.end(), [&](const Stage& s) {
    return s.share == Share::Samples && s.replicas() == replicas && std::ssize(s.leaders) == replicas &&
           s.micro_batch_size == size;
  });
  const std::span<const StageCost> costs = p.costs.values();
  return equal && std::all_of(costs.begin(), costs.end(), [](const StageCost& c) {  // Devices with memory of their own.
           return (c.update_traffic + c.traffic.forward + c.traffic.weight_gradient).value == 0;
         });
}

/// The routes between the stages, in both directions, of each replica.
class ReplicaRoutes {
 public:
  ReplicaRoutes(const Plan& plan, const Cluster& cluster) : cluster_(cluster) {
    const Router router(cluster);
    routes_.resize(plan.stages.front().leaders.size());
    for (std::size_t r = 0; r < routes_.size(); ++r)
      for (const StageEdge& edge : plan.edges) {
        const DeviceId from = plan.stage(edge.from).leaders[r], to = plan.stage(edge.to).leaders[r];
        if (from == to) continue;
        routes_[r].push_back(router.require(from, to));
        routes_[r].push_back(router.require(to, from));
      }
  }

  void join_by_links(DisjointSets& sets) const {
    IdVector<LinkId, int> first(cluster_.links.size(), -1);
    for (int r = 0; r < std::ssize(routes_); ++r)
      for (const Route& route : routes_[r])
        for (const Hop& hop : route.hops) {
          if (cluster_.links[hop.link].duplex == Duplex::Unshared) continue;
          if (first[hop.link] < 0) first[hop.link] = r;
          sets.join(first[hop.link], r);
        }
  }

  /// Whether all sets cross links of the kinds that the first set crosses, and share them alike.
  bool are_alike(const std::vector<Replicas>& sets) const {
    IdVector<LinkId, LinkId> counterpart(cluster_.links.size());      // [link of the first set]: that of the set.
    IdVector<LinkId, int> met(cluster_.links.size(), 0), taken(met);  // The last set in which a link had or was one.
    for (int set = 1; set < std::ssize(sets); ++set)
      for (std::size_t i = 0; i < sets.front().size(); ++i) {
        const std::vector<Route>&x = routes_[sets.front()[i]], &y = routes_[sets[set][i]];
        if (x.size() != y.size()) return false;
        for (std::size_t k = 0; k < x.size(); ++k) {
          if (!are_equal(x[k], y[k])) return false;
          for (std::size_t h = 0; h < x[k].hops.size(); ++h) {
            const LinkId first = x[k].hops[h].link, other = y[k].hops[h].link;
            const bool is_new = met[first] != set;
            if (is_new ? taken[other] == set : counterpart[first] != other) return false;
            counterpart[first] = other, met[first] = taken[other] = set;
          }
        }
      }
    return true;
  }

 private:
  /// Links of equal kinds, one after the other.
  bool are_equal(const Route& x, const Route& y) const {
    if (x.hops.size() != y.hops.size() || x.max_rate != y.max_rate) return false;
    for (std::size_t h = 0; h < x.hops.size(); ++h) {
      const Hop &p = x.hops[h], &q = y.hops[h];
      const Link &l = cluster_.links[p.link], &m = cluster_.links[q.link];
      if (p.forward != q.forward || l.bandwidth != m.bandwidth || l.latency != m.latency || l.duplex != m.duplex ||
          l.slow_start != m.slow_start || l.window != m.window || l.one_queue != m.one_queue)
        return false;
    }
    return true;
  }

  const Cluster& cluster_;
  std::vector<std::vector<Route>> routes_;  ///< [replica]
};

/// The sets of replicas that have no device, and where `routes` share links no link, in common.
std::vector<Replicas> sets_of(const Plan& plan, const ReplicaRoutes& routes, bool shares_links) {
  const int replicas = plan.stages.front().replicas();
  DisjointSets joined(replicas);
  std::map<DeviceId, int> first;
  for (const Stage& stage : plan.stages)
    for (int r = 0; r < replicas; ++r) {
      const auto [user, is_new] = first.try_emplace(stage.leaders[r], r);
      if (!is_new) joined.join(user->second, r);
    }
  if (shares_links) routes.join_by_links(joined);
  std::map<int, Replicas> sets;
  for (int r = 0; r < replicas; ++r) sets[joined.root(r)].push_back(r);
  std::vector<Replicas> result;
  for (auto& [root, set] : sets) result.push_back(std::move(set));
  std::sort(result.begin(), result.end());
  return result;
}

/// The device of the first set that does what each device does.
using Counterparts = std::map<DeviceId, DeviceId>;

/// Empty where some device has no counterpart.
Counterparts counterparts(const Plan& plan, const Cluster& cluster, const std::vector<Replicas>& sets) {
  Counterparts result;
  for (const Stage& stage : plan.stages)
    for (const Replicas& set : sets)
      for (std::size_t i = 0; i < set.size(); ++i) {
        const DeviceId device = stage.leaders[set[i]], twin = stage.leaders[sets.front()[i]];
        if (cluster.devices[device].type != cluster.devices[twin].type) return {};
        if (result.try_emplace(device, twin).first->second != twin) return {};
      }
  return result;
}

/// Keeps the devices of the first set in the groups of a sum. False where the groups do not meet the sets alike: then
/// the devices that stay would wait for others than their counterparts do.
bool keep_first_set(std::vector<std::vector<DeviceId>>& groups, const Counterparts& counterpart_of, std::size_t sets) {
  struct SumMembers {
    std::set<DeviceId> with;  ///< The counterparts of all members.
    std::size_t times = 0;
  };
  std::map<DeviceId, SumMembers> members_of;  // [device of the first set]: what it and its counterparts sum with.
  std::vector<std::vector<DeviceId>> retained;
  for (const std::vector<DeviceId>& group : groups) {
    std::set<DeviceId> with;
    std::vector<DeviceId> first;
    for (const DeviceId d : group) {
      const auto it = counterpart_of.find(d);
      if (it == counterpart_of.end()) return false;
      with.insert(it->second);
      if (it->second == d) first.push_back(d);
    }
    for (const DeviceId d : group) {
      SumMembers& members = members_of.try_emplace(counterpart_of.at(d), SumMembers{with, 0}).first->second;
      if (members.with != with) return false;
      ++members.times;
    }
    if (!first.empty() && first.size() != with.size()) return false;
    if (!first.empty()) retained.push_back(std::move(first));
  }
  groups = std::move(retained);
  return std::all_of(members_of.begin(), members_of.end(), [&](const auto& m) { return m.second.times == sets; });
}

/// The time of the rings of a sum on an idle network; nothing where they differ.
std::optional<Seconds> ring_time(const std::vector<std::vector<DeviceId>>& groups, Bytes bytes,
                                 const LinkCollectives& idle) {
  std::optional<Seconds> time;
  for (const std::vector<DeviceId>& group : groups) {
    const Seconds taken = idle.ring_time(group, bytes);
    if (time && *time != taken) return {};
    time = taken;
  }
  return time;
}

/// Prices a sum that would be played as messages, so that fewer members take as long as all.
bool price(Reduction& sum, const LinkCollectives* idle) {
  const auto is_priced = [&](std::optional<Seconds>& cost, Bytes bytes) {
    if (!cost && idle && !sum.scatters) cost = ring_time(sum.groups, bytes, *idle);
    return cost.has_value();
  };
  return sum.groups.empty() || (is_priced(sum.cost, sum.bytes) &&
                                std::all_of(sum.buckets.begin(), sum.buckets.end(),
                                            [&](ReductionBucket& b) { return is_priced(b.cost, b.bytes); }));
}

/// Leaves these replicas alone in a plan, and returns their costs.
StageCosts keep(Plan& plan, const StageCosts& costs, const Replicas& retained) {
  const int replicas = plan.stages.front().replicas(), count = static_cast<int>(retained.size());
  StageCosts few;
  for (const StageId s : plan.stages.ids()) {
    Stage& stage = plan.stages[s];
    std::vector<DeviceId> leaders;
    std::vector<StageCost> stage_costs;
    for (const int r : retained) {
      leaders.push_back(stage.leaders[r]);
      stage_costs.push_back(costs.at(s, r));
    }
    few.add(stage_costs);
    stage.leaders = std::move(leaders);
    stage.shape.degrees.replicas = count;
    stage.micro_batch_size = stage.micro_batch_size / replicas * count;
  }
  plan.mini_batch = plan.mini_batch / replicas * count;
  return few;
}

/// The device of each set in the place of each device of the first.
std::map<DeviceId, std::vector<DeviceId>> devices_of_sets(const Plan& plan, const std::vector<Replicas>& sets) {
  std::map<DeviceId, std::vector<DeviceId>> devices;
  for (const Stage& stage : plan.stages)
    for (std::size_t i = 0; i < sets.front().size(); ++i) {
      std::vector<DeviceId>& same = devices[stage.leaders[sets.front()[i]]];
      if (!same.empty()) continue;  // The device has several stages.
      for (const Replicas& set : sets) same.push_back(stage.leaders[set[i]]);
    }
  return devices;
}

/// fold_replicas() with Program::counterparts. Sums of gradients without a price are not folded without `idle`.
std::optional<std::pair<PlannedExperiment, std::map<DeviceId, std::vector<DeviceId>>>> fold(
    const PlannedExperiment& p, bool shares_links, const LinkCollectives* idle) {
  if (!may_fold(p)) return {};
  const ReplicaRoutes routes(p.plan, p.cluster());
  const std::vector<Replicas> sets = sets_of(p.plan, routes, shares_links);
  if (sets.size() < 2) return {};
  for (const Replicas& set : sets)
    if (set.size() != sets.front().size()) return {};
  if (!routes.are_alike(sets)) return {};
  const Counterparts counterpart_of = counterparts(p.plan, p.cluster(), sets);
  if (counterpart_of.empty()) return {};
  PlannedExperiment folded{p.experiment, p.plan, p.report, p.planning, {}};
  Plan& plan = folded.plan;
  for (Reduction& sum : plan.reductions)
    if (!price(sum, idle) || !keep_first_set(sum.groups, counterpart_of, sets.size())) return {};
  folded.costs = keep(plan, p.costs, sets.front());
  plan.copies *= static_cast<int>(sets.size());
  return std::pair(std::move(folded), devices_of_sets(p.plan, sets));
}

}  // namespace

std::optional<PlannedExperiment> fold_replicas(const PlannedExperiment& p, const LinkCollectives* idle) {
  auto folded = fold(p, !idle, idle);
  if (!folded) return {};
  return std::move(folded->first);
}

Schedule with_all_replicas(const Schedule& folded, const Plan& plan) {
  Schedule schedule = folded, rows = empty_schedule(plan);
  if (schedule.rank_of == rows.rank_of && schedule.ranks.size() == rows.ranks.size()) return schedule;
  schedule.ranks = std::move(rows.ranks);
  schedule.rank_of = std::move(rows.rank_of);
  for (const Stage& stage : plan.stages)
    schedule.ranks[schedule.rank(stage.leaders.front())] = folded.row(stage.leaders.front());
  return schedule;
}

CompiledExperiment compile_folded(const PlannedExperiment& p, const LinkCollectives* idle,
                                  const Schedule* known_order) {
  std::optional<PlannedExperiment> folded = fold_replicas(p, idle);
  return compile(folded ? std::move(*folded) : p, known_order);
}

CompiledExperiment compile_for_report(const PlannedExperiment& p, const std::string& backend) {
  const bool folds = backend == "ideal" || backend == "fluid";
  auto folded = folds ? fold(p, backend == "fluid", nullptr) : std::nullopt;
  if (!folded) return compile(p);
  CompiledExperiment c = compile(std::move(folded->first));
  c.program.counterparts = std::move(folded->second);
  copy_to_counterparts(c.program, c.program.memory);
  if (!c.program.group_sizes.empty()) copy_to_counterparts(c.program, c.program.group_sizes);
  c.schedule = with_all_replicas(c.schedule, p.plan);
  c.plan = p.plan;
  c.costs = p.costs;
  return c;
}

}  // namespace stagecraft
