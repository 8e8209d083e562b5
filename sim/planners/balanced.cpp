// The planner `balanced` cuts the layers, in the order of the model, into consecutive stages so that the slowest stage
// is as fast as it can be; where stages share devices, it then evens out the devices.
//
//   f[s][l] = min over j < l of max(f[s-1][j], cost of layers j..l-1 on the devices of stage s)
//
// The cost falls as j grows. f[s-1] need not rise with j (with unequal devices one layer more can be faster, since no
// stage may be empty), but a j with a later j' and f[j'] <= f[j] is never needed. The others form a stack on which f
// rises, so the best is where the two lines cross, found by bisection: O(stages * layers * log layers), exact.
// The problem is the "chains on chains" of Pinar and Aykanat, J. Parallel Distrib. Comput. 64 (2004), section 3.
//
// Where several stages share a device (loop, V, wave, both directions) the busiest device counts, not the slowest
// stage. From the exact division on, single boundaries, and runs of them, move as long as that makes the sorted list of
// device loads, busiest first, smaller (even_out.hpp). The result is a local optimum.

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "sim/core/common_unit.hpp"
#include "sim/core/diagnostic.hpp"
#include "sim/core/numbers.hpp"
#include "sim/core/text.hpp"
#include "sim/cost/stage_cost.hpp"
#include "sim/plan/overlap.hpp"
#include "sim/plan/vocabulary.hpp"
#include "sim/planners/shared/chain_stages.hpp"
#include "sim/planners/shared/even_out.hpp"
#include "sim/planners/shared/group.hpp"
#include "sim/planners/shared/planner.hpp"

namespace stagecraft::planners {
namespace {

const config::MapSpec kBalancedFields =
    chain_fields("Consecutive stages with the least time of the slowest one.",
                 config::integer("stages", 1, 1e6).or_field("pipeline").doc("Number of stages."));

constexpr Bytes kLargestTable{double(1 << 30)};

/// Layers that all stages divide take the same everywhere, so they count nothing.
std::vector<double> times_of(const PlannerInput& input, const StageShape& shape, DeviceTypeId type, const Load& load) {
  std::vector<double> times;
  std::vector<LayerId> divided;
  if (input.options.divides_vocabulary) divided = vocabulary_layers(input.model);
  std::map<LayerId, double> time_of;  // Most layers are alike.
  for (const LayerId i : input.model.layers.ids()) {
    if (std::find(divided.begin(), divided.end(), i) != divided.end()) {
      times.push_back(0);
      continue;
    }
    const auto [entry, is_new] = time_of.try_emplace(input.costs.alike(i));
    if (!is_new) {
      times.push_back(entry->second);
      continue;
    }
    const LayerCost cost = input.costs.at(i, shape, type, load);
    Seconds time = cost.forward + cost.backward();
    // Which layers are the first of a stage is not known yet; they are added once it is.
    if (input.trains && shape.recomputation != Recomputation::None && shape.recomputed_layers == 0)
      time += input.costs.passes(i, shape, type, load).recompute.time.total();
    times.push_back(entry->second = time.value);
  }
  return times;
}

/// The layers on one type of device with one number of samples.
struct LayersOnType {
  std::vector<double> times;  ///< Seconds.
  LayerSums seconds{0};       ///< For the report.
  LayerSums units{0};         ///< In the common unit of all types: what is compared.
};
using LayersByType = std::map<std::pair<DeviceTypeId, std::int64_t>, LayersOnType>;

void add_sums(LayersByType& by_type) {
  std::vector<double> times;
  for (const auto& [type, layers] : by_type) times.insert(times.end(), layers.times.begin(), layers.times.end());
  const CommonUnit unit(times);
  for (auto& [type, layers] : by_type)
    for (const double time : layers.times) {
      layers.seconds.push_back(layers.seconds.back() + time);
      layers.units.push_back(layers.units.back() + unit(time));
    }
}

class Partition {
 public:
  explicit Partition(int layers) : layers_(layers) {}

  /// Adds a stage that runs on devices with these sums.
  void add_stage(std::vector<const LayerSums*> replicas) {
    std::sort(replicas.begin(), replicas.end());
    replicas.erase(std::unique(replicas.begin(), replicas.end()), replicas.end());
    replicas_.push_back(std::move(replicas));
    const int s = static_cast<int>(best_.size());
    std::vector<double> best(layers_ + 1, kInfinity);
    std::vector<int> stack;  // Starts j worth trying, f[s-1][j] rising.
    for (int end = s + 1; end <= layers_; ++end) {
      push(stack, s, end - 1);
      best[end] = lowest(stack, s, end);
    }
    best_.push_back(std::move(best));
  }

