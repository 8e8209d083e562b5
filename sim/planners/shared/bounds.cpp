// Lower bounds on the time of every plan on some devices, for the column `room` of `plan`, for `search`, and for
// planners whose search is a heuristic.

#include "sim/planners/shared/bounds.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "sim/core/diagnostic.hpp"
#include "sim/core/numbers.hpp"
#include "sim/planners/chain_partition/mixed.hpp"
#include "sim/planners/chain_partition/planning.hpp"

namespace stagecraft::bounds {
namespace {

constexpr int kMostCuts = 3000;
constexpr int kAllSizes = 256;
constexpr double kMostSteps = 1e8;  // Some seconds.

/// An expert alone on its device is a product like any other, which may take less time than its part of a grouped one.
/// The exchanges that this needs only add to it.
void take_lone_experts(const BoundQuery& q, LayerId id, DeviceTypeId type, const Load& load, LayerCost& cost) {
  StageShape shape;
  for (const Operation& op : q.costs.model().layers[id].operations)
    shape.degrees.expert = std::max(shape.degrees.expert, op.experts);
  if (shape.degrees.expert <= 1 || !q.costs.has_shapes(id, shape, type, load)) return;
  const EachPass<PassCost> lone = q.costs.passes(id, shape, type, load);
  cost.forward = std::min(cost.forward, lone.forward.time.other);
  cost.input_gradient = std::min(cost.input_gradient, lone.input_gradient.time.other);
  cost.weight_gradient = std::min(cost.weight_gradient, lone.weight_gradient.time.other);
  cost.joint_saving =
      std::max(cost.joint_saving, cost.input_gradient + cost.weight_gradient - lone.backward.time.other);
}

LayerCost cost_of(const BoundQuery& q, int layer, DeviceTypeId type, double samples) {
  const Load load = q.costs.load_of(samples);
  LayerCost cost = q.costs.at(LayerId{layer}, type, load);
  take_lone_experts(q, LayerId{layer}, type, load, cost);
  if (!q.trains) cost.input_gradient = cost.weight_gradient = {};
  return cost;
}

double seconds_of(const LayerCost& cost) { return (cost.forward + cost.backward()).value; }

int layers_of(const BoundQuery& q) { return static_cast<int>(q.costs.model().layers.size()); }

/// What the replica with the largest share, or with the smallest one, may have of a micro-batch.
enum class Replica { Largest, Smallest };

/// The least of an amount of a layer, over all types and numbers of replicas.
template <class Amount>
double least_of(const BoundQuery& q, const chain_partition::Types& types, int layer, Replica replica,
                const Amount& amount) {
  std::set<int> shares;
  for (int r = 1; r <= std::min(static_cast<int>(q.devices.size()), q.micro_batch); ++r)
    shares.insert((q.micro_batch + (replica == Replica::Largest ? r - 1 : 0)) / r);
  double smallest = kInfinity;
  for (const DeviceTypeId type : types.types)
    for (const int samples : shares) smallest = std::min(smallest, amount(cost_of(q, layer, type, samples)));
  return smallest;
}

/// Numbers of samples of a micro-batch that a replica may have; for a large micro-batch only equal shares.
std::set<int> samples_at_once(const BoundQuery& q) {
  std::set<int> sizes;
  for (int s = 1; s <= std::min(q.micro_batch, kAllSizes); ++s) sizes.insert(s);
  for (int r = 1; r <= std::min(static_cast<int>(q.devices.size()), q.micro_batch); ++r)
    sizes.insert({q.micro_batch / r, (q.micro_batch + r - 1) / r});
  return sizes;
}

/// Seconds that a layer adds to the path of a micro-batch forward and back. With split backwards the weight gradient is
/// not on that path, and the forward and the backward of the layer may be on different devices.
double round_trip(const BoundQuery& q, const chain_partition::Types& types, int layer) {
  const auto smallest = [&](const auto& amount) { return least_of(q, types, layer, Replica::Smallest, amount); };
  if (!q.split_backward) return smallest(seconds_of);
  return smallest([](const LayerCost& c) { return c.forward.value; }) +
         smallest([](const LayerCost& c) { return c.input_gradient.value; });
}

/// Longest path of a sample to the end of each layer and back, in replicas of any shares.
std::vector<double> ways_to(const BoundQuery& q, const chain_partition::Types& types) {
  std::vector<double> ways;
  for (int l = 0; l < layers_of(q); ++l) {
    double before = 0;
    for (const LayerId input : q.costs.model().layers[LayerId{l}].inputs) before = std::max(before, ways[input.value]);
    ways.push_back(before + round_trip(q, types, l));
  }
  return ways;
}

/// Sum over layers of their price on the type where each costs least.
double least_price(const std::vector<std::vector<double>>& seconds, const std::vector<double>& price) {
  double sum = 0;
  for (std::size_t l = 0; l < seconds.front().size(); ++l) {
    double cheapest = kInfinity;
    for (std::size_t t = 0; t < seconds.size(); ++t) cheapest = std::min(cheapest, price[t] * seconds[t][l]);
    sum += cheapest;
  }
  return sum;
}

/// Moves price[a] and price[b] to the largest bound along the line on which the price of all devices stays the same.
void balance(const std::vector<std::vector<double>>& seconds, const std::vector<int>& counts, std::size_t a,
             std::size_t b, std::vector<double>& price) {
  const double together = counts[a] * price[a] + counts[b] * price[b];
  const auto value = [&](double share) {
    price[a] = share * together / counts[a], price[b] = (1 - share) * together / counts[b];
    return least_price(seconds, price);
  };
  double low = 0, high = 1;  // The value is concave in the share.
  for (int round = 0; round < 100; ++round) {
    const double left = low + (high - low) / 3, right = high - (high - low) / 3;
    if (value(left) < value(right))
      low = left;
    else
      high = right;
  }
  value((low + high) / 2);
}

double at_prices(const std::vector<std::vector<double>>& seconds, const std::vector<int>& counts,
                 const std::vector<double>& price) {
  double total = 0;
  for (std::size_t t = 0; t < counts.size(); ++t) total += counts[t] * price[t];
  return least_price(seconds, price) / total;
}

/// Seconds of the layers between two cuts as a stage, from below.
class StageTimes {
 public:
  StageTimes(const BoundQuery& q, const chain_partition::Types& types, const chain_partition::Cuts& cuts)
      : q_(q), types_(types), cuts_(cuts) {}

