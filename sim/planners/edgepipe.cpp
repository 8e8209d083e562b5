// The planner `edgepipe`: inference on unequal devices, exactly best over all subsets and orders of devices and all
// cuts of the chain, in PipeEdge's model (Hu et al., DSD 2022) with forwards of the cost table for its measured times.
// Devices of one type on equal links are one kind, so the search grows with their counts, not with 2^devices.
//
// What the model leaves out: latency of links, and the ways of the first input and of the last result. A tensor that
// skips a stage crosses every cut on its way; the plan sends it directly.

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <set>

#include "sim/cluster/link_table.hpp"
#include "sim/core/common_unit.hpp"
#include "sim/core/numbers.hpp"
#include "sim/core/stop_point.hpp"
#include "sim/core/text.hpp"
#include "sim/planners/edgepipe/search.hpp"
#include "sim/planners/shared/planner.hpp"

namespace stagecraft::planners {
namespace {

using edgepipe::ChainPlan;
using edgepipe::ChainProblem;
using edgepipe::Objective;
using edgepipe::Runs;

const config::MapSpec kEdgepipeFields{
    "Consecutive stages of a forward pass on any of the devices in any order, exactly the best for inference.",
    {config::choice("objective", std::vector<std::string>{"bottleneck", "latency", "finite", "shared"})
         .fallback("bottleneck")
         .doc("What is minimized: the period without contention; the latency of one item; the time of all items of an "
              "iteration with fill and drain; or the period when all messages share one medium."),
     config::integer("micro_batch_size", 1, 1e6).fallback("1").doc("Samples of one micro-batch, which is one item."),
     config::real("buffers_in", 0, 1e6)
         .fallback("2")
         .doc("Items buffered before a stage, in addition to the one in progress; each takes memory. The run has as "
              "many "
              "buffers, unless run.buffers says another number."),
     config::real("buffers_out", 0, 1e6)
         .fallback("2")
         .doc("Items buffered after a stage, in addition to the one in progress; each takes memory."),
     config::quantity("input", config::Dimension::Size)
         .fallback("0")
         .doc("Input size of one sample. The first stage keeps the input of one item."),
     config::text("data_device")
         .optional()
         .doc("The device that has the data. It runs the first stage or none. Default: any device may run any stage."),
     config::list("devices", config::text("device"))
         .optional()
         .doc("Names of the devices to choose from. Default: all devices of the cluster.")}};

constexpr double kLargestTables = 1 << 30;  // Bytes.

struct EdgepipeOptions {
  Objective objective = Objective::Bottleneck;
  double buffers_in = 2, buffers_out = 2;  ///< Items.
  Bytes input;                             ///< What one sample brings into the first stage.
  std::optional<DeviceId> data_device;
};

Objective objective_of(const std::string& word) {
  if (word == "latency") return Objective::Latency;
  if (word == "finite") return Objective::Finite;
  return word == "shared" ? Objective::Shared : Objective::Bottleneck;
}

PlannerOptions read_edgepipe_options(const config::Value& checked, const Cluster& cluster) {
  auto read = std::make_shared<EdgepipeOptions>();
  read->objective = objective_of(checked.at("objective").text);
  read->buffers_in = config::as_real(checked.at("buffers_in"));
  read->buffers_out = config::as_real(checked.at("buffers_out"));
  read->input = config::as_bytes(checked.at("input"));
  if (const config::Value* name = checked.find("data_device")) {
    config::Problems problems;
    const std::vector<DeviceId> devices = read_devices(*name, cluster, "data_device", problems);
    problems.throw_if_any();
    read->data_device = devices.front();
  }
  return read;
}

/// The fastest that each device reaches another with; 0: it reaches none. A pair has to have the slower of the two.
std::vector<double> bandwidths_of(const PlannerInput& input, const std::vector<DeviceId>& devices) {
  const LinkTable links(input.cluster);
  const auto n = devices.size();
  const auto between = [&](std::size_t a, std::size_t b) {
    const std::optional<LinkRate> rate = links.find(devices[a], devices[b]);
    return rate ? rate->bandwidth.value : 0;
  };
  const auto name = [&](std::size_t d) { return input.cluster.devices[devices[d]].name; };
  const auto require_slower = [&](std::size_t a, std::size_t b, double bandwidth, double both) {
    if (bandwidth != both)
      throw InputError({{input.options.where(""), "plan.devices",
                         fmt::format("this planner knows one bandwidth for each device, but '{}' and '{}' have {} "
                                     "between them and {} or more to others",
                                     name(a), name(b), to_text(Bandwidth{bandwidth}), to_text(Bandwidth{both})),
                         "name devices whose links meet at one switch or medium", "bandwidth"}});
  };
  const auto fastest_of = [&](std::size_t a) {
    double best = 0;
    for (std::size_t b = 0; b < n; ++b)
      if (b != a) best = std::max(best, between(a, b));
    return best;
  };
  // Where machines are faster inside, the first device shows it, and not all pairs have to be looked at.
  const double first = n > 0 ? fastest_of(0) : 0;
  for (std::size_t b = 1; b < n; ++b)
    if (const double bandwidth = between(0, b); bandwidth < first) {
      require_slower(0, b, bandwidth, std::min(first, fastest_of(b)));
      break;
    }
  std::vector<double> fastest(n, 0), pairs(n * n, 0);
  for (std::size_t a = 0; a < n; ++a, stop_point())
    for (std::size_t b = a + 1; b < n; ++b) {
      const double bandwidth = pairs[a * n + b] = between(a, b);
      fastest[a] = std::max(fastest[a], bandwidth);
      fastest[b] = std::max(fastest[b], bandwidth);
    }
  for (std::size_t a = 0; a < n; ++a)
    for (std::size_t b = a + 1; b < n; ++b) require_slower(a, b, pairs[a * n + b], std::min(fastest[a], fastest[b]));
  return fastest;
}

void require_one_medium(const PlannerInput& input, const std::vector<DeviceId>& devices) {
  const Router router(input.cluster);
  std::set<LinkId> links;
  bool shared = true;
  for (const DeviceId a : devices)
    for (const DeviceId b : devices) {
      const auto route = router.route(a, b);
      if (a == b || !route) continue;
      for (const Hop& hop : route->hops) {
        links.insert(hop.link);
        shared = shared && input.cluster.links[hop.link].duplex == Duplex::Half;
      }
    }
  if (shared && links.size() <= 1) return;
  throw InputError({{input.options.where("objective"), "plan.objective",
                     "'shared' is for devices on one medium, but messages between these take several links",
                     "write bottleneck, or join the devices with one link: {among: [...], duplex: half}", "medium"}});
}

/// Bytes of one sample over each cut: all tensors that a later layer reads, and at the end all that no layer reads.
std::vector<double> messages_of(const ModelGraph& model, double input) {
  const int layers = static_cast<int>(model.layers.size());
  std::vector<int> last_use(model.layers.size(), 0);
  for (int l = 0; l < layers; ++l)
    for (const LayerId from : model.layers[LayerId{l}].inputs) last_use[from.value] = l;
  std::vector<double> bytes(layers + 1, 0);
  bytes.front() = input;
  for (int l = 0; l < layers; ++l) {
    const double output = model.layers[LayerId{l}].output.value;
    for (int cut = l + 1; cut <= last_use[l]; ++cut) bytes[cut] += output;
    if (last_use[l] == 0) bytes.back() += output;
  }
  return bytes;
}

/// Weights of each run of layers, tied ones once.
Runs weights_of(const ModelGraph& model) {
  std::map<std::string, double> tied;
  for (const Layer& layer : model.layers)
    if (!layer.tie.empty()) tied[layer.tie] += layer.parameters;
  double parameters = 0;
  std::set<std::string> counted_ties;
  return Runs(static_cast<int>(model.layers.size()), [&](int from, int to) {
    if (to == from + 1) parameters = 0, counted_ties.clear();
    const Layer& last = model.layers[LayerId{to - 1}];
    if (last.tie.empty())
      parameters += last.parameters;
    else if (counted_ties.insert(last.tie).second)
      parameters += tied[last.tie];
    return parameters * model.precision.weight;
  });
}

std::vector<double> forward_times(const CostTable& costs, DeviceTypeId type, const Load& load) {
  std::vector<double> times;
  for (const LayerId l : costs.model().layers.ids()) times.push_back(costs.at(l, type, load).forward.value);
  return times;
}

Runs compute_of(const CostTable& costs, DeviceTypeId type, int samples, const CommonUnit& unit) {
  const std::vector<double> times = forward_times(costs, type, costs.load_of(samples));
  double sum = 0;
  return Runs(static_cast<int>(times.size()), [&](int from, int to) {
    if (to == from + 1) sum = unit(costs.operation(type).value);
    return sum += unit(times[to - 1]);
  });
}

/// The problem, and the devices of each kind in it.
struct Asked {
  ChainProblem problem;  ///< Times and bandwidths are in `unit`.
  CommonUnit unit;
  std::vector<std::vector<DeviceId>> devices;
};

Asked problem_of(const PlannerInput& input) {
  const auto& options = input.options.options<EdgepipeOptions>();
  const int size = input.options.micro_batch_size;
  const std::vector<DeviceId> devices = distinct_devices(input);
  const std::vector<double> bandwidths = bandwidths_of(input, devices);

  using Kind = std::tuple<DeviceTypeId, double, bool>;
  std::vector<Kind> kinds;
  Asked asked;
  for (std::size_t d = 0; d < devices.size(); ++d) {
    const bool first_only = options.data_device == devices[d];
    const Kind kind{input.cluster.devices[devices[d]].type, bandwidths[d], first_only};
    const std::size_t k = std::find(kinds.begin(), kinds.end(), kind) - kinds.begin();
    if (k == kinds.size()) kinds.push_back(kind), asked.devices.emplace_back();
    asked.devices[k].push_back(devices[d]);
  }

  ChainProblem& p = asked.problem;
  p.layers = static_cast<int>(input.model.layers.size());
  const Bytes tables{8.0 * (p.layers + 1.0) * (p.layers + 1.0) * static_cast<double>(kinds.size() + 1)};
  if (tables.value > kLargestTables)
    throw Infeasible("size",
                     fmt::format("the search among {} on {} needs tables of {}; {} is the most",
                                 pluralize(p.layers, "layer"), pluralize(std::ssize(kinds), "type") + " of devices",
                                 to_text(tables), to_text(Bytes{kLargestTables})),
                     "a model cut less finely, or fewer kinds of devices");
  p.message = messages_of(input.model, options.input.value);
  for (double& bytes : p.message) bytes *= size;
  p.weights = weights_of(input.model);
  p.buffers_in = options.buffers_in;
  p.buffers_out = options.buffers_out;
  std::vector<double> times;
  for (const Kind& kind : kinds)
    for (const double time : forward_times(input.costs, std::get<DeviceTypeId>(kind), input.costs.load_of(size)))
      times.push_back(time);
  asked.unit = CommonUnit(times);
  for (std::size_t k = 0; k < kinds.size(); ++k) {
    const auto [type, bandwidth, first_only] = kinds[k];
    const double memory = input.cluster.types[type].usable_memory().value;
    p.machines.push_back({.count = static_cast<int>(asked.devices[k].size()),
                          .compute = compute_of(input.costs, type, size, asked.unit),
                          .memory = memory > 0 ? memory : kInfinity,
                          .bandwidth = asked.unit.rate(bandwidth),
                          .first_only = first_only});
  }
  return asked;
}

[[noreturn]] void refuse(const PlannerInput& input, const ChainProblem& p) {
  std::vector<std::string> layers;
  for (const Layer& layer : input.model.layers) layers.push_back(layer.name);
  Diagnostic why = edgepipe::why_none(p, layers);
  why.where = input.options.where("");
  why.path = "plan";
  for (const DeviceType& type : input.cluster.types)
    if (type.memory_reserve.value > 0)
      why.help += fmt::format("; of each {} {} is reserved", type.name, to_text(type.memory_reserve));
  throw Infeasible(why);
}

std::string reason_of(Objective objective) {
  switch (objective) {
    case Objective::Bottleneck:
      return "the search was exhaustive";
    case Objective::Latency:
      return "the least period of any plan; the search was exhaustive and for latency";
    case Objective::Finite:
      return "the least period of any plan; the search was exhaustive and for all items together";
    case Objective::Shared:
      return "the search was exhaustive, on one medium";
  }
  throw InternalError("an objective without a reason");
}

/// Room for the items in the buffers, and for the one in progress.
MessageBuffers buffers_of(const ChainProblem& p) {
  const auto whole = [](double items) { return static_cast<int>(items) + 1; };
  return {whole(p.buffers_in), whole(p.buffers_out)};
}

Planned plan_edgepipe(const PlannerInput& input) {
  const Objective objective = input.options.options<EdgepipeOptions>().objective;
  const Asked asked = problem_of(input);
  if (objective == Objective::Shared) require_one_medium(input, distinct_devices(input));
  const std::optional<ChainPlan> chain_plan = edgepipe::search(asked.problem, objective, input.micro_batches);
  if (!chain_plan) refuse(input, asked.problem);

  Plan plan;
  std::vector<std::size_t> used(asked.devices.size(), 0);
  for (const edgepipe::ChainStage& part : chain_plan->chain) {
    Stage stage;
    stage.name = fmt::format("s{}", plan.stages.size());
    const std::size_t kind = part.machines;
    stage.place_on({asked.devices[kind][used[kind]++]});
    stage.micro_batch_size = input.options.micro_batch_size;
    for (int layer = part.from; layer < part.to; ++layer) stage.shape.layers.push_back(LayerId{layer});
    plan.stages.push_back(std::move(stage));
  }
  finish_plan(plan, input, false);
  Planned planned{{.states = chain_plan->states, .buffers = buffers_of(asked.problem)}, std::move(plan)};
  if (input.trains) {  // Its model has no backward, so it predicts nothing of a training run.
    set_heuristic(planned, input, "the stages are best for forwards alone");
    return planned;
  }
  planned.predicted = {asked.unit.seconds(chain_plan->period)};
  planned.memory = {edgepipe::figures_of(asked.problem, chain_plan->chain).memory};
  planned.model_limit = {asked.unit.seconds(chain_plan->least_period)};
  planned.limit_reason = reason_of(objective);
  return planned;
}

}  // namespace

extern const PlannerDef edgepipe{
    .name = "edgepipe",
    .summary =
        "Stages of a forward pass on any devices in any order, with the exact optimum of period, latency or both.",
    .source = "Hu et al., PipeEdge, DSD 2022",
    .fields = &kEdgepipeFields,
    .plan = plan_edgepipe,
    .read = read_edgepipe_options,
};

}  // namespace stagecraft::planners