  /// First layer of each stage; among equals the smallest, last stage first.
  std::vector<int> starts() const {
    std::vector<int> result(best_.size());
    int end = layers_;
    for (int s = static_cast<int>(best_.size()) - 1; s >= 0; --s) {
      const double target = best_[s][end];
      int start = s;
      while (value(s, start, end) > target) ++start;
      result[s] = end = start;
    }
    return result;
  }

 private:
  double before(int s, int j) const {
    if (s == 0) return j == 0 ? 0 : kInfinity;
    return best_[s - 1][j];
  }

  double cost(int s, int from, int to) const {
    double slowest = 0;
    for (const LayerSums* sums : replicas_[s]) slowest = std::max(slowest, (*sums)[to] - (*sums)[from]);
    return slowest;
  }

  double value(int s, int j, int end) const { return std::max(before(s, j), cost(s, j, end)); }

  void push(std::vector<int>& stack, int s, int j) const {
    while (!stack.empty() && before(s, stack.back()) >= before(s, j)) stack.pop_back();
    stack.push_back(j);
  }

  double lowest(const std::vector<int>& stack, int s, int end) const {
    const auto crossing =
        std::partition_point(stack.begin(), stack.end(), [&](int j) { return before(s, j) < cost(s, j, end); });
    double result = kInfinity;
    if (crossing != stack.end()) result = value(s, *crossing, end);
    if (crossing != stack.begin()) result = std::min(result, value(s, *(crossing - 1), end));
    return result;
  }

