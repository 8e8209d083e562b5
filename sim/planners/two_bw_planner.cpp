// The planner `2bw`, algorithm 1 of PipeDream-2BW: tries every width, depth and power of two as micro-batch size, with
// and without recomputation, on stages as equal as the layers allow, and takes the highest throughput that fits.
// Replicas of a stage are on consecutive devices; if devices differ, stages take them in their order or type by type.

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "sim/core/numbers.hpp"
#include "sim/core/text.hpp"
#include "sim/cost/stage_cost.hpp"
#include "sim/planners/chain_partition/planning.hpp"
#include "sim/planners/chain_partition/two_bw.hpp"
#include "sim/planners/shared/bounds.hpp"

namespace stagecraft::planners {
namespace {

const config::MapSpec kTwoBwFields{
    "Equal parallel pipelines by PipeDream-2BW's search.",
    {chain_partition::devices_field(),
     config::integer("largest_micro_batch", 1, 1 << 20)
         .fallback("64")
         .doc("Largest micro-batch size to try; sizes are powers of two."),
     config::integer("batch", 1, 1e9)
         .optional()
         .doc("Samples of one iteration; only widths and sizes that give exactly this number are tried. Default: the "
              "number with the highest throughput."),
     recompute_field(true),
     config::quantity("memory", config::Dimension::Size)
         .optional()
         .doc("Memory limit of a device. Default: the memory of its type, or no limit if that is unknown.")}};

struct TwoBwOptions {
  int largest_micro_batch = 64;
  std::optional<int> batch;  ///< Samples in one iteration.
};

PlannerOptions read_two_bw_options(const config::Value& checked, const Cluster&) {
  auto read = std::make_shared<TwoBwOptions>();
  read->largest_micro_batch = config::as_int(checked.at("largest_micro_batch"));
  if (const config::Value* batch = checked.find("batch")) read->batch = config::as_int(*batch);
  return read;
}

constexpr std::size_t kMostOrdered = 4;  ///< Types of which every order is tried.

struct Candidate {
  int width = 1, depth = 1, size = 1;
  Recomputation recompute = Recomputation::None;
  std::vector<int> devices;          ///< Devices of the first stage, then the second, as indices into devices_.
  std::vector<std::set<int>> types;  ///< Types of the devices of each stage.
  std::vector<int> starts;           ///< First layer of each stage.
  double period = 0, memory = 0;

  double throughput() const { return width * size / period; }
};

class TwoBwSearch {
 public:
  explicit TwoBwSearch(const PlannerInput& input)
      : input_(input),
        devices_(chain_partition::devices_of(input)),
        types_(chain_partition::types_of(input.cluster, devices_)),
        unit_(chain_partition::common_unit(input, types_, 1)),
        host_(chain_partition::devices_of_node(input.cluster, devices_)),
        inside_(unit_.rate(chain_partition::ring_bandwidth(input.cluster, devices_, host_))),
        between_(unit_.rate(chain_partition::ring_bandwidth(input.cluster, devices_, devices_.size()))),
        orders_(orders()),
        recomputations_(recomputations(input.options, input.model)) {
    const std::optional<Bytes> given = input.options.memory;
    for (const DeviceTypeId type : types_.types) {
      const Bytes usable = input.cluster.types[type].usable_memory();
      memory_.push_back(given ? given->value : usable.value > 0 ? usable.value : kInfinity);
    }
    if (types_.mixed()) bandwidth_ = chain_partition::bandwidths_of(input.cluster, devices_);
    for (std::vector<double>& row : bandwidth_)
      for (double& rate : row) rate = unit_.rate(rate);
  }

  Planned run() {
    const auto count = static_cast<int>(devices_.size()), layers = static_cast<int>(input_.model.layers.size());
    const int largest = input_.options.options<TwoBwOptions>().largest_micro_batch;
    for (int width = 1; width <= count; ++width)
      for (int depth = 1; depth <= std::min({count / width, layers, input_.micro_batches}); ++depth)
        for (int size = 1; size <= largest; size *= 2)
          for (const std::vector<int>& order : orders_) try_candidate(width, depth, size, order);
    if (best_.starts.empty()) refuse();
    return planned();
  }

