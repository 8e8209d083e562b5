// Refuses what is too large for this machine, what simulations do not model, and what a real backend cannot run, before
// time and memory are spent on it.

#include "sim/experiment/limits.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>

#include <fmt/core.h>

#include "sim/core/diagnostic.hpp"
#include "sim/core/host.hpp"
#include "sim/experiment/version.hpp"
#include "sim/program/unfold.hpp"

namespace stagecraft {
namespace {

/// Schedule, program, timeline and what the backend adds: 79 to 101 bytes an instruction on `ideal` and 119 on `fluid`
/// (chains of 3 to 50 million instructions); a whole `run` of 14 million with its report takes 126.
constexpr double kBytesOfInstruction = 132;
constexpr double kMostOfMemory = 0.9;
constexpr double kLongest = 1e40;  // Seconds; what is added to them later stays a number.

}  // namespace

double instructions_of(const Plan& plan, int iterations, bool trains) {
  double count = 0;
  for (const StageId s : plan.stages.ids()) {
    const Stage& stage = plan.stage(s);
    const double pieces =
        static_cast<double>(plan.micro_batches_per_replica(s)) * static_cast<double>(stage.leaders.size());
    count += pieces * (trains ? 2 + stage.shape.recomputes_all() : 1);
  }
  for (const StageEdge& edge : plan.edges) {
    const Stage &from = plan.stage(edge.from), &to = plan.stage(edge.to);
    const auto pieces =
        static_cast<double>(std::max(plan.micro_batches_run(edge.from), plan.micro_batches_run(edge.to)));
    count += pieces * static_cast<double>(std::max(from.leaders.size(), to.leaders.size())) * (trains ? 4 : 2);
  }
  return count * iterations;
}

Bytes memory_of(const Plan& plan, int iterations, bool trains) {
  return {instructions_of(plan, iterations, trains) * kBytesOfInstruction};
}

void check_size(const Plan& plan, int iterations, bool trains) {
  std::int64_t max_micro_batches = 0;
  for (const StageId s : plan.stages.ids())
    max_micro_batches = std::max<std::int64_t>(max_micro_batches, plan.micro_batches(s));
  if (max_micro_batches * iterations > std::numeric_limits<std::int32_t>::max())
    throw Infeasible("size",
                     fmt::format("{} micro-batches in each of {} iterations are more than can be numbered",
                                 max_micro_batches, iterations),
                     "fewer iterations: a few show the period");
  const double count = instructions_of(plan, iterations, trains);
  const Bytes needed = memory_of(plan, iterations, trains), there = free_memory();
  if (needed.value <= kMostOfMemory * there.value) return;
  throw Infeasible("size",
                   fmt::format("the program would have about {:.2g} instructions and take about {} of this machine's "
                               "memory, which has {} free",
                               count, to_text(needed), to_text(there)),
                   "fewer micro-batches or iterations: the period of a long run shows in a short one");
}

void check_finite(double seconds) {
  if (seconds < kLongest) return;
  throw Infeasible("numbers", "the times are too long to compute with",
                   "look for a time, size or bandwidth that is far too large or too small");
}

StageCosts checked(StageCosts costs) {
  for (const StageCost& c : costs.values()) check_finite((c.forward + c.backward + c.update).value);
  return costs;
}

namespace {

using config::Value;

/// Changes and jitter of the cluster that a real run cannot have are refused instead of ignored.
void require_as_rated(const CompiledExperiment& c, const std::string& backend, bool links_change) {
  const Cluster& cluster = *c.experiment.cluster;
  const auto refuse = [&](const char* key, const std::string& what, const char* help) {
    throw InputError({{c.experiment.source->at("cluster").at(key).where, fmt::format("cluster.{}", key),
                       fmt::format("the backend '{}' {}", backend, what), help, "changes"}});
  };
  const bool is_emulated = c.experiment.run.emulated && backend == "cpu";
  const bool has_jitter = cluster.jitter.max_fraction > 0;
  const bool has_link_changes =
      std::any_of(cluster.changes.begin(), cluster.changes.end(), [](const Change& x) { return !x.links.empty(); });
  constexpr const char* kSimulate = "--backend ideal, fluid or simgrid, or leave it out";
  if (!is_emulated && (has_jitter || !cluster.changes.empty()))
    refuse(cluster.changes.empty() ? "jitter" : "changes", "really runs on this machine, which does not change so",
           kSimulate);
  if (has_jitter && has_groups(c.plan))
    refuse("jitter", "gives each device of a group its instructions, and the jitter of a group is one number",
           kSimulate);
  if (has_link_changes && !links_change)
    refuse("changes", "sends real messages over links of this machine, which do not change so",
           "stagecraft validate --network namespaces builds links that do; or --backend ideal, fluid or simgrid");
}

/// The backend cpu computes one sequence after another, without padding. What it does not divide so is refused.
void check_real_packs(const CompiledExperiment& c, const std::string& backend) {
  const PackedBatches* packs = c.experiment.run.packs.get();
  if (!packs) return;
  if (packs->slices > 1)
    throw InputError({{c.experiment.source->at("run").at("schedule").where, "run.schedule.cut",
                       fmt::format("the backend '{}' does not keep the keys and values of earlier slices", backend),
                       "--backend ideal, fluid or simgrid", "loads"}});
  if (c.experiment.run.emulated && backend == "cpu") return;
  const Value* data = c.experiment.source->find("data");
  const auto refuse = [&](const std::string& what) {
    throw InputError(
        {{(data ? data : c.experiment.source->at("run").find("loads"))->where, data ? "data" : "run.loads",
          fmt::format("the backend '{}' {}", backend, what), "--backend ideal, fluid or simgrid", "loads"}});
  };
  if (backend != "cpu") refuse("has arrays of one size for all micro-batches; the backend cpu has others");
  if (has_groups(c.plan)) refuse("divides samples of one length over the devices of a group");
  if (packs->pad > 1) refuse("does not pad sequences");
  for (const Layer& layer : c.experiment.model->layers)
    for (const Operation& op : layer.operations)
      if (op.kind == OperationKind::Prepend || op.kind == OperationKind::FirstRow || op.kind == OperationKind::Dispatch)
        refuse(fmt::format("runs '{}' of layer '{}' on samples of one length alone", to_text(op), layer.name));
}

/// Plans of single tasks, as LayerPipe makes them, do not say where weights go.
void require_whole_stages(const Plan& plan, const std::string& backend) {
  if (!plan.has_whole_stages())
    throw InputError(fmt::format("the backend '{}' really trains, which plans of single tasks, as of stage '{}', are "
                                 "too coarse for: they do not say where weights go",
                                 backend, plan.stages.front().name),
                     "--backend ideal or simgrid, or another planner");
}

}  // namespace

namespace {

/// Collectives as messages need the mesh, and one order of the ops on all devices of it.
void check_flows(const Experiment& e) {
  const PlanSpec& plan = e.plan;
  const bool divides = plan.group.divides();
  const auto refuse = [&](const char* what, const char* help) {
    throw InputError({{plan.where(divides ? "group" : "shard"), "plan", what, help, "collectives"}});
  };
  if (!divides && plan.sharding == StateSharding::None) return;
  if (!e.run.lowering.overlap)
    refuse("collectives inside ops are played as messages only with run.overlap: true", "run.collectives: cost");
  if (plan.share == Share::MicroBatches)
    refuse("replicas that take micro-batches in turn do not meet in collectives that are played as messages",
           "run.collectives: cost");
}

/// What is not known yet of passes for a vocabulary that all ranks divide.
void check_vocabulary(const Experiment& e) {
  const auto refuse = [&](const char* field, const std::string& what, const std::string& help) {
    throw InputError({{e.source->at("run").at(field).where, fmt::format("run.{}", field), what, help, "vocabulary"}});
  };
  if (!e.run.lowering.overlap)
    refuse("overlap", "the sums of scores that all ranks divide run next to computation alone", "overlap: true");
  if (e.run.buckets)
    refuse("gradient_buckets", "gradients of a vocabulary that all ranks divide are not summed in buckets yet",
           "leave it out, or plan.vocabulary: ends");
}

}  // namespace

void check_group_policy(const PlannedExperiment& p) {
  const Experiment& e = p.experiment;
  if (p.plan.vocabulary) check_vocabulary(e);
  const PlanSpec& plan = e.plan;
  const auto any_stage = [&](auto&& has) {
    return std::any_of(p.plan.stages.begin(), p.plan.stages.end(), [&](const Stage& s) { return has(s.shape); });
  };
  if (e.run.collectives_flow) {
    check_flows(e);
    const bool has_twins =
        std::any_of(p.plan.stages.begin(), p.plan.stages.end(), [](const Stage& s) { return s.twin.valid(); });
    if (has_twins && any_stage([](const StageShape& s) { return s.shard_within > 0; }))
      throw InputError({{plan.where("shard"), "plan.shard.within",
                         "sums within groups that span both directions of a pipeline are not played as messages yet",
                         "run.collectives: cost", "collectives"}});
    for (const Reduction& r : derive_reductions(p.plan, p.model()))
      for (const StageId s : r.stages)
        if (p.plan.stage(s).shape.degrees.group() != p.plan.stage(r.stages.front()).shape.degrees.group())
          throw InputError({{plan.where("stages"), "plan.stages",
                             "weights that stages with different groups tie are not summed by messages yet",
                             "run.collectives: cost", "collectives"}});
  }
  if (!e.software().prices && any_stage([](const StageShape& s) { return s.recomputes_operations(); }))
    throw InputError({{plan.where("recompute"), "plan.recompute",
                       "only a software stack prices the operations whose outputs are computed again",
                       "software: plain, or another recompute", "recompute"}});
  if (e.schedule.flushes() || !has_groups(p.plan)) return;
  if (!e.schedule.def->trains) return;
  throw InputError(
      {{plan.where(plan.group.divides() ? "group" : "shard"), "plan",
        fmt::format("the schedule '{}' updates weights while micro-batches are under way, and nothing says "
                    "what a group or divided states do then",
                    e.schedule.name()),
        "a schedule with a flush, such as 1f1b", "group"}});
}

namespace {

/// Each message says what exactly is missing.
void check_real_groups(const CompiledExperiment& c, const std::string& backend) {
  if (!has_groups(c.plan)) return;
  const PlanSpec& plan = c.experiment.plan;
  const auto refuse = [&](const std::string& what, const std::string& help) {
    throw InputError({{plan.where(plan.group.divides() ? "group" : "shard"), "plan",
                       fmt::format("the backend '{}' {}", backend, what), help, "group"}});
  };
  if (backend != "cpu" && backend != "cuda")
    refuse("runs no groups of devices and no divided states yet",
           "--backend cpu, cuda, ideal, fluid or simgrid; or take group and shard out of the plan");
  if (std::any_of(c.plan.stages.begin(), c.plan.stages.end(), [](const Stage& s) { return s.shape.shard_within > 0; }))
    refuse("divides states over all replicas alone, not within groups of them",
           "shard without within; or --backend ideal, fluid or simgrid");
  const bool has_pairs = std::any_of(c.plan.stages.ids().begin(), c.plan.stages.ids().end(), [&](StageId s) {
    const Written written = c.costs.at(s, 0).written();
    return written == Written::Exchanges || written == Written::Braided;
  });
  if (has_pairs)
    throw InputError(
        {{c.experiment.source->at("run").at("schedule").where, "run.schedule",
          fmt::format("the backend '{}' runs ops one after the other, so none hides what another exchanges", backend),
          "run.overlap: false, which runs them so in a simulation too; or --backend ideal or fluid", "schedule"}});
  if (c.experiment.run.emulated) return;
  if (c.experiment.run.each_device)
    throw InputError({{c.experiment.source->at("run").at("detail").where, "run.detail",
                       fmt::format("the backend '{}' gives each device its instructions anyway", backend),
                       "leave it out, or --backend ideal, fluid or simgrid", "detail"}});
  if (c.experiment.run.collectives_flow)
    throw InputError({{c.experiment.source->at("run").at("collectives").where, "run.collectives",
                       fmt::format("the backend '{}' sends the messages of collectives anyway", backend),
                       "leave it out, or --backend ideal, fluid or simgrid", "collectives"}});
  const StageShape& shape = c.plan.stages.front().shape;
  for (const Layer& layer : c.experiment.model->layers)
    for (const Operation& op : layer.operations)
      if (op.kind == OperationKind::Attention && head_shape(op).key_value_heads % shape.degrees.tensor != 0)
        refuse(fmt::format("copies no key-value heads, and tensor {} does not divide the {} of layer '{}'",
                           shape.degrees.tensor, head_shape(op).key_value_heads, layer.name),
               fmt::format("a divisor of {}; or --backend ideal, fluid or simgrid", head_shape(op).key_value_heads));
}

/// Threads or streams copy stashes; nothing else of `plan.offload` really happens.
void check_real_offload(const CompiledExperiment& c, const std::string& backend) {
  const std::optional<Offload>& offload = c.experiment.plan.offload;
  if (!offload) return;
  const auto refuse = [&](const std::string& what, const std::string& help) {
    throw InputError({{c.experiment.plan.where("offload"), "plan.offload", what, help, "offload"}});
  };
  if (backend != "cpu" && has_groups(c.plan))
    refuse(fmt::format("the backend '{}' enqueues the instructions of a group of devices together, and copies of one "
                       "device are none of them",
                       backend),
           "--backend cpu, ideal, fluid or simgrid; or take group and shard, or offload, out of the plan");
  if (c.experiment.run.emulated)
    refuse("with run.compute: emulated devices sleep and keep nothing that could be copied",
           "run.compute: real; or --backend ideal, fluid or simgrid");
  if (offload->optimizer > 0)
    refuse(fmt::format("the backend '{}' updates weights where they are, and not on a host", backend),
           "--backend ideal, fluid or simgrid; or take optimizer out of offload");
}

/// Whoever exchanges what ranks have of the words joins their scores.
void check_real_vocabulary(const CompiledExperiment& c, const std::string& backend) {
  if (!c.plan.vocabulary || backend == "cpu") return;
  const auto refuse = [&](const std::string& what, const std::string& help) {
    throw InputError({{c.experiment.plan.where("vocabulary"), "plan.vocabulary",
                       fmt::format("the backend '{}' {}", backend, what), help, "vocabulary"}});
  };
  if (backend != "cuda")
    refuse("has no kernels that join the scores of several ranks",
           "--backend cpu, cuda, ideal, fluid or simgrid; or vocabulary: ends");
  if (c.experiment.model->precision.weight == 2)
    refuse("has no products of 16 bits that give the gradient of the input of the scores in 32",
           "--set model.precision=fp32; --backend cpu; or vocabulary: ends");
}

}  // namespace

void check_real_run(const CompiledExperiment& c, const std::string& backend, bool links_change) {
  check_real_vocabulary(c, backend);
  check_real_offload(c, backend);
  const StageShape& shape = c.plan.stages.front().shape;
  check_real_groups(c, backend);
  check_real_packs(c, backend);
  for (const Reduction& r : c.plan.reductions)
    if (!r.buckets.empty() && r.scatters)
      throw InputError({{c.experiment.source->at("run").at("gradient_buckets").where, "run.gradient_buckets",
                         fmt::format("the backend '{}' sums a divided gradient at once, because each rank keeps a "
                                     "part of the whole",
                                     backend),
                         "none, or plan.shard=none; or --backend ideal, fluid or simgrid", "buckets"}});
  if (shape.recomputes_layers() || shape.recomputes_half() || shape.recomputes_operations())
    throw InputError(fmt::format("the backend '{}' does not recompute layer by layer", backend),
                     "recompute: full, selective or none");
  require_whole_stages(c.plan, backend);
  require_as_rated(c, backend, links_change);
}

std::string machine_text(const Timeline& timeline) {
  const std::string& devices = timeline.provenance.machine;
  return devices.empty() ? machine() : machine() + ", " + devices;
}

}  // namespace stagecraft