  double seconds(int from, int to, const DeviceMix& mix) {
    const int b = q_.micro_batch, r = mix.devices;
    double in_turn = 0, slowest = 0, fastest = kInfinity;
    for (std::size_t t = 0; t < types_.types.size(); ++t) {
      if (!(mix.types >> t & 1)) continue;
      in_turn = std::max(in_turn, between(t, b, from, to) / r);
      if (r > b) continue;
      slowest = std::max(slowest, between(t, b / r, from, to));
      fastest = std::min(fastest, between(t, (b + r - 1) / r, from, to));
    }
    return r > b ? in_turn : std::min(in_turn, std::max(slowest, fastest));
  }

 private:
  double between(std::size_t type, int samples, int from, int to) {
    const std::vector<double>& sums = sums_of(type, samples);
    return std::max(0.0, sums[to] - sums[from]);
  }

  const std::vector<double>& sums_of(std::size_t type, int samples) {
    std::vector<double>& sums = sums_[{type, samples}];
    if (!sums.empty()) return sums;
    std::vector<double> each;
    for (int l = 0; l < layers_of(q_); ++l) each.push_back(seconds_of(cost_of(q_, l, types_.types[type], samples)));
    for (int cut = 0; cut < cuts_.count(); ++cut) {
      double sum = 0;
      for (int l = 0; l < layers_of(q_); ++l) sum += cuts_.has(cut, l) ? each[l] : 0;
      sums.push_back(sum * (1 - 1e-12));  // A difference of sums is not rounded above the sum of the difference.
    }
    return sums;
  }

