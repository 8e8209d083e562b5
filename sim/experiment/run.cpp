// The road from an Experiment to an Outcome on one page: plan, schedule, program, timeline, report.

#include "sim/experiment/run.hpp"

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include <fmt/core.h>

#include "backends/backend.hpp"
#include "backends/world.hpp"
#include "sim/core/activity.hpp"
#include "sim/core/stop_point.hpp"
#include "sim/core/text.hpp"
#include "sim/experiment/fold_replicas.hpp"
#include "sim/experiment/group_changes.hpp"
#include "sim/experiment/limits.hpp"
#include "sim/experiment/offloading.hpp"
#include "sim/experiment/order_experiment.hpp"
#include "sim/experiment/packed_data.hpp"
#include "sim/experiment/pipeline_fields.hpp"
#include "sim/experiment/places.hpp"
#include "sim/experiment/real_program.hpp"
#include "sim/experiment/version.hpp"
#include "sim/program/check.hpp"
#include "sim/program/scores_time.hpp"
#include "sim/result/metrics.hpp"
#include "sim/result/pipeline_ranks.hpp"

namespace stagecraft {

using config::Value;

namespace {

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

void set_group_sizes(CompiledExperiment& c) {
  IdVector<DeviceId, int> sizes(c.program.devices, 1);
  int smallest = c.plan.stages.front().shape.degrees.group();
  for (const Stage& stage : c.plan.stages) {
    const int group = stage.shape.degrees.group();
    for (const DeviceId d : stage.leaders) sizes[d] = group;
    c.program.group = std::max(c.program.group, group);
    smallest = std::min(smallest, group);
  }
  if (smallest != c.program.group) c.program.group_sizes = std::move(sizes);
}

/// What remains of the ops of a stage where their collectives are separate instructions.
StageParts parts_of(const StageCost& cost, VocabularyPasses vocabulary) {
  const Written written = cost.written();
  const EachPass<TimeByClass>& p = cost.passes;
  return {{.forward = in_op(p.forward, written),
           .input_gradient = in_op(p.input_gradient, written),
           .weight_gradient = in_op(p.weight_gradient, written),
           .backward = in_op(p.backward, written),
           .recompute = in_op(p.recompute, written)},
          in_op(cost.update_parts, written),
          time_of_scores(cost, vocabulary, OpKind::Scores),
          time_of_scores(cost, vocabulary, OpKind::ScoresGradient)};
}

/// The rate that the utilization of a device refers to: that of the number format of the run.
FlopRate peak_of(const Experiment& e, DeviceId d) {
  return e.rules->accelerators[e.cluster->devices[d].type].formats[e.rules->format].peak;
}

/// What a sample of the model has in the mean, without padding.
Load useful_load(const Experiment& e) {
  return e.run.packs ? mean_load(e.run.packs->packs, tokens_of_sample(*e.model)) : Load{};
}

/// Rates of the whole model where its amounts are known, and classes of time where costs know them.
void describe_work(CompiledExperiment& c) {
  const Experiment& e = c.experiment;
  set_group_sizes(c);
  if (e.software().prices)
    for (const StageId s : c.plan.stages.ids())
      c.program.parts.push_back(parts_of(c.costs.at(s, 0), c.schedule.vocabulary));
  const Load load = useful_load(e);
  ModelWork work;
  const bool trains = e.schedule.def->trains;
  for (const Layer& layer : e.model->layers) {
    const auto amount = [&](Pass pass, Flops whole) { return flops_factor(layer, pass, load) * whole; };
    const auto gradients = [&] {
      return amount(Pass::InputGradient, layer.input_gradient) + amount(Pass::WeightGradient, layer.weight_gradient);
    };
    work.flops += amount(Pass::Forward, layer.forward) + (trains ? gradients() : Flops{});
    for (const Operation& op : layer.operations) {
      // Recomputation inside fused attention does not count as model FLOPs.
      if (op.kind != OperationKind::Attention || !op.fused || !trains) continue;
      const Flops again = flops(op, Pass::InputGradient) - 2 * flops(op, Pass::Forward);
      work.flops -= pairs_factor(op, load) * again;
    }
  }
  work.tokens = tokens_of_sample(*e.model) * load.rows;
  work.samples_of_pack = e.run.packs ? load.samples / e.run.packs->slices : 1;
  const std::vector<DeviceId> used = devices_of(c.plan);
  work.devices = static_cast<int>(used.size());
  for (const DeviceId d : used) work.peak += peak_of(e, d);
  if (work.flops.value > 0 || work.tokens > 0) c.program.work = work;
}

/// " (stage 3, l9..l11)" or " (stages 0, 4)".
std::string stages_on(const PlannedExperiment& p, DeviceId d) {
  std::vector<std::string> names;
  const Stage* last = nullptr;
  for (const StageId s : p.plan.stages.ids()) {
    const std::vector<DeviceId>& devices = p.plan.stages[s].all_devices();
    if (std::find(devices.begin(), devices.end(), d) == devices.end()) continue;
    names.push_back(fmt::format("{}", s.value));
    last = &p.plan.stages[s];
  }
  if (names.empty()) return {};
  if (names.size() > 1) return fmt::format(" (stages {})", join(names));
  const std::vector<LayerId>& layers = last->shape.layers;
  if (layers.empty()) return fmt::format(" (stage {})", names.front());
  const std::string first = p.model().layers[layers.front()].name, end = p.model().layers[layers.back()].name;
  return fmt::format(" (stage {}, {})", names.front(), first == end ? first : first + ".." + end);
}

Planned planned_by_planner(const Experiment& e) {
  const bool trains = e.schedule.has_gradients();
  std::optional<CostTable> changed;
  if (!trains) changed = e.costs->of_forwards_alone();
  if (const PackedBatches* packs = e.run.packs.get())
    changed = (changed ? *changed : *e.costs).of_packs(mean_load(*packs, tokens_of_sample(*e.model)));
  return make_plan({.model = *e.model,
                    .cluster = *e.cluster,
                    .costs = changed ? *changed : *e.costs,
                    .options = e.plan,
                    .micro_batches = e.run.micro_batches,
                    .placing = placing_of(*e.schedule.def, e.schedule.options.get()),
                    .trains = trains});
}

}  // namespace

Cluster without_changes(Cluster cluster) {
  cluster.changes.clear();
  cluster.jitter = {};
  return cluster;
}

IdVector<DeviceId, MemoryNeed> memory_peaks(const CompiledExperiment& c) {
  return c.peaks.empty() ? memory_peaks(c.program) : c.peaks;
}

PlannedExperiment plan_experiment(const Experiment& e) {
  PlannedExperiment p{.experiment = e, .plan = {}, .report = {}, .planning = {}, .costs = {}};
  const auto begin = std::chrono::steady_clock::now();
  with_error_context(*e.source, "plan", [&](const Value& part) {
    const Activity activity(fmt::format("planning with '{}'", e.plan.planner->name));
    try {
      Planned planned = planned_by_planner(e);
      p.plan = std::move(planned.plan);
      p.report = std::move(static_cast<PlannerReport&>(planned));
    } catch (const Infeasible& problem) {
      throw add_related_location(problem, part, e.source->at("cluster"));
    }
  });
  p.planning = Seconds{seconds_since(begin)};
  if (e.run.packs)
    with_error_context(*e.source, "run", [&](const Value&) {
      if (!e.run.packs->ranks.empty() && !e.software().balanced_context)
        throw InputError(
            "each rank of a context group has one piece of a sequence in this software, so that the last "
            "has most of the work, which is not simulated for smaller groups",
            "a software with balanced pieces, such as megatron-core; or data.pack: balanced");
      set_loads(p.plan, *e.run.packs, tokens_of_sample(*e.model), e.rules->flows);
    });
  check_group_policy(p);
  if (e.plan.offload) check_offload(p);
  check_pipeline(p);
  p.plan.reductions = derive_reductions(p.plan, *e.model);
  if (!e.schedule.flushes())
    erase_if(p.plan.reductions, [](const Reduction& r) { return r.source == ReductionSource::TiedParameters; });
  if (e.software().prices && !e.run.collectives_flow) price_reductions(p.plan, *e.costs);
  if (e.software().prices && e.run.collectives_flow)
    for (Reduction& r : p.plan.reductions)
      r.bytes = r.bytes * (e.software().gradient_bytes / e.model->precision.gradient);
  if (e.run.buckets) cut_into_buckets(p.plan, *e.costs, *e.run.buckets);
  with_error_context(*e.source, "plan", [&](const Value&) { p.costs = checked(stage_costs(p.plan, *e.costs)); });
  if (e.plan.offload && e.plan.offload->optimizer > 0) offload_optimizer(p);
  return p;
}

PlannedExperiment plan_again(const PlannedExperiment& planned, const Experiment& e) {
  const auto placing = [](const Experiment& x) { return placing_of(*x.schedule.def, x.schedule.options.get()); };
  const Experiment& made_for = planned.experiment;
  const bool same = made_for.costs == e.costs && made_for.schedule.flushes() == e.schedule.flushes() &&
                    placing(made_for) == placing(e) && made_for.run.packs == e.run.packs &&
                    made_for.plan.divides_vocabulary == e.plan.divides_vocabulary;
  if (!same) return plan_experiment(e);
  PlannedExperiment again = planned;
  again.experiment = e;
  return again;
}

LoweringOptions lowering_of(const PlannedExperiment& p) {
  LoweringOptions options = p.experiment.run.lowering;
  if (options.rendezvous) options.buffers = p.experiment.run.buffers.value_or(p.report.buffers);
  return options;
}

namespace {

/// Cycles are what lowering finds anyway, and only then they are looked for again, to say where they are.
void lower_order(CompiledExperiment& c) {
  const Experiment& e = c.experiment;
  try {
    with_error_context(*e.source, "run", [&](const Value&) {
      const Activity activity(fmt::format("lowering {} ops", c.schedule.op_count()));
      LoweringOptions options = lowering_of(c);
      if (e.rules->flows) options.node_of = node_of(*e.cluster);
      c.program = lower(c.schedule, c.plan, c.costs, e.weights.rule, options);
    });
  } catch (const Infeasible& problem) {
    if (problem.code() == "cycle") check_order(c.schedule, c, /*with_cycles=*/true);
    throw;
  }
}

}  // namespace

CompiledExperiment compile(PlannedExperiment planned, const Schedule* known_order) {
  CompiledExperiment c{{std::move(planned)}, {}, {}};
  const Experiment& e = c.experiment;
  c.schedule = known_order ? with_all_replicas(*known_order, c.plan) : order_experiment(c);
  lower_order(c);
  const auto about_device = [&](DeviceId d) { return stages_on(c, d); };
  if (e.plan.offload)
    with_error_context(*e.source, "plan", [&](const Value&) {
      offload(c);
      if (!c.peaks.empty()) check_memory(c.program, *e.cluster, c.peaks, about_device);
    });
  stop_point();
  describe_work(c);
  if (e.run.each_device)
    with_error_context(*e.source, "plan",
                       [&](const Value&) { c.program = unfold_with_collectives(c.program, c.plan).program; });
  if (!e.cluster->changes.empty()) cluster_of_program(c);  // Refuses what cannot be simulated, before a run.
  Workload workload = make_workload(*e.model, c.plan, e.weights.rule, e.training);
  if (e.plan.offload) {
    workload.offload_modules = e.plan.offload->modules;
    workload.offload_differs_by_rank = e.plan.offload->less.value > 0;
  }
  if (e.run.packs) set_packs(workload, *e.run.packs, tokens_of_sample(*e.model));
  c.program.workload = std::make_shared<const Workload>(std::move(workload));
  check_program(c.program);
  with_error_context(*e.source, "plan", [&](const Value&) {
    if (c.peaks.empty()) check_memory(c.program, *e.cluster, about_device);
  });
  return c;
}

CompiledExperiment compile(const Experiment& e) { return compile(plan_experiment(e)); }

namespace {

/// The longest wait of the devices of a group stands for all of them: in an operation they wait for each other. The
/// copies of a computation follow each other.
void wait_as_group(Timeline& timeline, const UnfoldedProgram& unfolded, int group) {
  if (timeline.core_waits.empty()) return;
  for (const InstructionId leader : unfolded.leaders)
    if (unfolded.program.at(leader).is_compute())
      for (int m = 1; m < group; ++m)
        timeline.core_waits[leader] =
            std::max(timeline.core_waits[leader], timeline.core_waits[InstructionId{leader.value + m}]);
}

/// Times of the first device of each group, which stands for the others in the program; memory of all devices.
Timeline folded(Timeline timeline, const UnfoldedProgram& unfolded, int group) {
  wait_as_group(timeline, unfolded, group);
  const auto fold = [&](auto& column) {
    if (column.empty()) return;
    auto leading = column;
    leading.clear();
    for (const InstructionId leader : unfolded.leaders) leading.push_back(column[leader]);
    column = std::move(leading);
  };
  fold(timeline.start);
  fold(timeline.end);
  fold(timeline.core_waits);
  if (timeline.learnt) fold(timeline.learnt->versions);
  return timeline;
}

}  // namespace

std::string default_backend(const Plan& plan, const Cluster& cluster) {
  return cluster.has_one_queue() || devices_of(plan).size() > kMostDevicesOfReference ? "fluid" : "simgrid";
}

Timeline execute(const CompiledExperiment& c, const std::string& backend, bool one_thread) {
  const Experiment& e = c.experiment;
  const BackendDef& def = get_from(backends::catalog(), "backend", backend);
  if (const std::string why = def.why_not(); !why.empty()) throw BackendError(backend + ": " + why);
  const bool simulated = def.clock == Clock::Simulated;
  if (!simulated) check_real_run(c, backend, network_follows_run());
  const Activity activity(fmt::format("running {} instructions on '{}'", c.program.size(), backend));
  const RunOptions options{.seed = e.run.seed,
                           .one_thread = one_thread,
                           .emulated = e.run.emulated,
                           .time_dilation = e.run.time_dilation,
                           .gpu = e.run.gpu};
  Timeline timeline;
  const std::optional<UnfoldedProgram> unfolded = simulated ? std::nullopt : unfold_for_real_run(c);
  if (unfolded) {
    timeline = folded(def.run(unfolded->program, *e.cluster, options), *unfolded, c.program.group);
  } else {
    std::optional<Cluster> changing;  // Clusters are large; only one that changes is copied.
    if (simulated && !e.cluster->changes.empty()) changing = cluster_of_program(c);
    timeline = def.run(c.program, changing ? *changing : *e.cluster, options);
  }
  timeline.clock = def.clock;
  timeline.provenance = {.backend = backend,
                         .backend_version = def.version(),
                         .stagecraft_version = version(),
                         .machine = simulated ? std::string() : machine_text(timeline),
                         .scenario_hash = e.scenario_hash,
                         .seed = simulated ? e.run.seed : e.training.seed};
  return timeline;
}

namespace {

/// The part of the forward that the stages repeat, for one sample.
Flops recomputed(const CompiledExperiment& c) {
  Flops sum;
  for (const StageId s : c.plan.stages.ids()) {
    const Stage& stage = c.plan.stages[s];
    if (stage.twin.valid() && stage.twin < s) continue;  // Its twin has the same layers.
    const LayerShapes shapes(stage.shape, c.model());
    for (const LayerId l : stage.shape.layers)
      sum += recomputed_work(shapes.shape_of(l).recomputation, c.model().layers[l]);
  }
  return sum;
}

/// What people compare runs by, as far as the program knows tokens and the peak of its devices.
void add_rates(const CompiledExperiment& c, Report& report) {
  const ModelWork& work = c.program.work;
  if (report.rates) {
    DeviceRates& rates = *report.rates;
    if (work.flops.value > 0) rates.hardware_of_peak = rates.of_peak * ((work.flops + recomputed(c)) / work.flops);
    const double tokens = c.program.iterations * c.program.samples() * work.tokens;
    if (tokens > 0 && report.energy.value > 0) rates.joules_per_token = report.energy.value / tokens;
  }
  if (c.experiment.budget.empty()) return;
  const std::vector<DeviceId> used = devices_of(c.plan);
  std::map<std::string, int> used_of_type;
  for (const DeviceId d : used) ++used_of_type[c.cluster().type_of(d).name];
  report.economics =
      economics(c.experiment.budget, used_of_type, report.rates ? report.rates->tokens_per_second * work.devices : 0);
}

}  // namespace

RunView view_of(const CompiledExperiment& c, const Outcome& o) {
  return {&c.plan, c.program, c.cluster(), o.timeline, o.report};
}

Outcome run(const CompiledExperiment& c, const std::string& backend) {
  Outcome o;
  o.timeline = execute(c, backend);
  if (o.timeline.elsewhere) return o;
  stop_point();
  o.report = measure(c.program, o.timeline, *c.experiment.cluster);
  check_finite(o.report.makespan.value);
  if (o.report.instruction_times) o.report.ranks = pipeline_ranks(c.plan, c.program, o.report, *c.experiment.cluster);
  if (c.experiment.plan.offload)
    for (PipelineRank& rank : o.report.ranks)
      for (const StageId s : rank.stages) rank.memory.host += states_on_host(c, c.plan.stages[s]);
  add_rates(c, o.report);
  return o;
}

Bytes fullest_device_memory(const Report& report, const Cluster& cluster) {
  Bytes peak;
  for (const DeviceId d : report.devices.ids()) {
    const MemoryPeak& m = report.devices[d].memory;
    if (!m.fits())
      throw Infeasible("memory",
                       fmt::format("{} needs {} of {} with the messages that are on their way", cluster.devices[d].name,
                                   to_text(m.total), memory_text(m.capacity + m.reserved, m.reserved)));
    peak = std::max(peak, m.total);
  }
  return peak;
}

}  // namespace stagecraft
