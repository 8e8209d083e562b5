// Cuts the layers, in the order of the model, into consecutive stages so that the slowest stage is as fast as it can
// be, and then as evenly over the devices.
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

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "sim/core/diagnostic.hpp"
#include "sim/core/numbers.hpp"
#include "sim/core/text.hpp"
#include "sim/cost/stage_cost.hpp"
#include "sim/plan/even_out.hpp"
#include "sim/plan/overlap.hpp"
#include "sim/plan/planner.hpp"

namespace stagecraft::planners {
namespace {

const config::MapSpec kFields{
    "Consecutive stages with the least time of the slowest one.",
    {config::integer("stages", 1, 1e6).doc("Number of stages."),
     config::choice("placement", std::vector<std::string>{"auto", "linear", "loop", "v", "wave"})
         .fallback("auto")
         .doc("Which device runs which stages. linear: one stage on each. loop: round-robin. v: forth over the devices "
              "and back once. wave: forth and back repeatedly. auto: the placement of the schedule, which may include "
              "a second copy of every stage in the opposite direction."),
     config::integer("replicas", 1, 1e6).fallback("1").doc("Devices of each stage."), share_field(),
     config::integer("micro_batch_size", 1, 1e6).fallback("1").doc("Samples of one micro-batch."), recompute_field(),
     config::list("devices", config::text("device"))
         .optional()
         .doc("Device names in the order of the stages; replicas of a stage are consecutive. Default: the order of the "
              "cluster."),
     config::boolean("sequential").fallback("false").doc("Whether parallel branches run one after the other.")}};

constexpr Bytes kLargestTable{double(1 << 30)};

LayerSums sums_of(const CostTable& costs, DeviceTypeId type, double samples, Recomputation recomputation) {
  LayerSums sums{0};
  for (const LayerId i : costs.model().layers.ids()) {
    const LayerCost cost = costs.at(i, type, samples);
    const Seconds time = cost.forward * (1 + recomputed_share(recomputation, cost)) + cost.backward();
    sums.push_back(sums.back() + time.value);
  }
  return sums;
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

/// The placement that was asked for, with as many stages on a device as it allows, or the schedule's own.
Placing placing_of(const PlannerInput& input) {
  const std::optional<Placement> asked = input.options.placement;
  Placing placing = input.placing;
  if (asked && *asked != placing.placement) placing = {*asked, chunks_of(*asked)};
  if (placing.placement != Placement::Bidirectional) return placing;
  if (input.micro_batches < 2)
    throw Infeasible("micro-batches",
                     "the schedule runs the model in both directions, but there is one micro-batch alone",
                     "at least 2 in run.micro_batches");
  placing.chunks = chunks_of(placing.placement);  // The stages of the model; their copies come with them.
  return placing;
}

[[noreturn]] void refuse(const PlannerInput& input, const Placing& placing, int stages, int replicas, int there) {
  const Where where = input.options.where("stages");
  const int per_device = placing.chunks.min;
  if (stages % per_device != 0)
    throw InputError({{where, "plan.stages",
                       fmt::format("the schedule wants {} on each device, and {} cannot be divided so", per_device,
                                   pluralize(stages, "stage")),
                       fmt::format("a multiple of {}", per_device), "placement"}});
  const std::string each = replicas == 1 ? "" : fmt::format(" of {} devices each", replicas);
  const std::int64_t needed = static_cast<std::int64_t>(stages) / per_device * replicas;
  throw Infeasible(
      {where, "plan.stages",
       fmt::format("{}{}{} need{} {}, but {} {}", pluralize(stages, "stage"), each,
                   per_device == 1 ? "" : fmt::format(", {} on each device,", per_device), stages == 1 ? "s" : "",
                   pluralize(needed, "device"), input.options.devices ? "the plan lists" : "the cluster has", there),
       fmt::format("at most {}, or {} more",
                   there < replicas ? pluralize(there, "replica") : pluralize(there / replicas * per_device, "stage"),
                   pluralize(needed - there, "device")),
       "devices"});
}

/// Devices of each rank; replicas are consecutive.
std::vector<std::vector<DeviceId>> choose_ranks(const PlannerInput& input, const Placing& placing, int stages,
                                                int replicas) {
  const std::vector<DeviceId> devices = available_devices(input);
  const auto there = static_cast<int>(devices.size());
  const int ranks = ranks_for(placing, stages, there / replicas);
  if (ranks == 0) refuse(input, placing, stages, replicas, there);
  std::vector<std::vector<DeviceId>> chosen;
  for (int r = 0; r < ranks; ++r) {
    const auto first = devices.begin() + static_cast<std::ptrdiff_t>(r) * replicas;
    chosen.emplace_back(first, first + replicas);
  }
  return chosen;
}

struct Division {
  std::vector<int> bounds;  ///< First layer of each stage, and the end.
  double busiest = 0, lower_bound = 0;
  bool exact = false;  ///< No division is better.
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

/// Divides the layers into `count` stages. `copies` has all copies of them: its stage s is a copy of stage s % count.
Division divide(const Plan& copies, int count, const PlannerInput& input) {
  const int layers = static_cast<int>(input.model.layers.size());
  std::map<std::pair<DeviceTypeId, std::int64_t>, LayerSums> sums_by_type;  // Key: type and number of samples.
  std::vector<std::vector<const LayerSums*>> sums(count);
  std::vector<std::vector<StageShare>> devices(input.cluster.devices.size());
  const Recomputation recomputation = recomputations(input.options, input.model).front();
  bool shared = false;
  for (int s = 0; s < copies.stage_count(); ++s) {
    const Stage& stage = copies.stage(StageId{s});
    const double part = double(copies.micro_batches_per_replica(StageId{s})) / copies.micro_batches(StageId{s});
    for (std::size_t r = 0; r < stage.devices().size(); ++r) {
      const DeviceId device = stage.devices()[r];
      const DeviceTypeId type = input.cluster.devices[device].type;
      const std::int64_t samples = samples_at_once(stage, static_cast<int>(r));
      LayerSums& layer_sums = sums_by_type[{type, samples}];
      if (layer_sums.empty()) layer_sums = sums_of(input.costs, type, static_cast<double>(samples), recomputation);
      sums[s % count].push_back(&layer_sums);
      devices[device.value].push_back({s % count, &layer_sums, part});
      shared |= devices[device.value].size() > 1;
    }
  }
  Division division{layers == count ? one_layer_each(count) : first_layers(layers, std::move(sums)), 0, 0, !shared};
  division.bounds.push_back(layers);
  if (shared) even_out(division.bounds, devices);
  division.busiest = largest_load(devices, division.bounds);
  division.lower_bound = shared ? least_load(devices) : division.busiest;
  return division;
}

Planned plan_balanced(const PlannerInput& input) {
  const PlanSpec& options = input.options;
  const int count = *options.stages, replicas = options.replicas;
  const int layers = static_cast<int>(input.model.layers.size());
  const Placing placing = placing_of(input);
  const auto ranks = choose_ranks(input, placing, count, replicas);
  if (layers < count)
    throw Infeasible({options.where("stages"), "plan.stages",
                      fmt::format("{} need {} layers, but the model has {}", pluralize(count, "stage"), count, layers),
                      fmt::format("at most {}, or a model cut more finely", pluralize(layers, "stage")), "layers"});
  const Bytes table{static_cast<double>(count) * (layers + 1.0) * sizeof(double)};
  if (count < layers && table > kLargestTable)
    throw Infeasible({options.where("stages"), "plan.stages",
                      fmt::format("the search among {} stages and {} layers needs a table of {}; {} is the most", count,
                                  layers, to_text(table), to_text(kLargestTable)),
                      "fewer stages, or the planner 'explicit'", "size"});

  const bool both_ways = placing.placement == Placement::Bidirectional;
  const int turn = placing.turn ? placing.turn(static_cast<int>(ranks.size()), input.micro_batches) : 0;
  Plan plan;
  for (int s = 0; s < count; ++s) {
    Stage& stage = plan.stages.emplace_back();
    stage.name = fmt::format("s{}", s);
    stage.place_on(ranks[rank_of(placing.placement, s, static_cast<int>(ranks.size()))]);
    stage.share = options.share;
    stage.micro_batch_size = options.micro_batch_size;
    stage.shape.recomputation = recomputations(options, input.model).front();
  }
  count_samples(plan, input);
  Plan copies = plan;
  if (both_ways) add_way_back(copies, turn);
  const Division division = divide(copies, count, input);
  for (std::size_t s = 0; s < plan.stages.size(); ++s)
    for (int layer = division.bounds[s]; layer < division.bounds[s + 1]; ++layer)
      plan.stages[StageId{s}].shape.layers.push_back(LayerId{layer});
  finish_plan(plan, input, options.sequential);
  if (both_ways) {
    add_way_back(plan, turn);
    check_plan(plan);
  }
  return {{.predicted = {division.busiest},
           .lower_bound = {division.lower_bound},
           .bound_reason = division.exact ? "the search was exhaustive" : "all work shared evenly"},
          std::move(plan)};
}

}  // namespace

extern const PlannerDef balanced{
    .name = "balanced",
    .summary = "Consecutive stages in the order of the model that minimize the time of the slowest stage or device.",
    .source = "Pinar and Aykanat, JPDC 2004",
    .fields = &kFields,
    .plan = plan_balanced,
};

}  // namespace stagecraft::planners
