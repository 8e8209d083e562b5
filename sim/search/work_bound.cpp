// Lower bounds on the period and memory of a plan, before and after it is made, by which a search orders its tasks.

#include "sim/search/work_bound.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <set>

#include <fmt/core.h>

#include "sim/core/numbers.hpp"
#include "sim/cost/stage_cost.hpp"
#include "sim/plan/overlap.hpp"
#include "sim/planners/shared/bounds.hpp"
#include "sim/planners/shared/group.hpp"

namespace stagecraft {
namespace {

Seconds backward_of(const OpTimes& t) { return std::min(t.backward, t.input_gradient + t.weight_gradient); }

/// The fastest times that a micro-batch spends on stages, and the fastest update.
struct StageTimes {
  Seconds forward, whole_backward, input_gradient, update;
};

/// Any micro-batch may be the first or the last, so where they differ the one with the least load counts; empty ones
/// are none.
StageTimes fastest_replica(const PlannedExperiment& p, StageId s) {
  StageTimes fastest{Seconds{kInfinity}, Seconds{kInfinity}, Seconds{kInfinity}, Seconds{kInfinity}};
  const int classes = static_cast<int>(p.plan.loads.classes.size());
  for (int r = 0; r < std::ssize(p.plan.stage(s).leaders); ++r)
    for (int load = classes > 0 ? 0 : LoadTable::kMean; load < classes; ++load) {
      if (load >= 0 && p.plan.loads.classes[load].samples == 0) continue;
      const OpTimes t = least_times(p.costs.at(s, r, load));
      fastest.forward = std::min(fastest.forward, t.forward);
      fastest.whole_backward = std::min(fastest.whole_backward, backward_of(t));
      fastest.input_gradient = std::min({fastest.input_gradient, t.input_gradient, backward_of(t)});
      fastest.update = std::min(fastest.update, t.update);
    }
  return fastest;
}

/// The least load of a micro-batch of a replica: what a message of a sample has at least.
Load least_message(const Plan& plan, const StageEdge& edge) {
  std::optional<Load> smallest;
  for (const Load& load : plan.loads.classes)
    if (load.samples > 0 && (!smallest || edge.bytes_of(1, load) < edge.bytes_of(1, *smallest))) smallest = load;
  return smallest.value_or(Load{});
}

/// Whether replicas have different numbers of packs.
bool has_empty_packs(const Plan& plan) {
  return std::any_of(plan.loads.classes.begin(), plan.loads.classes.end(),
                     [](const Load& load) { return load.samples == 0; });
}

/// The costs of the micro-batches of a replica, and how many of an iteration have each, in the mean of the iterations.
/// A sum over them holds also where costs are no linear function of loads.
std::vector<std::pair<const StageCost*, double>> costs_of(const PlannedExperiment& p, StageId s, int replica) {
  const double count = p.plan.micro_batches_per_replica(s);
  const LoadTable& loads = p.plan.loads;
  if (loads.empty()) return {{&p.costs.at(s, replica), count}};
  const auto micro_batches = static_cast<std::int64_t>(loads.class_of.size()) / loads.replicas;
  std::vector<double> counts(loads.classes.size(), 0);
  for (std::int64_t micro = 0; micro < micro_batches; ++micro) ++counts[loads.at(micro, replica)];
  std::vector<std::pair<const StageCost*, double>> costs;
  for (std::size_t c = 0; c < counts.size(); ++c)
    costs.emplace_back(&p.costs.at(s, replica, static_cast<int>(c)),
                       counts[c] * count / static_cast<double>(micro_batches));
  return costs;
}

/// The costs of the micro-batch of a replica which needs most memory.
const StageCost& largest_cost(const PlannedExperiment& p, StageId s, int replica) {
  const StageCost* largest = nullptr;
  for (const auto& [cost, count] : costs_of(p, s, replica))
    if (count > 0 && (!largest || cost->memory.whole_stash() > largest->memory.whole_stash())) largest = cost;
  return largest ? *largest : p.costs.at(s, replica);
}

/// What the weight gradients of an iteration take at least after the gradients of the inputs.
Seconds weight_gradients_of(const PlannedExperiment& p, StageId s, int replica) {
  Seconds sum;
  for (const auto& [cost, count] : costs_of(p, s, replica)) {
    const OpTimes t = least_times(*cost);
    sum += count * std::max(Seconds{0}, backward_of(t) - t.input_gradient);
  }
  return sum;
}

/// What one device does in an iteration.
struct DeviceLoad {
  Seconds work, weight_gradients, updates;
  Seconds instructions;  ///< Work without the collectives that are instructions, in which the device draws full power.
  Bytes resident, in_use, largest_turn;
  /// Bytes times seconds that stashes of an iteration are in use, in orders with whole and with split backwards.
  double held_whole = 0, held_split = 0;
  Seconds first_weight_gradients;  ///< The weight gradients of its first stage.
  /// From the last gradient of its first stage to the next forward of it: for an order with whole backwards, from the
  /// last gradient of the input with split ones, and of the weights for its own sum and update.
  Seconds wait_whole, wait_split, own_sum;
  int members = 1;  ///< Devices of the group that it stands for.
  bool used = false;
};

/// Whether the bound with waits holds: a chain in one direction, in which every replica has a part of each micro-batch.
bool has_waits(const PlannedExperiment& p) {
  if (!p.experiment.schedule.flushes() || !p.plan.has_whole_stages()) return false;
  for (const StageId s : p.plan.stages.ids()) {
    const Stage& stage = p.plan.stage(s);
    if (stage.twin.valid() || stage.turns() > 1 || !stage.micros.empty()) return false;
    if (stage.micro_batch_size != p.plan.stages.front().micro_batch_size) return false;
  }
  std::vector<std::pair<int, int>> chain;
  for (const StageEdge& e : p.plan.edges)
    if (e.to.value == e.from.value + 1) chain.emplace_back(e.from.value, e.to.value);
  std::sort(chain.begin(), chain.end());
  chain.erase(std::unique(chain.begin(), chain.end()), chain.end());
  return static_cast<int>(chain.size()) == p.plan.stage_count() - 1;
}

void add_stage(const PlannedExperiment& p, StageId s, IdVector<DeviceId, DeviceLoad>& loads) {
  const Stage& stage = p.plan.stage(s);
  // One recomputing stage at a time has all of its stash, only one of two copies may have a micro-batch, and the stash
  // of another stage may be in host memory.
  const std::optional<Offload>& offload = p.experiment.plan.offload;
  const bool in_turn = stage.shape.recomputes_all() || stage.twin.valid() || (offload && offload->moves_stashes());
  for (std::size_t r = 0; r < stage.leaders.size(); ++r) {
    const StageCost& c = p.costs.at(s, static_cast<int>(r));
    DeviceLoad& load = loads[stage.leaders[r]];
    load.used = true;
    load.members = stage.shape.degrees.group();
    const auto passes_of = [&](const OpTimes& t) {
      const Seconds again = stage.shape.recomputes_all() ? t.recompute : Seconds{0};
      return t.forward + backward_of(t) + again;
    };
    Seconds passes, instructions;
    for (const auto& [cost, count] : costs_of(p, s, static_cast<int>(r))) {
      passes += count * passes_of(least_times(*cost));
      instructions += count * passes_of(times_in_op(*cost));
    }
    const Seconds update = least_times(c).update;
    load.work += passes + update;
    load.instructions += instructions + times_in_op(c).update;
    load.updates += update;
    load.weight_gradients += weight_gradients_of(p, s, static_cast<int>(r));
    const MemoryUnits& units = largest_cost(p, s, static_cast<int>(r)).memory;
    const StageMemory memory = stage_memory(units, in_turn ? 0 : 1);
    load.resident += memory.resident(), load.in_use += memory.resident() + memory.stash;
    if (in_turn) load.largest_turn = std::max(load.largest_turn, units.whole_stash());
  }
}

/// What the sum of the gradients of the replicas of each stage takes after the last of them, on an idle network; zero
/// where it depends on other messages.
IdVector<StageId, Seconds> gradient_sums(const PlannedExperiment& p, const LinkCollectives& links) {
  IdVector<StageId, Seconds> sums(p.plan.stages.size());
  if (!p.cluster().changes.empty()) return sums;
  for (const Reduction& r : p.plan.reductions) {
    const StageId s = r.stages.front();
    const bool is_played = p.costs.at(s, 0).written() == Written::All;
    const bool has_all = r.groups.size() == 1 && r.groups.front().size() == p.plan.stage(s).leaders.size();
    if (r.source != ReductionSource::Replicas || r.stages.size() != 1 || is_played || !has_all) continue;
    if (!r.buckets.empty()) continue;  // They run next to the last backward.
    if (r.cost)
      sums[s] += *r.cost;
    else if (!r.scatters)
      sums[s] += links.ring_time(r.groups.front(), r.bytes);
  }
  return sums;
}

/// The shortest times of messages between a stage and the one in front of it, of two replicas that share samples.
struct BoundaryTimes {
  Seconds round_trip;  ///< A gradient of a micro-batch forward in the chain, and an activation back.
  Seconds in_turn;     ///< The messages of all micro-batches in one direction one after another, and one in the other.
};

/// [stage] Zero where members of a group send separate messages.
IdVector<StageId, BoundaryTimes> boundary_times(const PlannedExperiment& p, const LinkCollectives& links) {
  constexpr int kMostReplicas = 32;  // More routes take longer to look up than their times save.
  IdVector<StageId, BoundaryTimes> times(p.plan.stages.size());
  if (!p.cluster().changes.empty()) return times;
  for (const StageEdge& edge : p.plan.edges) {
    if (edge.to.value != edge.from.value + 1) continue;
    const Stage &from = p.plan.stage(edge.from), &to = p.plan.stage(edge.to);
    if (p.costs.at(edge.to, 0).written() == Written::All) continue;
    if (from.leaders.size() + to.leaders.size() > kMostReplicas) continue;
    // A device sends one message at a time only if it is told to.
    const Load min_load = least_message(p.plan, edge);
    const bool sends_all = p.experiment.run.lowering.fifo_sends && !has_empty_packs(p.plan);
    const int in_a_row = sends_all ? p.plan.micro_batches(edge.to) : 1;
    BoundaryTimes shortest{Seconds{kInfinity}, Seconds{kInfinity}};
    for (int r = 0; r < static_cast<int>(from.leaders.size()); ++r)
      for_each_overlap(from, 0, r, to, [&](int, int other, int samples) {
        const DeviceId a = from.leaders[r], b = to.leaders[other];
        const Bytes bytes{std::floor(edge.bytes_of(samples, min_load) + 0.5)};
        const Seconds there = links.message_time(a, b, bytes), back = links.message_time(b, a, bytes);
        shortest.round_trip = std::min(shortest.round_trip, there + back);
        shortest.in_turn = std::min(shortest.in_turn, std::max(in_a_row * there + back, there + in_a_row * back));
      });
    if (shortest.in_turn.value == kInfinity) continue;
    times[edge.to].round_trip = std::max(times[edge.to].round_trip, shortest.round_trip);
    times[edge.to].in_turn = std::max(times[edge.to].in_turn, shortest.in_turn);
  }
  return times;
}

/// Adds how long the stashes of each stage are in use: a micro-batch goes to the end of the chain and back. The product
/// of means is no bound on bytes times seconds, so micro-batches that differ add nothing, nor do stashes that go to
/// host memory between.
void add_stashes(const PlannedExperiment& p, const IdVector<StageId, BoundaryTimes>& messages,
                 IdVector<DeviceId, DeviceLoad>& loads) {
  if (!p.plan.loads.empty() || p.experiment.plan.offload) return;
  Seconds whole, split;  // From the end of the forward of a stage to the start of its backward.
  for (int last = p.plan.stage_count() - 1; last >= 0; --last) {
    const StageId s{last};
    const Stage& stage = p.plan.stage(s);
    for (std::size_t r = 0; r < stage.leaders.size(); ++r) {
      const StageCost& c = p.costs.at(s, static_cast<int>(r));
      const OpTimes t = least_times(c);
      const double stashes = p.plan.micro_batches_per_replica(s) * c.memory.stash.value;
      DeviceLoad& load = loads[stage.leaders[r]];
      load.held_whole += stashes * (t.forward + whole + backward_of(t)).value;
      load.held_split += stashes * (t.forward + split + std::min(t.input_gradient, backward_of(t))).value;
    }
    const StageTimes fastest = fastest_replica(p, s);
    whole += fastest.forward + fastest.whole_backward + messages[s].round_trip;
    split += fastest.forward + fastest.input_gradient + messages[s].round_trip;
  }
}

/// Bounds on the period for orders with whole and with split backwards.
struct ChainBound {
  Seconds whole, split;
};

/// Sets the waits of the devices, each from its first stage. Returns the bounds by the messages of each boundary.
ChainBound add_waits(const PlannedExperiment& p, const LinkCollectives& links, IdVector<DeviceId, DeviceLoad>& loads) {
  const IdVector<StageId, Seconds> sums = gradient_sums(p, links);
  const IdVector<StageId, BoundaryTimes> messages = boundary_times(p, links);
  ChainBound chain;
  Seconds whole, split;
  IdVector<DeviceId, char> seen(loads.size(), 0);
  for (const StageId s : p.plan.stages.ids()) {
    const StageTimes fastest = fastest_replica(p, s);
    if (s.value > 0) {
      const Seconds through = messages[s].in_turn + fastest.forward;
      chain.whole = std::max(chain.whole, whole + through + fastest.whole_backward);
      chain.split = std::max(chain.split, split + through + fastest.input_gradient);
    }
    whole += messages[s].round_trip, split += messages[s].round_trip;
    whole = std::max(whole, sums[s] + fastest.update), split = std::max(split, sums[s] + fastest.update);
    const Stage& stage = p.plan.stage(s);
    for (std::size_t r = 0; r < stage.leaders.size(); ++r) {
      const DeviceId d = stage.leaders[r];
      if (seen[d] != 0) continue;
      seen[d] = 1;
      const OpTimes t = least_times(p.costs.at(s, static_cast<int>(r)));
      loads[d].wait_whole = whole, loads[d].wait_split = split, loads[d].own_sum = sums[s] + t.update;
      loads[d].first_weight_gradients = weight_gradients_of(p, s, static_cast<int>(r));
    }
    whole += fastest.forward + fastest.whole_backward;
    split += fastest.forward + fastest.input_gradient;
  }
  add_stashes(p, messages, loads);
  return chain;
}

}  // namespace

PlanBound plan_bound(const PlannedExperiment& p, const LinkCollectives& links) {
  IdVector<DeviceId, DeviceLoad> loads(p.cluster().devices.size());
  for (const StageId s : p.plan.stages.ids()) add_stage(p, s, loads);
  PlanBound bound;
  if (has_waits(p)) {
    const ChainBound chain = add_waits(p, links, loads);
    bound.period = chain.split, bound.unsplit = chain.whole;
  }
  for (const DeviceId d : loads.ids()) {
    const DeviceLoad& load = loads[d];
    if (!load.used) continue;
    const Seconds late = load.weight_gradients + load.updates;
    const Seconds other = late - load.first_weight_gradients;
    const Seconds split =
        std::max(load.work - late + std::max(late, load.wait_split), load.work - other + std::max(other, load.own_sum));
    bound.work = std::max(bound.work, load.work);
    bound.work_of_type[p.cluster().devices[d].type] += load.members * load.instructions;
    bound.period = std::max(bound.period, split);
    bound.unsplit =
        std::max({bound.unsplit, split, load.work - load.updates + std::max(load.updates, load.wait_whole)});
    const Bytes in_use = load.in_use + load.largest_turn, there = p.cluster().type_of(d).usable_memory();
    if (there > load.resident) {
      const double room = (there - load.resident).value;
      bound.period = std::max(bound.period, Seconds{load.held_split / room} + load.own_sum);
      bound.unsplit = std::max(bound.unsplit, Seconds{load.held_whole / room} + load.own_sum);
    }
    bound.memory = std::max(bound.memory, in_use);
    if (there.value > 0 && in_use > there) bound.fits = false;
  }
  return bound;
}

namespace {

/// Samples of a micro-batch that the replica with the fewest has, or with `of_largest` the one with the most.
int samples_of_replica(const PlanSpec& spec, bool of_largest) {
  if (spec.share == Share::MicroBatches) return spec.micro_batch_size;
  const int replicas = std::max(1, spec.replicas);
  return std::max(1, (spec.micro_batch_size + (of_largest ? replicas - 1 : 0)) / replicas);
}

/// Counts the ranks by the type of their first device, and says whether some rank has devices of several types.
bool count_ranks(const Degrees& degrees, const std::vector<DeviceId>& devices, const Cluster& cluster,
                 std::vector<int>& counts) {
  if (cluster.types.size() == 1) {  // Without a look at each of many devices.
    counts.front() = degrees.pipeline;
    return false;
  }
  bool is_mixed = false;
  for (const std::vector<int>& rank : positions_of_ranks(degrees)) {
    const DeviceTypeId type = cluster.devices[devices[rank.front()]].type;
    ++counts[type.value];
    for (const int position : rank) is_mixed |= cluster.devices[devices[position]].type != type;
  }
  return is_mixed;
}

/// `launches` is what the host adds to all other times of a pass, so it falls as a collective gets longer, as between
/// devices on slower links. Where a pair of ops hides the collective, a bound of a plan that is not made may not count
/// it.
void leave_launches_out(StageCost& c) {
  if (c.written() != Written::Exchanges && c.written() != Written::Braided) return;
  EachPass<TimeByClass>& p = c.passes;
  for (TimeByClass* pass : {&p.forward, &p.input_gradient, &p.weight_gradient, &p.backward, &p.recompute})
    pass->launches = {};
}

/// Micro-batches that replicas run at the same time.
int turns_of(const PlanSpec& spec) { return spec.share == Share::MicroBatches ? std::max(1, spec.replicas) : 1; }

}  // namespace

Bytes WorkBound::resident(const PlanSpec& spec, int ranks) {
  const auto [entry, is_new] = resident_.try_emplace(fmt::format("{}{}", spec.replicas, group_text(spec)));
  if (!is_new) return entry->second;
  StageShape whole = spec.shape(ranks);                      // All layers in one stage.
  whole.reshard = whole.sharding == StateSharding::Weights;  // The framework may choose it, and less is kept then.
  for (const LayerId l : configured_.model().layers.ids()) whole.layers.push_back(l);
  const MemoryUnits units = resident_memory(whole, configured_.model(), configured_.experiment.software());
  return entry->second = units.weights + units.gradients + units.optimizer;
}

Bytes WorkBound::memory(const PlanSpec& spec, int ranks, const PackChoice& packs) {
  const Bytes states = resident(spec, ranks) * (1.0 / ranks);
  if (spec.offload && spec.offload->moves_stashes()) return states;  // Stashes may be in host memory.
  const Recomputation recomputation = spec.recompute.value_or(Recomputation::None);
  const auto tokens = [](const Load& load) { return load.samples * load.rows; };
  Load load = whole_samples(spec.micro_batch_size / std::max(1, spec.replicas));
  if (packs.packs) {
    load = whole_samples(0);
    for (const auto& [one, share] : mean_loads_of(spec, packs).shares)
      if (tokens(one) > tokens(load)) load = one;
  }
  const auto [entry, is_new] = stashes_.try_emplace({load, static_cast<int>(recomputation), group_text(spec)});
  // A stage that recomputes all keeps what enters it, which its layers do not say.
  if (is_new && recomputation != Recomputation::Full) {
    const Degrees degrees = spec.shape(ranks).degrees;
    const CostRules* const rules = configured_.experiment.rules.get();
    for (const LayerId l : configured_.model().layers.ids())
      entry->second += layer_memory(configured_.model(), l, recomputation, load, degrees, rules).stash;
  }
  return states + entry->second * (1.0 / ranks);
}

WorkBound::ReplicaLoads WorkBound::loads_of(const PlanSpec& spec, const PackChoice& packs, bool of_largest) const {
  const int samples = samples_of_replica(spec, of_largest);
  if (!packs.packs) return {samples, {{whole_samples(samples), 1}}};
  const int replica = of_largest ? largest_replica(*packs.packs) : 0;
  return {-3 * packs.loads - (of_largest ? 1 : 2),
          load_shares(*packs.packs, replica, tokens_of_sample(configured_.model()))};
}

WorkBound::ReplicaLoads WorkBound::mean_loads_of(const PlanSpec& spec, const PackChoice& packs) const {
  if (!packs.packs) return loads_of(spec, packs, /*of_largest=*/false);
  return {-3 * packs.loads, load_shares(*packs.packs, kAllReplicas, tokens_of_sample(configured_.model()))};
}

WorkBound::LayerKey WorkBound::layer_key(const PlanSpec& spec, int ranks, const ReplicaLoads& loads) {
  // Groups inside of a replica are where they are whatever comes after them; groups of replicas are not.
  const bool is_usual_order = spec.order.axes == RankOrder{}.axes;
  const bool counts = !is_usual_order || spec.shape(ranks).sums_each_pass();
  const std::string data_group =
      counts ? fmt::format(" x {} x {}", pluralize(spec.replicas, "replica"), pluralize(ranks, "rank")) : std::string();
  return {loads.number, static_cast<int>(spec.recompute.value_or(Recomputation::None)), group_text(spec) + data_group};
}

const WorkBound::LayerSeconds& WorkBound::layers(const PlanSpec& spec, int ranks, const ReplicaLoads& loads,
                                                 DeviceTypeId type) {
  LayerSeconds& cached = layers_[{layer_key(spec, ranks, loads), type}];
  if (!cached.lower_bound.empty()) return cached;
  LayerSeconds times;  // A layer that cannot be divided so ends this before anything is known.
  StageShape shape = spec.shape(ranks);
  shape.recomputation = spec.recompute.value_or(Recomputation::None);
  const auto seconds = [](const OpTimes& t) { return (t.forward + backward_of(t)).value; };
  const CostTable& costs = *configured_.experiment.costs;
  for (const LayerId l : configured_.model().layers.ids()) {
    if (const LayerId alike = costs.alike(l); alike != l) {
      times.lower_bound.push_back(times.lower_bound[alike.value]);
      times.instructions.push_back(times.instructions[alike.value]);
      continue;
    }
    double& lower_bound = times.lower_bound.emplace_back(0);
    double& instructions = times.instructions.emplace_back(0);
    for (const auto& [load, share] : loads.shares) {
      StageCost c = layer_cost(costs, shape, l, type, load);
      leave_launches_out(c);
      lower_bound += share * seconds(least_times(c));
      instructions += share * seconds(times_in_op(c));
    }
  }
  return cached = std::move(times);
}

double WorkBound::price(const PlanSpec& spec, int ranks, const std::vector<DeviceId>& devices,
                        const SearchObjective& objective, const PackChoice& packs) {
  const ReplicaLoads loads = mean_loads_of(spec, packs);
  std::set<DeviceTypeId> used;
  for (const DeviceId d : devices) used.insert(configured_.cluster().devices[d].type);
  std::vector<double> lowest_prices(configured_.model().layers.size(), kInfinity);
  for (const DeviceTypeId type : used) {
    const std::vector<double>& seconds = layers(spec, ranks, loads, type).instructions;
    for (std::size_t l = 0; l < lowest_prices.size(); ++l)
      lowest_prices[l] = std::min(lowest_prices[l], objective.work_price(type) * seconds[l]);
  }
  const double work = std::accumulate(lowest_prices.begin(), lowest_prices.end(), 0.0);
  return work * static_cast<double>(devices.size()) / (static_cast<double>(ranks) * turns_of(spec));
}

Seconds WorkBound::micro_batch(const PlanSpec& spec, int ranks, int copies, const std::vector<DeviceId>& devices,
                               const PackChoice& packs) {
  const Cluster& cluster = configured_.cluster();
  std::vector<int> counts(cluster.types.size());  // Ranks by the type of their first device.
  const bool mixed = count_ranks(spec.shape(ranks).degrees, devices, cluster, counts);
  // The first replica has the fewest samples; where all have one type, the one with the most counts.
  const ReplicaLoads loads = loads_of(spec, packs, /*of_largest=*/!mixed);
  const int turns = turns_of(spec);
  const auto [entry, is_new] = bounds_.try_emplace({layer_key(spec, ranks, loads), copies, counts});
  if (!is_new) return entry->second / turns;
  std::vector<std::vector<double>> seconds;
  std::vector<int> used;
  for (std::size_t t = 0; t < counts.size(); ++t) {
    if (counts[t] == 0) continue;
    seconds.push_back(layers(spec, ranks, loads, DeviceTypeId{t}).lower_bound);
    used.push_back(counts[t]);
  }
  double longest = 0;  // A layer is not split, but each of its copies has a part of the micro-batches.
  for (std::size_t l = 0; l < seconds.front().size(); ++l) {
    double fastest = kInfinity;
    for (const std::vector<double>& type : seconds) fastest = std::min(fastest, type[l]);
    longest = std::max(longest, fastest);
  }
  entry->second = Seconds{std::max(longest / copies, bounds::shared_work(seconds, used))};
  return entry->second / turns;
}

}  // namespace stagecraft
