// Moves stashes of a compiled experiment to host memory: which forwards are late, what moves, and the least shares that
// fit, by simulations on `ideal`.

#include "sim/experiment/offloading.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>
#include <vector>

#include <fmt/core.h>

#include "backends/backend.hpp"
#include "sim/core/text.hpp"
#include "sim/cost/offloaded_arrays.hpp"
#include "sim/plan/host_optimizer.hpp"
#include "sim/plan/overlap.hpp"
#include "sim/program/check.hpp"
#include "sim/program/offload.hpp"
#include "sim/result/memory.hpp"

namespace stagecraft {
namespace {

/// Share of each stash by stage and device.
using Shares = std::map<std::pair<StageId, DeviceId>, double>;

Timeline on_ideal(const Program& program, const Cluster& cluster) {
  return get_from(backends::catalog(), "backend", "ideal").run(program, cluster, {});
}

IdVector<DeviceId, MemoryNeed> peaks_of(const Program& program, const Timeline& timeline, const Cluster& cluster) {
  IdVector<DeviceId, MemoryNeed> peaks;
  for (const MemoryPeak& peak : MemoryHistory(program, timeline).peaks(cluster)) peaks.push_back({peak.total, peak.at});
  return peaks;
}

/// Whether a stage is one of the first chunks of its device.
bool has_chunk(const Plan& plan, StageId s, DeviceId device, int chunks) {
  int before = 0;
  for (const StageId other : plan.stages.ids()) {
    if (other == s) break;
    const auto& leaders = plan.stage(other).leaders;
    before += std::find(leaders.begin(), leaders.end(), device) != leaders.end();
  }
  return chunks == 0 || before < chunks;
}

/// Stages of a device, the one whose stashes live longest first.
IdVector<DeviceId, std::vector<StageId>> by_lifetime(const CompiledExperiment& c, const Timeline& t, int chunks) {
  IdVector<DeviceId, std::map<StageId, std::pair<double, int>>> lives(c.program.devices);
  for (const Buffer& b : c.program.buffers)
    if (b.kind == BufferKind::Stash) {
      auto& [sum, count] = lives[b.device][c.program.at(b.allocated_by).stage];
      sum += t.end[b.freed_by] - t.start[b.allocated_by], ++count;
    }
  IdVector<DeviceId, std::vector<StageId>> order(c.program.devices);
  for (const DeviceId d : lives.ids()) {
    for (const auto& [stage, life] : lives[d])
      if (has_chunk(c.plan, stage, d, chunks)) order[d].push_back(stage);
    const auto mean = [&](StageId s) { return lives[d].at(s).first / lives[d].at(s).second; };
    std::stable_sort(order[d].begin(), order[d].end(), [&](StageId a, StageId b) { return mean(a) > mean(b); });
  }
  return order;
}

bool fits(Bytes need, const DeviceType& type) {
  return type.usable_memory().value <= 0 || need <= type.usable_memory();
}

bool fits(const IdVector<DeviceId, MemoryNeed>& peaks, const Cluster& cluster) {
  const auto ids = peaks.ids();
  return std::all_of(ids.begin(), ids.end(), [&](DeviceId d) { return fits(peaks[d].total, cluster.type_of(d)); });
}

/// How much of each stash may leave its device: the inputs of `plan.offload.modules` or all of it, less what a rank
/// keeps in addition to those before it, without keys and values that later slices read there.
class MovableStashes {
 public:
  explicit MovableStashes(const CompiledExperiment& c) : c_(c), offload_(*c.experiment.plan.offload) {}

  /// The share of its stash that goes to the host, of a wanted share of what may go.
  double share_of(const Instruction& forward, double wanted) {
    const Stage& stage = c_.plan.stage(forward.stage);
    const int replica = place_of(stage.leaders, forward.device), load = c_.plan.loads.at(forward.number, replica);
    const auto [entry, is_new] = parts_.try_emplace({forward.stage, replica, load});
    if (is_new) entry->second = parts_of(forward.stage, replica, load);
    const Parts& parts = entry->second;
    return std::clamp(wanted * parts.named - parts.kept_more, 0.0, parts.limit);
  }

 private:
  /// Shares of a whole stash.
  struct Parts {
    double named = 1, kept_more = 0, limit = 1;
  };