 private:
  /// Orders of the devices: the given one, and with a few types also type by type in every order of the types.
  std::vector<std::vector<int>> orders() const {
    std::vector<int> given(devices_.size());
    std::iota(given.begin(), given.end(), 0);
    std::vector<std::vector<int>> orders{given};
    std::vector<int> types(types_.types.size());
    std::iota(types.begin(), types.end(), 0);
    if (!types_.mixed() || types.size() > kMostOrdered) return orders;
    do {
      std::vector<int> order = given;
      std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return place(types, a) < place(types, b); });
      if (order != given) orders.push_back(std::move(order));
    } while (std::next_permutation(types.begin(), types.end()));
    return orders;
  }
  std::ptrdiff_t place(const std::vector<int>& types, int device) const {
    return std::find(types.begin(), types.end(), type_of(device)) - types.begin();
  }
  int type_of(int device) const { return types_.type_of[device]; }

  /// The `count` fastest devices, in this order.
  std::vector<int> fastest(std::vector<int> order, std::size_t count, int size) {
    if (!types_.mixed()) {
      order.resize(count);
      return order;
    }
    std::vector<int> ranked = order;
    std::stable_sort(ranked.begin(), ranked.end(), [&](int a, int b) {
      return work(size, type_of(a)).seconds.back() < work(size, type_of(b)).seconds.back();
    });
    ranked.resize(count);
    std::erase_if(order, [&](int d) { return std::find(ranked.begin(), ranked.end(), d) == ranked.end(); });
    return order;
  }

  void try_candidate(int width, int depth, int size, const std::vector<int>& order) {
    const std::optional<int> batch = input_.options.options<TwoBwOptions>().batch;
    if (batch && static_cast<double>(width) * size * input_.micro_batches != *batch) return;
    Candidate candidate{width, depth, size, {}, {}, {}, {}, 0, 0};
    candidate.devices = fastest(order, width * depth, size);
    candidate.types = types_of_stages(candidate);
    candidate.starts = starts(candidate);
    for (const Recomputation recompute : recomputations_) {
      ++states_;
      candidate.recompute = recompute;
      const chain_partition::TwoBwPipeline pipeline = pipeline_of(candidate);
      candidate.period = chain_partition::period_of(pipeline);
      candidate.memory = chain_partition::memory_of(pipeline);
      least_memory_ = std::min(least_memory_, candidate.memory);
      if (!fits(candidate, pipeline)) continue;
      if (best_.starts.empty() || candidate.throughput() > best_.throughput()) best_ = candidate;
    }
  }

  bool fits(const Candidate& candidate, const chain_partition::TwoBwPipeline& pipeline) const {
    for (std::size_t s = 0; s < pipeline.stages.size(); ++s)
      for (const int type : candidate.types[s])
        if (chain_partition::memory_of(pipeline, pipeline.stages[s]) > memory_[type]) return false;
    return true;
  }

  std::vector<std::set<int>> types_of_stages(const Candidate& candidate) const {
    std::vector<std::set<int>> stages(candidate.depth);
    for (std::size_t d = 0; d < candidate.devices.size() && types_.mixed(); ++d)
      stages[d / candidate.width].insert(type_of(candidate.devices[d]));
    if (!types_.mixed()) std::fill(stages.begin(), stages.end(), std::set<int>{0});
    return stages;
  }

  const chain_partition::Workload& work(int size, int type) {
    const auto it = works_.find({size, type});
    if (it != works_.end()) return it->second;
    const Digraph graph = chain_partition::layer_graph(input_.model);
    auto amounts = chain_partition::amounts_of(input_.costs, types_.types[type], input_.costs.load_of(size));
    for (chain_partition::LayerAmounts& layer : amounts) layer.seconds = unit_(layer.seconds);
    return works_
        .emplace(std::pair{size, type},
                 chain_partition::sum_up(amounts, graph, chain_partition::listed_cuts(graph.size())))
        .first->second;
  }

