// PipeDream-2BW, algorithm 1: every width, depth and micro-batch size, with and without recomputation, on stages with
// as equal work as the layers allow; the highest throughput of what fits. Replicas of a stage lie side by side.

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>

#include "sim/plan/msr/planning.hpp"
#include "sim/plan/msr/two_bw.hpp"

namespace stagecraft::planners {
namespace {

using Words = std::vector<std::string>;

const config::MapSpec kFields{
    "Equal pipelines side by side by PipeDream-2BW's search.",
    {msr::devices_field(),
     config::integer("largest_micro_batch", 1, 1 << 20)
         .fallback("64")
         .doc("Most samples of one micro-batch of one pipeline; powers of two are tried."),
     config::integer("batch", 1, 1e9)
         .optional()
         .doc("Samples in one iteration: only widths and sizes that give so many; left out: as many as are best."),
     config::choice("recompute", Words{"auto", "none", "full"})
         .fallback("auto")
         .doc("Whether stages run their forward again before backward; auto: where that gives more throughput."),
     config::quantity("memory", config::Dimension::Size)
         .optional()
         .doc("Of a device; left out: what its type has, or no limit where that is not known.")}};

struct Candidate {
  int width = 1, depth = 1, size = 1;
  bool recompute = false;
  std::vector<int> starts;  ///< First layer of each stage.
  double period = 0, memory = 0;

  double throughput() const { return width * size / period; }
};

class Search {
 public:
  explicit Search(const PlannerInput& input)
      : input_(input),
        devices_(msr::equal_devices(input)),
        type_(msr::type_of(input, devices_)),
        host_(msr::devices_of_host(input.cluster, devices_)),
        inside_(msr::ring_bandwidth(input.cluster, devices_, static_cast<std::size_t>(host_))),
        between_(msr::ring_bandwidth(input.cluster, devices_, devices_.size())) {
    const config::Value* given = input.options.find("memory");
    const Bytes known = input.cluster.types[static_cast<std::size_t>(type_)].memory;
    memory_ = given             ? config::as_bytes(*given).value
              : known.value > 0 ? known.value
                                : std::numeric_limits<double>::infinity();
  }

  Planned run() {
    const auto all = static_cast<int>(devices_.size()), layers = static_cast<int>(input_.model.layers.size());
    const int largest = config::as_int(input_.options.at("largest_micro_batch"));
    for (int width = 1; width <= all; ++width)
      for (int depth = 1; depth <= std::min({all / width, layers, input_.micro_batches}); ++depth)
        for (int size = 1; size <= largest; size *= 2) look(width, depth, size);
    if (best_.starts.empty()) refuse();
    return planned();
  }

 private:
  void look(int width, int depth, int size) {
    const config::Value* batch = input_.options.find("batch");
    if (batch && static_cast<double>(width) * size * input_.micro_batches != config::as_int(*batch)) return;
    const std::string& word = input_.options.at("recompute").text;
    Candidate candidate{width, depth, size, false, starts(depth, size), 0, 0};
    for (const bool recompute : {false, true}) {
      if (word == (recompute ? "none" : "full")) continue;
      ++states_;
      candidate.recompute = recompute;
      const msr::TwoBwPipeline pipeline = pipeline_of(candidate);
      candidate.period = msr::period_of(pipeline);
      candidate.memory = msr::memory_of(pipeline);
      least_memory_ = std::min(least_memory_, candidate.memory);
      if (candidate.memory > memory_) continue;
      if (best_.starts.empty() || candidate.throughput() > best_.throughput()) best_ = candidate;
    }
  }

  const msr::Workload& work(int size) {
    const auto found = works_.find(size);
    if (found != works_.end()) return found->second;
    const Digraph graph = msr::layer_graph(input_.model);
    return works_
        .emplace(size, msr::sum_up(msr::amounts_of(input_.costs, type_, size), graph, msr::listed_cuts(graph.size())))
        .first->second;
  }

  std::vector<int> starts(int depth, int size) {
    std::vector<int>& known = starts_[{depth, size}];
    if (!known.empty()) return known;
    std::vector<double> seconds;
    const msr::Workload& sums = work(size);
    for (std::size_t l = 0; l + 1 < sums.seconds.size(); ++l) seconds.push_back(sums.seconds[l + 1] - sums.seconds[l]);
    return known = msr::cut_evenly(seconds, depth);
  }