  Parts parts_of(StageId s, int replica, int load) const {
    const Bytes whole = c_.costs.at(s, replica, load).memory.stash;
    if (whole.value <= 0) return {};
    const Stage& stage = c_.plan.stage(s);
    const Load of_micro = load == LoadTable::kMean ? load_at_once(stage, replica) : c_.plan.loads.classes[load];
    const CostTable& costs = *c_.experiment.costs;
    Bytes stays;
    if (c_.plan.loads.slices > 1)
      for (const LayerId id : stage.shape.layers) stays += keys_and_values(costs, stage.shape, id, of_micro);
    Parts parts;
    parts.limit = std::max(0.0, 1 - stays / whole);
    parts.kept_more = rank_of(stage.leaders[replica]) * offload_.less / whole;
    if (offload_.modules.empty()) return parts;
    Bytes named = module_inputs(c_.model(), stage.shape, of_micro, offload_.modules, &costs.rules());
    if (std::find(offload_.modules.begin(), offload_.modules.end(), "core_attn") != offload_.modules.end())
      named -= stays;
    parts.named = std::max(0.0, named / whole);
    return parts;
  }

  /// The place of a device in the pipeline: each rank begins with one of the first stages.
  int rank_of(DeviceId device) const {
    for (const StageId s : c_.plan.stages.ids())
      if (place_of(c_.plan.stage(s).leaders, device) >= 0) return static_cast<int>(s.value);
    return 0;
  }

  const CompiledExperiment& c_;
  const Offload& offload_;
  std::map<std::tuple<StageId, int, int>, Parts> parts_;  ///< [stage, replica, class of load]
};

double share_in(const Shares& shares, const Instruction& forward) {
  const auto entry = shares.find({forward.stage, forward.device});
  return entry == shares.end() ? 0 : entry->second;
}

/// Searches the least shares of what may move with which each device fits.
class LeastShares {
 public:
  LeastShares(const CompiledExperiment& c, const Program& program, const Timeline& base, const Cluster& cluster,
              MovableStashes& movable)
      : c_(c),
        program_(program),
        base_(base),
        cluster_(cluster),
        movable_(movable),
        order_(by_lifetime(c, base, offload().chunks)) {}

  /// Halves the distance between too little and enough on all devices at once, down to a hundredth of a stash.
  Shares run() {
    IdVector<DeviceId, double> low(program_.devices, 0), high(low);
    for (const DeviceId d : high.ids()) high[d] = static_cast<double>(order_[d].size());
    const IdVector<DeviceId, char> fit_without = fitting(low);
    for (const DeviceId d : high.ids())
      if (fit_without[d]) high[d] = 0;
    constexpr double kFinest = 0.01;
    for (double step = *std::max_element(high.begin(), high.end()); step > kFinest; step /= 2) {
      IdVector<DeviceId, double> middle = high;
      for (const DeviceId d : middle.ids()) middle[d] = (low[d] + high[d]) / 2;
      const IdVector<DeviceId, char> fit = fitting(middle);
      for (const DeviceId d : middle.ids()) (fit[d] ? high : low)[d] = middle[d];
    }
    return shares(high);
  }

 private:
  const Offload& offload() const { return *c_.experiment.plan.offload; }

  /// The longest-lived stashes first: 1.5 is all of the first stage and half of the second.
  Shares shares(const IdVector<DeviceId, double>& amounts) const {
    Shares shares;
    for (const DeviceId d : amounts.ids())
      for (std::size_t k = 0; k < order_[d].size(); ++k)
        shares[{order_[d][k], d}] = std::clamp(amounts[d] - static_cast<double>(k), 0.0, 1.0);
    return shares;
  }

  IdVector<DeviceId, char> fitting(const IdVector<DeviceId, double>& amounts) const {
    const Shares tried = shares(amounts);
    const auto share = [&](const Instruction& i) { return movable_.share_of(i, share_in(tried, i)); };
    const Program program = with_offloaded_stashes(program_, c_.plan, cluster_, base_, offload().ahead, share, true);
    const IdVector<DeviceId, MemoryNeed> peaks = peaks_of(program, on_ideal(program, cluster_), cluster_);
    IdVector<DeviceId, char> fit;
    for (const DeviceId d : peaks.ids()) fit.push_back(fits(peaks[d].total, cluster_.type_of(d)));
    return fit;
  }