  std::vector<int> starts(const Candidate& candidate) {
    std::vector<int>& starts = starts_[{candidate.size, candidate.types}];
    if (!starts.empty()) return starts;
    std::vector<std::vector<double>> seconds;
    for (const std::set<int>& types : candidate.types) {
      std::vector<double>& layer_seconds = seconds.emplace_back(input_.model.layers.size(), 0);
      for (const int type : types) {
        const chain_partition::Workload& sums = work(candidate.size, type);
        for (std::size_t l = 0; l < layer_seconds.size(); ++l)
          layer_seconds[l] = std::max(layer_seconds[l], sums.seconds[l + 1] - sums.seconds[l]);
      }
    }
    return starts = types_.mixed() ? chain_partition::cut_evenly(seconds)
                                   : chain_partition::cut_evenly(seconds.front(), candidate.depth);
  }

  chain_partition::TwoBwPipeline pipeline_of(const Candidate& candidate) {
    chain_partition::TwoBwPipeline pipeline{
        {}, candidate.width, input_.micro_batches, candidate.recompute == Recomputation::Full, 0, 0};
    pipeline.width_bandwidth = candidate.width <= host_ ? inside_ : between_;
    pipeline.depth_bandwidth = candidate.width * candidate.depth <= host_ ? inside_ : between_;
    if (types_.mixed()) set_bandwidths(candidate, pipeline);
    for (std::size_t s = 0; s < candidate.starts.size(); ++s) {
      const std::size_t from = candidate.starts[s];
      const std::size_t to = s + 1 < candidate.starts.size() ? static_cast<std::size_t>(candidate.starts[s + 1])
                                                             : input_.model.layers.size();
      pipeline.stages.push_back(stage_of(candidate, s, from, to));
    }
    return pipeline;
  }

  chain_partition::TwoBwStage stage_of(const Candidate& candidate, std::size_t s, std::size_t from, std::size_t to) {
    const chain_partition::Workload& sums = work(candidate.size, 0);
    chain_partition::TwoBwStage stage;
    for (const int type : candidate.types[s]) {
      const chain_partition::Workload& workload = work(candidate.size, type);
      stage.seconds = std::max(stage.seconds, workload.seconds[to] - workload.seconds[from]);
    }
    stage.received = sums.crossing[from], stage.sent = sums.crossing[to];
    // The formulas of the paper include full recomputation of a stage; selective recomputation depends on the layers.
    const bool selective = candidate.recompute == Recomputation::Selective;
    for (std::size_t l = from; l < to; ++l)
      stage.memory += layer_memory(input_.model, LayerId{l}, selective ? Recomputation::Selective : Recomputation::None,
                                   input_.costs.load_of(candidate.size), {}, &input_.costs.rules());
    if (selective) stage.seconds += recomputed_seconds(candidate, s, from, to);
    return stage;
  }

  /// On the slowest of its types.
  double recomputed_seconds(const Candidate& candidate, std::size_t s, std::size_t from, std::size_t to) const {
    double slowest = 0;
    for (const int type : candidate.types[s]) {
      double stage_time = 0;
      const StageShape shape{.recomputation = candidate.recompute};
      for (std::size_t l = from; l < to; ++l)
        stage_time +=
            unit_(input_.costs.passes(LayerId{l}, shape, types_.types[type], input_.costs.load_of(candidate.size))
                      .recompute.time.total()
                      .value);
      slowest = std::max(slowest, stage_time);
    }
    return slowest;
  }

  /// The slowest link among the replicas of a stage, and from a device to the same one of the next stage.
  void set_bandwidths(const Candidate& candidate, chain_partition::TwoBwPipeline& pipeline) const {
    const std::size_t width = candidate.width;
    const auto link = [&](std::size_t a, std::size_t b) {
      return bandwidth_[candidate.devices[a]][candidate.devices[b]];
    };
    pipeline.width_bandwidth = pipeline.depth_bandwidth = kInfinity;
    for (std::size_t d = 0; d < candidate.devices.size(); ++d) {
      for (std::size_t other = d / width * width; other < d; ++other)
        pipeline.width_bandwidth = std::min(pipeline.width_bandwidth, link(other, d));
      if (d >= width) pipeline.depth_bandwidth = std::min(pipeline.depth_bandwidth, link(d - width, d));
    }
  }