  msr::TwoBwPipeline pipeline_of(const Candidate& candidate) {
    const msr::Workload& sums = work(candidate.size);
    const Precision& precision = input_.model.precision;
    msr::TwoBwPipeline pipeline{{}, candidate.width, input_.micro_batches, candidate.recompute, 0, 0};
    pipeline.width_bandwidth = candidate.width <= host_ ? inside_ : between_;
    pipeline.depth_bandwidth = candidate.width * candidate.depth <= host_ ? inside_ : between_;
    for (std::size_t s = 0; s < candidate.starts.size(); ++s) {
      const auto from = static_cast<std::size_t>(candidate.starts[s]);
      const std::size_t to =
          s + 1 < candidate.starts.size() ? static_cast<std::size_t>(candidate.starts[s + 1]) : sums.seconds.size() - 1;
      msr::TwoBwStage stage;
      stage.seconds = sums.seconds[to] - sums.seconds[from];
      stage.received = sums.crossing[from], stage.sent = sums.crossing[to];
      stage.weights = sums.parameters[to] - sums.parameters[from];
      stage.other_state = stage.weights / precision.weight * (precision.gradient + precision.optimizer);
      for (std::size_t l = from; l < to; ++l) stage.activations += input_.model.layers[l].stash.value * candidate.size;
      pipeline.stages.push_back(stage);
    }
    return pipeline;
  }

  Planned planned() {
    Planned result;
    for (std::size_t s = 0; s < best_.starts.size(); ++s) {
      Stage stage;
      stage.name = fmt::format("s{}", s);
      stage.micro_batch_size = best_.width * best_.size;
      stage.recompute = best_.recompute;
      const int to = s + 1 < best_.starts.size() ? best_.starts[s + 1] : static_cast<int>(input_.model.layers.size());
      for (int layer = best_.starts[s]; layer < to; ++layer) stage.layers.push_back(LayerId{layer});
      const auto width = static_cast<std::ptrdiff_t>(best_.width);
      const auto first = devices_.begin() + static_cast<std::ptrdiff_t>(s) * width;
      stage.devices.assign(first, first + width);
      result.plan.stages.push_back(std::move(stage));
    }
    finish_plan(result.plan, input_, false);
    result.predicted = {best_.period};
    result.memory = {best_.memory};
    result.lower_bound = {work(best_.size).seconds.back() * best_.width / static_cast<double>(devices_.size())};
    result.bound_reason = "all work of these micro-batches shared evenly";
    result.states = states_;
    return result;
  }

  [[noreturn]] void refuse() const {
    const config::Value* batch = input_.options.find("batch");
    if (states_ == 0 && batch)
      throw Infeasible({batch->where, "plan.batch",
                        fmt::format("no width and power of two give {} samples in {} micro-batches",
                                    config::as_int(*batch), input_.micro_batches),
                        "leave plan.batch out, or change run.micro_batches", "batch"});
    throw Infeasible("memory",
                     fmt::format("of {} pipelines the smallest needs {} of a device, but it has {}", states_,
                                 to_text(Bytes{least_memory_}), to_text(Bytes{memory_})),
                     "more devices, more micro-batches (they limit the depth), or devices with more memory");
  }

  const PlannerInput& input_;
  std::vector<DeviceId> devices_;
  int type_, host_;
  double inside_, between_;  ///< Bytes a second: within a host, and over all devices.
  double memory_ = 0, least_memory_ = std::numeric_limits<double>::infinity();
  std::map<int, msr::Workload> works_;                      ///< By micro-batch size.
  std::map<std::pair<int, int>, std::vector<int>> starts_;  ///< By depth and micro-batch size.
  Candidate best_;
  std::int64_t states_ = 0;
};

Planned plan_two_bw(const PlannerInput& input) { return Search(input).run(); }

}  // namespace

extern const PlannerDef two_bw_planner{
    .name = "2bw",
    .summary = "Equal pipelines side by side: the width, depth, micro-batch and recomputation of most throughput.",
    .source = "Narayanan et al., Memory-Efficient Pipeline-Parallel DNN Training, ICML 2021",
    .fields = &kFields,
    .plan = plan_two_bw,
};

}  // namespace stagecraft::planners
