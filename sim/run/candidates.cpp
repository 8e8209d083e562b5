#include "sim/run/candidates.hpp"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "sim/run/limits.hpp"
#include "sim/run/run.hpp"

namespace stagecraft {
namespace {

constexpr int kMostStates = 200'000, kMostSteps = 5'000'000;  // Of one plan: a fraction of a second.
constexpr int kMostMicroBatches = 32;  // Of each rank, or as many as the scenario has; more hide little.

/// 1, 2, 3 ... up to eight, then powers of two, and `most`.
std::vector<int> counts_up_to(int most) {
  std::vector<int> counts;
  for (int n = 1; n <= most; n = n < 8 ? n + 1 : 2 * n) counts.push_back(n);
  if (counts.back() != most) counts.push_back(most);
  return counts;
}

/// Those that search where to cut, and how often. `explicit` searches for nothing, `layerpipe` makes no stages, and
/// `brute` finds what others find.
bool is_tried(const PlannerDef& def) {
  return def.name != "balanced" && def.name != "explicit" && def.name != "layerpipe" && def.name != "brute";
}

/// For a planner that can say how far it looks.
std::string effort_of(const PlannerDef& def) {
  if (def.fields->find("states")) return fmt::format(", states: {}", kMostStates);
  return def.fields->find("steps") ? fmt::format(", steps: {}", kMostSteps) : std::string();
}

/// What each device does and keeps whatever the order of work: its computations, weights, and one micro-batch.
struct Load {
  std::vector<Seconds> busy;
  std::vector<Bytes> held;
};

Load load_of(const Prepared& p) {
  Load load{std::vector<Seconds>(p.cluster.devices.size()), std::vector<Bytes>(p.cluster.devices.size())};
  // Of stages that recompute one at a time has all of its stash; of two copies one alone may have a micro-batch.
  std::vector<Bytes> largest(load.held);
  for (int s = 0; s < p.plan.stage_count(); ++s) {
    const Stage& stage = p.plan.stage(StageId{s});
    for (std::size_t r = 0; r < stage.devices.size(); ++r) {
      const StageCost& c = p.costs[s][r];
      const bool in_turn = stage.recompute || stage.twin.valid();
      const auto d = static_cast<std::size_t>(stage.devices[r]);
      const Seconds backward = std::min(c.backward, c.input_gradient + c.weight_gradient);
      const Seconds each = c.forward + backward + (stage.recompute ? c.recompute : Seconds{0});
      load.busy[d] += p.plan.replica_micro_batches(StageId{s}) * each + c.update;
      load.held[d] += c.weights + c.gradients + c.optimizer + (in_turn ? Bytes{0} : c.stash);
      if (in_turn) largest[d] = std::max(largest[d], c.stash);
    }
  }
  for (std::size_t d = 0; d < largest.size(); ++d) load.held[d] += largest[d];
  return load;
}

/// A placement; in both directions with the schedule that divides the micro-batches.
using Way = std::pair<Placement, std::string>;

class Maker {
 public:
  Maker(const CandidateOptions& asked, const std::function<void(const std::string&)>& progress)
      : asked_(asked), progress_(progress), own_(load_scenario(asked.file, asked.sets)) {
    const Prepared p = lay_out(own_);
    samples_ = p.plan.mini_batch;
    layers_ = static_cast<int>(p.model.layers.size());
    recomputations_ = recompute_words(p.model);
    for (const int start : {1, p.plan.stages.front().micro_batch_size}) {
      for (std::int64_t size = start; size <= samples_; size *= 2) sizes_.insert(static_cast<int>(size));
      for (int size = start; size % 2 == 0; size /= 2) sizes_.insert(size / 2);
    }
    std::erase_if(sizes_, [&](int size) { return samples_ % size != 0; });
    std::vector<std::pair<double, std::size_t>> speed;
    for (std::size_t d = 0; d < p.cluster.devices.size(); ++d)
      speed.emplace_back(-p.cluster.types[p.cluster.devices[d].type].peak.value, d);
    std::stable_sort(speed.begin(), speed.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    for (const auto& s : speed) fastest_.push_back(s.second);
    for (const Device& d : p.cluster.devices) names_.push_back(d.name);
    for (const ScheduleDef* def : asked.schedules) {
      const bool both_ways = placement_of(*def) == Placement::Bidirectional;
      ways_.emplace(placement_of(*def), both_ways ? std::string(def->name) : std::string());
    }
  }

  Candidates make() {
    even_cuts();
    for (const PlannerDef* def : planners::all())
      if (is_tried(*def)) plans_of(*def);
    std::stable_sort(made_.list.begin(), made_.list.end(),
                     [](const Candidate& a, const Candidate& b) { return a.bound.period < b.bound.period; });
    return std::move(made_);
  }

 private:
  void even_cuts() {
    const int devices = static_cast<int>(names_.size());
    for (const int ranks : counts_up_to(devices))
      for (const int replicas : counts_up_to(devices / ranks))
        for (const int size : sizes_)
          for (const Way& way : ways_)
            for (const std::string& recompute : recomputations_) {
              const bool once = way.first == Placement::Linear || way.first == Placement::Bidirectional;
              const int stages = once ? ranks : 2 * ranks;
              if (size < replicas || stages > layers_) continue;
              if (samples_ / size > std::max(own_.micro_batches, kMostMicroBatches * ranks)) continue;
              progress_(fmt::format("{} stages, {} replicas, micro-batches of {}", stages, replicas, size));
              add("balanced", way, size, recompute,
                  fmt::format(", stages: {}, replicas: {}, devices: [{}]", stages, replicas,
                              fastest(ranks * replicas)));
            }
  }

  void plans_of(const PlannerDef& def) {
    const Way linear{Placement::Linear, {}};
    if (!ways_.contains(linear) || !def.fields->find("micro_batch_size")) return;
    for (const int size : sizes_)
      for (const std::string& recompute : recomputations_) {
        if (recompute != "none" && !def.fields->find("recompute")) continue;
        if (samples_ / size > std::max(own_.micro_batches, kMostMicroBatches * static_cast<int>(names_.size())))
          continue;
        progress_(fmt::format("{}, micro-batches of {}", def.name, size));
        add(def.name, linear, size, recompute, effort_of(def));
      }
  }

  std::string fastest(int count) const {
    std::vector<std::size_t> chosen(fastest_.begin(), fastest_.begin() + count);
    std::sort(chosen.begin(), chosen.end());
    std::vector<std::string> devices;
    for (const std::size_t d : chosen) devices.push_back(fmt::format("\"{}\"", names_[d]));
    return join(devices);
  }

  void add(std::string_view planner, const Way& way, int size, const std::string& recompute, const std::string& more) {
    ++made_.plans;
    Candidate c;
    c.placement = way.first;
    c.both_ways = way.second;
    const bool named = c.placement != Placement::Linear && c.both_ways.empty();
    c.plan = fmt::format("{{planner: {}, micro_batch_size: {}{}{}{}}}", planner, size,
                         recompute == "none" ? "" : ", recompute: " + recompute,
                         named ? fmt::format(", placement: {}", to_text(c.placement)) : "", more);
    c.bound.planner = planner;
    c.bound.micro_batch_size = size;
    c.bound.micro_batches = samples_ / size;
    c.bound.placement = to_text(c.placement);
    try {
      if (complete(c)) made_.list.push_back(std::move(c));
    } catch (const Infeasible&) {
    } catch (const InputError&) {  // The planner wants other devices, or more micro-batches than can be counted.
    }
  }

  /// False when not even the weights fit.
  bool complete(Candidate& c) {
    std::vector<std::string> sets = asked_.sets;
    sets.push_back("plan=" + c.plan);
    sets.push_back(fmt::format("run.micro_batches={}", c.bound.micro_batches));
    sets.push_back("run.schedule=" + (c.both_ways.empty() ? "1f1b" : c.both_ways));
    sets.emplace_back("weights=auto");
    const Prepared p = lay_out(load_scenario(asked_.file, sets));
    if (instructions_of(p.plan, asked_.iterations, true) > asked_.most_instructions) {
      made_.cut_short = true;
      return false;
    }
    std::set<DeviceId> used;
    for (const Stage& stage : p.plan.stages) {
      used.insert(stage.devices.begin(), stage.devices.end());
      c.bound.replicas = std::max(c.bound.replicas, static_cast<int>(stage.devices.size()));
      if (stage.recompute_cores && c.bound.recompute == "none") c.bound.recompute = "selective";
      if (stage.recompute) c.bound.recompute = "full";
    }
    c.bound.devices = static_cast<int>(used.size());
    c.bound.stages = p.plan.different_stages();
    const Load load = load_of(p);
    c.bound.period = *std::max_element(load.busy.begin(), load.busy.end());
    c.bound.memory = *std::max_element(load.held.begin(), load.held.end());
    for (std::size_t d = 0; d < load.held.size(); ++d) {
      const Bytes there = p.cluster.types[p.cluster.devices[d].type].usable_memory();
      if (there.value > 0 && load.held[d] > there) return false;
    }
    return true;
  }

  const CandidateOptions& asked_;
  const std::function<void(const std::string&)>& progress_;
  Scenario own_;
  Candidates made_;
  std::set<Way> ways_;
  int samples_ = 1, layers_ = 1;
  std::vector<std::string> recomputations_;
  std::set<int> sizes_;               ///< Of micro-batches: powers of two, and the scenario's times and by them.
  std::vector<std::string> names_;    ///< Of the devices.
  std::vector<std::size_t> fastest_;  ///< Devices, the one with the highest peak first.
};

}  // namespace

Placement placement_of(const ScheduleDef& def) {
  return def.placement == Placement::Any ? Placement::Linear : def.placement;
}

Candidates candidate_plans(const CandidateOptions& asked, const std::function<void(const std::string&)>& progress) {
  return Maker(asked, progress).make();
}

}  // namespace stagecraft