  const BoundQuery& q_;
  const chain_partition::Types& types_;
  const chain_partition::Cuts& cuts_;
  std::map<std::pair<std::size_t, int>, std::vector<double>> sums_;
};

bool too_long(const chain_partition::Cuts& cuts, const std::vector<int>& counts) {
  double stages = 0, pairs = 1;
  for (const int n : counts) pairs *= (n + 1.0) * (n + 2) / 2;
  for (int to = 1; to < cuts.count(); ++to)
    for (int from = 0; from < to; ++from) stages += cuts.contains(to, from);
  return stages * pairs > kMostSteps;
}

/// The longest way from the first layers to a stage.
double way_in_front(const chain_partition::Cuts& cuts, const Digraph& graph, const std::vector<double>& ways, int from,
                    int to) {
  double longest = 0;
  for (const int layer : cuts.layers_between(from, to))
    for (const int input : graph.previous[layer])
      if (cuts.has(from, input)) longest = std::max(longest, ways[input]);
  return longest;
}

}  // namespace

double shared_work(const std::vector<std::vector<double>>& seconds, const std::vector<int>& counts) {
  std::vector<double> price;  // Start: the whole model costs the same on each type.
  for (const std::vector<double>& layer_seconds : seconds) {
    double total = 0;
    for (const double s : layer_seconds) total += s;
    if (total <= 0) return 0;
    price.push_back(1 / total);
  }
  double best = at_prices(seconds, counts, price);
  for (int round = 0; round < 20 && seconds.size() > 1; ++round) {
    for (std::size_t a = 0; a < seconds.size(); ++a)
      for (std::size_t b = a + 1; b < seconds.size(); ++b) balance(seconds, counts, a, b, price);
    const double better = at_prices(seconds, counts, price);
    if (better <= best * (1 + 1e-9)) return std::max(best, better);
    best = better;
  }
  return best;
}

namespace {

/// [type][layer] Least seconds of a layer for a micro-batch, with any number of its samples at once.
std::vector<std::vector<double>> seconds_by_type(const BoundQuery& q, const chain_partition::Types& types) {
  std::vector<std::vector<double>> seconds;
  for (const DeviceTypeId type : types.types) {
    seconds.emplace_back();
    for (int l = 0; l < layers_of(q); ++l) {
      double rate = kInfinity;
      for (const int s : samples_at_once(q)) rate = std::min(rate, seconds_of(cost_of(q, l, type, s)) / s);
      seconds.back().push_back(rate * q.micro_batch);
    }
  }
  return seconds;
}

}  // namespace

Bound work(const BoundQuery& q) {
  const chain_partition::Types types = chain_partition::types_of(q.costs.cluster(), q.devices);
  return {{shared_work(seconds_by_type(q, types), types.counts())},
          types.mixed() ? "all work shared as evenly as the devices allow" : "all work shared evenly"};
}

double least_price(const BoundQuery& q, const IdVector<DeviceTypeId, double>& prices) {
  const chain_partition::Types types = chain_partition::types_of(q.costs.cluster(), q.devices);
  std::vector<double> price;
  for (const DeviceTypeId type : types.types) price.push_back(prices[type]);
  return least_price(seconds_by_type(q, types), price);
}

Bound longest(const BoundQuery& q) {
  const chain_partition::Types types = chain_partition::types_of(q.costs.cluster(), q.devices);
  double slowest = 0;
  for (int l = 0; l < layers_of(q); ++l) {
    const auto operation = [](const LayerCost& c) {
      return std::max({c.forward, c.input_gradient, c.weight_gradient}).value;
    };
    double layer_time = least_of(q, types, l, Replica::Largest, operation), in_turn = kInfinity;
    for (const DeviceTypeId type : types.types)
      in_turn = std::min(in_turn, operation(cost_of(q, l, type, q.micro_batch)));
    slowest = std::max(slowest, std::min(layer_time, in_turn / static_cast<double>(q.devices.size())));
  }
  return {{slowest}, "the longest layer alone"};
}

Bound path(const BoundQuery& q) {
  const chain_partition::Types types = chain_partition::types_of(q.costs.cluster(), q.devices);
  std::vector<double> after(layers_of(q), 0);  // Longest path from the end of each layer to the end and back.
  double longest = 0;
  for (int l = layers_of(q) - 1; l >= 0; --l) {
    const double way = after[l] + round_trip(q, types, l);
    const auto apart = [](const LayerCost& c) { return c.weight_gradient.value; };
    longest = std::max(longest, way + (q.split_backward ? least_of(q, types, l, Replica::Smallest, apart) : 0));
    for (const LayerId input : q.costs.model().layers[LayerId{l}].inputs)
      after[input.value] = std::max(after[input.value], way);
  }
  return {{longest / q.micro_batches}, "one micro-batch alone, forward and back"};
}

std::optional<Bound> stages(const BoundQuery& q, bool flushed) {
  const bool filled = flushed && !q.split_backward;
  const chain_partition::Types types = chain_partition::types_of(q.costs.cluster(), q.devices);
  const Digraph graph = chain_partition::layer_graph(q.costs.model());
  std::optional<chain_partition::Cuts> cuts;
  try {
    cuts = chain_partition::all_cuts(graph, kMostCuts);
  } catch (const Infeasible&) {
    return std::nullopt;
  }
  if (too_long(*cuts, types.counts())) return std::nullopt;
  const std::vector<double> ways = filled ? ways_to(q, types) : std::vector<double>();
  StageTimes times(q, types, *cuts);
  std::pair<int, int> previous{-1, -1};
  double in_front = 0;
  const auto seconds = [&](int from, int to, const DeviceMix& mix, int) {
    if (filled && previous != std::pair{from, to})
      previous = {from, to}, in_front = way_in_front(*cuts, graph, ways, from, to) / q.micro_batches;
    return times.seconds(from, to, mix) + in_front;
  };
  const auto pipeline =
      chain_partition::search_mixed(*cuts, types.counts(), static_cast<int>(q.devices.size()), false, seconds);
  STAGECRAFT_CHECK(pipeline.has_value());
  return Bound{{pipeline->seconds}, filled ? "the best stages, with the way to the slowest" : "the best stages"};
}

Kind kind_of(const Plan& plan, bool flushed) {
  std::set<DeviceId> used;
  Kind kind{plan.has_whole_stages(), flushed};
  for (const Stage& stage : plan.stages) {
    kind.divided |= stage.shape.degrees.divides();
    kind.whole_stages &=
        stage.micros.empty() && !kind.divided && stage.micro_batch_size == plan.stages.front().micro_batch_size;
    for (const DeviceId device : stage.leaders) kind.whole_stages &= used.insert(device).second;
  }
  return kind;
}

Bound best(const BoundQuery& q, const Kind& kind) {
  std::vector<Bound> candidates{work(q), longest(q)};
  if (kind.flushed && !kind.divided) candidates.push_back(path(q));
  if (kind.whole_stages)
    if (const auto whole = stages(q, kind.flushed)) candidates.push_back(*whole);
  return *std::max_element(candidates.begin(), candidates.end(),
                           [](const Bound& a, const Bound& b) { return a.each < b.each; });
}

const Bound& BoundCache::best(const BoundQuery& q, const Kind& kind) {
  const Key key{q.devices,        q.micro_batch,     q.micro_batches, q.trains,
                q.split_backward, kind.whole_stages, kind.flushed,    kind.divided};
  const auto it = known_.find(key);
  return it != known_.end() ? it->second : known_.emplace(key, bounds::best(q, kind)).first->second;
}

}  // namespace stagecraft::bounds