  int layers_;
  std::vector<std::vector<const LayerSums*>> replicas_;
  std::vector<std::vector<double>> best_;  ///< f[s][l], s counted from 0: stages 0..s take layers 0..l-1.
};

struct Division {
  std::vector<int> bounds;  ///< First layer of each stage, and the end.
  double busiest = 0, model_limit = 0;
  std::string limit_reason;
};

std::vector<int> first_layers(int layers, std::vector<std::vector<const LayerSums*>> sums) {
  Partition partition(layers);
  for (auto& stage : sums) partition.add_stage(std::move(stage));
  return partition.starts();
}

std::vector<int> one_layer_each(int count) {
  std::vector<int> starts(count);
  std::iota(starts.begin(), starts.end(), 0);
  return starts;
}

/// The part of the micro-batches of a stage that each of its replicas runs.
double micro_batch_part(const Plan& copies, StageId s) {
  return double(copies.micro_batches_per_replica(s)) / copies.micro_batches(s);
}

/// Each device's shares of the stages of `copies`, with its sums.
using DeviceShares = std::vector<std::vector<StageShare>>;

/// Calls visit(stage, device, its layers) for every replica of a stage.
template <class Visit>
void for_each_replica(const Plan& copies, const PlannerInput& input, LayersByType& by_type, const Visit& visit) {
  for (const StageId s : copies.stages.ids()) {
    const Stage& stage = copies.stage(s);
    for (std::size_t r = 0; r < stage.leaders.size(); ++r) {
      const DeviceId device = stage.leaders[r];
      const std::int64_t samples = samples_at_once(stage, static_cast<int>(r));
      visit(s.value, device, by_type[{input.cluster.devices[device].type, samples}], samples);
    }
  }
}

/// Adds the layers that run again to the load of each device, where these are only the first ones of each stage, so
/// that they are known once the layers are divided.
double busiest_with_first_layers_again(const Plan& copies, const PlannerInput& input, const Division& division,
                                       LayersByType& by_type, const DeviceShares& in_seconds) {
  const int count = static_cast<int>(division.bounds.size()) - 1;
  std::vector<double> loads;
  for (const std::vector<StageShare>& device : in_seconds) loads.push_back(load_of(device, division.bounds));
  for_each_replica(copies, input, by_type, [&](int s, DeviceId device, const LayersOnType&, std::int64_t samples) {
    StageShape shape = copies.stage(StageId{s}).shape;
    shape.layers.clear();
    for (int layer = division.bounds[s % count]; layer < division.bounds[s % count + 1]; ++layer)
      shape.layers.push_back(LayerId{layer});
    const LayerShapes shapes(shape, input.model);
    Seconds again;
    for (const LayerId id : shape.layers)
      if (shapes.runs_again(id))
        again += input.costs
                     .passes(id, shape, input.cluster.devices[device].type,
                             input.costs.load_of(static_cast<double>(samples)))
                     .recompute.time.total();
    loads[device.value] += again.value * micro_batch_part(copies, StageId{s});
  });
  return *std::max_element(loads.begin(), loads.end());
}

/// Divides the layers into `count` stages. `copies` has all copies of them: its stage s is a copy of stage s % count.
Division divide(const Plan& copies, int count, const PlannerInput& input) {
  const int layers = static_cast<int>(input.model.layers.size());
  LayersByType by_type;
  for_each_replica(copies, input, by_type, [&](int s, DeviceId device, LayersOnType& on_type, std::int64_t samples) {
    if (on_type.times.empty())
      on_type.times = times_of(input, copies.stage(StageId{s}).shape, input.cluster.devices[device].type,
                               input.costs.load_of(static_cast<double>(samples)));
  });
  add_sums(by_type);
  std::vector<std::vector<const LayerSums*>> sums(count);
  DeviceShares in_seconds(input.cluster.devices.size()), in_units(input.cluster.devices.size());
  bool shared = false;
  for_each_replica(copies, input, by_type, [&](int s, DeviceId device, const LayersOnType& on_type, std::int64_t) {
    const double part = micro_batch_part(copies, StageId{s});
    sums[s % count].push_back(&on_type.units);
    in_seconds[device.value].push_back({s % count, &on_type.seconds, part});
    in_units[device.value].push_back({s % count, &on_type.units, part});
    shared |= in_units[device.value].size() > 1;
  });
  Division division{layers == count ? one_layer_each(count) : first_layers(layers, std::move(sums)), 0, 0,
                    shared ? "all work shared evenly" : "the search was exhaustive"};
  division.bounds.push_back(layers);
  if (shared) even_out(division.bounds, in_units);
  division.busiest = largest_load(in_seconds, division.bounds);
  division.model_limit = shared ? least_load(in_seconds) : division.busiest;
  if (input.trains && copies.stages.front().shape.recomputed_layers > 0) {
    division.busiest = busiest_with_first_layers_again(copies, input, division, by_type, in_seconds);
    division.limit_reason = "no layer runs again";
  }
  return division;
}

/// What each rank takes for its part of the vocabulary.
Seconds scores_time(const Plan& plan, const PlannerInput& input) {
  if (!plan.vocabulary) return {};
  const Stage& first = plan.stages.front();
  const DeviceTypeId type = input.cluster.devices[first.leaders.front()].type;
  const StageCost part = *stage_cost(input.costs, first.shape, type, load_at_once(first, 0)).vocabulary;
  return part.forward + part.input_gradient + part.weight_gradient;
}

Planned plan_balanced(const PlannerInput& input) {
  const int count = *input.options.stages;
  const int layers = static_cast<int>(input.model.layers.size());
  ChainStages chain = place_chain(input, count);
  if (layers < count)
    throw Infeasible({input.options.where("stages"), "plan.stages",
                      fmt::format("{} need {} layers, but the model has {}", pluralize(count, "stage"), count, layers),
                      fmt::format("at most {}, or a model cut more finely", pluralize(layers, "stage")), "layers"});
  const Bytes table{static_cast<double>(count) * (layers + 1.0) * sizeof(double)};
  if (count < layers && table > kLargestTable)
    throw Infeasible(
        {input.options.where("stages"), "plan.stages",
         fmt::format("the search among {} and {} needs a table of {}; {} is the most", pluralize(count, "stage"),
                     pluralize(layers, "layer"), to_text(table), to_text(kLargestTable)),
         "fewer stages, or the planner 'explicit'", "size"});
  Plan copies = chain.plan;
  if (chain.both_ways) add_way_back(copies, chain.turn);
  const Division division = divide(copies, count, input);
  for (std::size_t s = 0; s < chain.plan.stages.size(); ++s)
    for (int layer = division.bounds[s]; layer < division.bounds[s + 1]; ++layer)
      chain.plan.stages[StageId{s}].shape.layers.push_back(LayerId{layer});
  Plan plan = finish_chain(std::move(chain), input);
  const Seconds scores = scores_time(plan, input);
  return {{.predicted = Seconds{division.busiest} + scores,
           .model_limit = Seconds{division.model_limit} + scores,
           .limit_reason = division.limit_reason},
          std::move(plan)};
}

}  // namespace

extern const PlannerDef balanced{
    .name = "balanced",
    .summary = "Consecutive stages in the order of the model that minimize the time of the slowest stage or device.",
    .source = "Pinar and Aykanat, JPDC 2004",
    .fields = &kBalancedFields,
    .plan = plan_balanced,
};

}  // namespace stagecraft::planners