  const CompiledExperiment& c_;
  const Program& program_;
  const Timeline& base_;
  const Cluster& cluster_;
  MovableStashes& movable_;
  IdVector<DeviceId, std::vector<StageId>> order_;
};

[[noreturn]] void refuse(const Experiment& e, const std::string& what, const std::string& help) {
  throw InputError({{e.plan.where("offload"), "plan.offload", what, help, "offload"}});
}

/// Parameters of each device of a stage that its host updates.
double updated_by_host(const PlannedExperiment& p, const Stage& stage) {
  const DeviceParameters parameters = device_parameters(stage.shape, p.model());
  return p.experiment.plan.offload->optimizer *
         (parameters.dense / stage.shape.shards() + parameters.experts / stage.shape.expert_shards());
}

/// [index in Cluster::memories]: that of all devices of a host.
std::vector<double> updated_by_hosts(const PlannedExperiment& p) {
  std::vector<double> parameters(p.cluster().memories.size(), 0);
  for (const Stage& stage : p.plan.stages)
    for (const DeviceId d : stage.all_devices())
      parameters[p.cluster().devices[d].host_memory] += updated_by_host(p, stage);
  return parameters;
}

/// Adam's moments are what a host can have.
void check_optimizer(const PlannedExperiment& p) {
  const Experiment& e = p.experiment;
  for (const HostMemory& memory : p.cluster().memories)
    if (!memory.access.valid())
      refuse(e, "an optimizer on the host takes as long as the memory of the host, whose rate is not known",
             "cluster.host.bandwidth, such as 200 GB/s; or take optimizer out of offload");
  if (e.has_training && e.training.optimizer.kind != OptimizerKind::Adam &&
      e.training.optimizer.kind != OptimizerKind::AdamW)
    refuse(
        e,
        fmt::format("the optimizer {} has no two moments that a host could have", to_text(e.training.optimizer.kind)),
        "training.optimizer: adam; or take optimizer out of offload");
  if (!e.schedule.flushes())
    refuse(e,
           fmt::format("the schedule '{}' has several versions of the weights, which nothing says how a host updates",
                       e.schedule.name()),
           "a schedule with a flush, such as 1f1b; or take optimizer out of offload");
}

/// Whether a layer of the model keeps an input of the module.
bool has_module(const ModelGraph& model, const std::string& module) {
  return std::any_of(model.layers.begin(), model.layers.end(), [&](const Layer& layer) {
    const std::vector<KeptArray> arrays = kept_arrays(layer.operations);
    return std::any_of(arrays.begin(), arrays.end(),
                       [&](const KeptArray& a) { return is_input_of({module}, a, layer.operations); });
  });
}

void check_modules(const PlannedExperiment& p) {
  const std::vector<std::string>& modules = p.experiment.plan.offload->modules;
  for (const std::string& module : modules)
    if (!has_module(p.model(), module))
      refuse(p.experiment, fmt::format("no layer of the model has the module {}", module),
             "take it out of plan.offload.modules");
  for (const Stage& stage : p.plan.stages)
    if (!modules.empty() && (stage.shape.recomputes_layers() || stage.shape.recomputes_half()))
      refuse(p.experiment,
             fmt::format("stage '{}' recomputes {}layers, of which it keeps little more than their inputs", stage.name,
                         stage.shape.recomputed_layers > 0 ? "some " : ""),
             "recompute: none or a list of modules; or take modules out of offload");
}

}  // namespace

void check_offload(const PlannedExperiment& p) {
  const Experiment& e = p.experiment;
  const Offload& offload = *e.plan.offload;
  for (const DeviceId d : devices_of(p.plan))
    if (p.cluster().devices[d].host_memory < 0)
      refuse(e,
             fmt::format("the cluster does not describe the memory of the host of '{}'", p.cluster().devices[d].name),
             "cluster.host: {memory: 1 TiB, down: {bandwidth: 25 GB/s}}, with the rates of its copies");
  if (offload.optimizer > 0) check_optimizer(p);
  if (!offload.moves_stashes()) return;
  if (!e.run.lowering.overlap)
    refuse(e, "with run.overlap: false nothing is copied while a device computes", "run.overlap: true");
  if (!p.plan.has_whole_stages())
    refuse(e, "the plan has stages for single tasks, which leave no stash for a backward", "another planner");
  if (!e.schedule.def->trains) refuse(e, "forwards alone keep nothing for a backward", "a schedule that trains");
  for (const Stage& stage : p.plan.stages)
    if (stage.shape.recomputes_all())
      refuse(e,
             fmt::format("stage '{}' recomputes all, so it keeps its input alone, which the recomputation reads before "
                         "the backward",
                         stage.name),
             "recompute: layers, which keeps the input of each layer; or recompute: none");
  check_modules(p);
}

Bytes states_on_host(const PlannedExperiment& p, const Stage& stage) {
  return {kMomentBytes * updated_by_host(p, stage)};
}

void offload_optimizer(PlannedExperiment& p) {
  const Experiment& e = p.experiment;
  const Offload& offload = *e.plan.offload;
  const Cluster& cluster = p.cluster();
  const std::vector<double> on_host = updated_by_hosts(p);
  const Router router(cluster);
  for (const StageId s : p.plan.stages.ids()) {
    const Stage& stage = p.plan.stage(s);
    for (std::size_t r = 0; r < stage.leaders.size(); ++r) {
      const DeviceId d = stage.leaders[r];
      const HostMemory& host = cluster.memories[cluster.devices[d].host_memory];
      const double parameters = updated_by_host(p, stage);
      const Seconds time = host_update_time(e.model->precision, parameters, on_host[cluster.devices[d].host_memory],
                                            router.require(d, DeviceId{}), router.require(DeviceId{}, d),
                                            cluster.links[host.access].bandwidth, offload.beside);
      StageCost& cost = p.costs.at(s, static_cast<int>(r));
      cost.update_parts.optimizer = (1 - offload.optimizer) * cost.update_parts.optimizer + time;
      cost.update = cost.update_parts.total();
      cost.memory.optimizer = cost.memory.optimizer - states_on_host(p, stage);
    }
  }
}

namespace {

void check_hosts(const CompiledExperiment& c, const Timeline& timeline) {
  const std::vector<HostMemory>& memories = c.cluster().memories;
  const std::vector<Bytes> peaks = host_peaks(c.program, timeline, c.cluster());
  for (std::size_t m = 0; m < peaks.size(); ++m)
    if (peaks[m] > memories[m].capacity)
      throw Infeasible("host-memory",
                       fmt::format("the host '{}' would keep {}, and has {}", memories[m].host, to_text(peaks[m]),
                                   to_text(memories[m].capacity)),
                       "a smaller share in plan.offload, or a larger cluster.host.memory");
}

}  // namespace

void offload(CompiledExperiment& c) {
  const Offload& offload = *c.experiment.plan.offload;
  if (offload.optimizer > 0) {
    c.program.host_states.clear();
    for (const double parameters : updated_by_hosts(c)) c.program.host_states.push_back({kMomentBytes * parameters});
  }
  if (!offload.moves_stashes()) return check_hosts(c, {});
  const Cluster rated = without_changes(c.cluster());
  Program program = c.program;
  Timeline base = on_ideal(program, rated);
  if (offload.selective && fits(peaks_of(program, base, rated), rated)) return check_hosts(c, base);
  if (offload.late) {
    program = with_late_forwards(std::move(program), base);
    base = on_ideal(program, rated);
  }
  MovableStashes movable(c);
  const Shares selected = offload.selective ? LeastShares(c, program, base, rated, movable).run() : Shares{};
  const auto share = [&](const Instruction& i) {
    if (offload.selective) return movable.share_of(i, share_in(selected, i));
    return has_chunk(c.plan, i.stage, i.device, offload.chunks) ? movable.share_of(i, offload.activations) : 0;
  };
  program = with_offloaded_stashes(std::move(program), c.plan, rated, base, offload.ahead, share, offload.selective);
  if (!copies_stashes(program)) return check_hosts(c, {});  // Then no forward has to be late.
  c.program = std::move(program);
  const Timeline planned = on_ideal(c.program, rated);
  c.peaks = peaks_of(c.program, planned, rated);
  check_hosts(c, planned);
}

}  // namespace stagecraft