  Planned planned() {
    Planned result;
    for (std::size_t s = 0; s < best_.starts.size(); ++s) {
      Stage stage;
      stage.name = fmt::format("s{}", s);
      stage.micro_batch_size = best_.width * best_.size;
      stage.shape.recomputation = best_.recompute;
      const int to = s + 1 < best_.starts.size() ? best_.starts[s + 1] : static_cast<int>(input_.model.layers.size());
      for (int layer = best_.starts[s]; layer < to; ++layer) stage.shape.layers.push_back(LayerId{layer});
      const std::size_t width = best_.width;
      std::vector<DeviceId> placed;
      for (std::size_t d = s * width; d < (s + 1) * width; ++d) placed.push_back(devices_[best_.devices[d]]);
      stage.place_on(std::move(placed));
      result.plan.stages.push_back(std::move(stage));
    }
    finish_plan(result.plan, input_, false);
    result.predicted = {unit_.seconds(best_.period)};
    result.memory = {best_.memory};
    result.model_limit = {unit_.seconds(bounds::shared_work(work_of_layers(), types_.counts()) * best_.width)};
    result.limit_reason = "all work of these micro-batches shared evenly";
    result.states = states_;
    return result;
  }

  /// [type][layer] of the micro-batches of the best.
  std::vector<std::vector<double>> work_of_layers() {
    std::vector<std::vector<double>> layer_seconds;
    for (std::size_t t = 0; t < types_.types.size(); ++t) {
      layer_seconds.emplace_back();
      const chain_partition::Workload& sums = work(best_.size, static_cast<int>(t));
      for (std::size_t l = 0; l + 1 < sums.seconds.size(); ++l)
        layer_seconds.back().push_back(sums.seconds[l + 1] - sums.seconds[l]);
    }
    return layer_seconds;
  }

  [[noreturn]] void refuse() const {
    const std::optional<int> batch = input_.options.options<TwoBwOptions>().batch;
    if (states_ == 0 && batch)
      throw Infeasible({input_.options.where("batch"), "plan.batch",
                        fmt::format("no width and power of two give {} in {}", pluralize(*batch, "sample"),
                                    pluralize(input_.micro_batches, "micro-batch", "es")),
                        "leave plan.batch out, or change run.micro_batches", "batch"});
    throw Infeasible("memory",
                     fmt::format("of {} pipelines the smallest needs {} of a device, but it has {}", states_,
                                 to_text(Bytes{least_memory_}),
                                 room_text(input_, Bytes{*std::max_element(memory_.begin(), memory_.end())})),
                     "more devices, more micro-batches (they limit the depth), or devices with more memory");
  }

  const PlannerInput& input_;
  std::vector<DeviceId> devices_;
  chain_partition::Types types_;
  CommonUnit unit_;
  int host_;
  double inside_, between_;  ///< Bytes in a unit of time: within a host, and over all devices.
  std::vector<std::vector<int>> orders_;
  std::vector<Recomputation> recomputations_;
  std::vector<double> memory_;  ///< Bytes of a device of each type.
  double least_memory_ = kInfinity;
  std::vector<std::vector<double>> bandwidth_;                      ///< Between any two of several types.
  std::map<std::pair<int, int>, chain_partition::Workload> works_;  ///< By micro-batch size and type.
  std::map<std::pair<int, std::vector<std::set<int>>>, std::vector<int>> starts_;  ///< By that size and stages' types.
  Candidate best_;
  std::int64_t states_ = 0;
};

Planned plan_two_bw(const PlannerInput& input) { return TwoBwSearch(input).run(); }

}  // namespace

extern const PlannerDef two_bw_planner{
    .name = "2bw",
    .summary = "PipeDream-2BW's search: width, depth, micro-batch size and recomputation of equal parallel pipelines.",
    .source = "Narayanan et al., Memory-Efficient Pipeline-Parallel DNN Training, ICML 2021",
    .fields = &kTwoBwFields,
    .plan = plan_two_bw,
    .read = read_two_bw_options,
    .training_alone = "plans training with two versions of the weights",
};

}  // namespace stagecraft::planners
