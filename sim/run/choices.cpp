#include "sim/run/choices.hpp"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "backends/backend.hpp"
#include "sim/run/limits.hpp"
#include "sim/run/run.hpp"
#include "sim/schedule/builder.hpp"

namespace stagecraft {
namespace {

const std::vector<std::string> kUsual = {"1f1b",   "gpipe",       "eager-1f1b",     "zb-h1", "zb-2p",
                                         "v-half", "interleaved", "interleaved-zb", "zb-v",  "v-min"};
constexpr int kIterations = 5;
constexpr double kMostInstructions = 1e6;  // Of one simulation, which takes less than a second.
constexpr int kMostMicroBatches = 32;      // Of each rank, or as many as the scenario has; more hide little.

/// Stages in a line on some devices, with micro-batches of a size: what every schedule of a placement has in common.
struct Cut {
  int ranks = 1, replicas = 1, size = 1;
  Placement placement = Placement::Linear;
  bool recompute = false;
  int chunks() const { return placement == Placement::Linear ? 1 : 2; }
  int stages() const { return ranks * chunks(); }
};

/// What a cut cannot beat, whatever the order of work.
struct Bounded {
  Cut cut;
  Choice bound;
};

/// 1, 2, 3 ... up to eight, then powers of two, and `most`.
std::vector<int> counts_up_to(int most) {
  std::vector<int> counts;
  for (int n = 1; n <= most; n = n < 8 ? n + 1 : 2 * n) counts.push_back(n);
  if (counts.back() != most) counts.push_back(most);
  return counts;
}

Placement placement_of(const ScheduleDef& def) {
  return def.placement == Placement::Any ? Placement::Linear : def.placement;
}

class ChoiceSearch {
 public:
  ChoiceSearch(const ChoiceOptions& asked, const std::function<void(const std::string&)>& progress)
      : asked_(asked), progress_(progress), own_(load_scenario(asked.file, asked.sets)) {
    for (const std::string& name : asked.schedules.empty() ? kUsual : asked.schedules) {
      const ScheduleDef& def = get_from(schedules::all(), "schedule", name);
      const Placement p = placement_of(def);
      if (!def.trains || def.name == "csv" || (p != Placement::Linear && p != Placement::Loop && p != Placement::V))
        throw InputError(fmt::format("the schedule '{}' cannot be tried with any number of stages", name),
                         "leave --schedules out, or name others");
      schedules_.push_back(&def);
    }
    if (!get_from(schedules::all(), "schedule", own_.schedule).trains)
      throw InputError(
          fmt::format("the scenario's schedule '{}' does not train, and ways to train are searched for", own_.schedule),
          "set run.schedule to one that does");
    const Prepared p = lay_out(own_);
    table_.title = own_.title.empty() ? "(untitled)" : own_.title;
    table_.model = p.model.name;
    table_.cluster = p.cluster.name;
    table_.samples = samples_ = p.plan.mini_batch;
    layers_ = static_cast<int>(p.model.layers.size());
    for (const int start : {1, p.plan.stages.front().micro_batch_size}) {
      for (std::int64_t size = start; size <= samples_; size *= 2) sizes_.insert(static_cast<int>(size));
      for (int size = start; size % 2 == 0; size /= 2) sizes_.insert(size / 2);
    }
    std::vector<std::pair<double, std::size_t>> speed;
    for (std::size_t d = 0; d < p.cluster.devices.size(); ++d)
      speed.emplace_back(-p.cluster.types[static_cast<std::size_t>(p.cluster.devices[d].type)].peak.value, d);
    std::stable_sort(speed.begin(), speed.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    for (const auto& s : speed) fastest_.push_back(s.second);
    for (const Device& d : p.cluster.devices) names_.push_back(d.name);
  }

  ChoiceTable run() {
    own_period();
    std::vector<Bounded> cuts = all_cuts();
    std::stable_sort(cuts.begin(), cuts.end(),
                     [](const Bounded& a, const Bounded& b) { return a.bound.period < b.bound.period; });
    for (const Bounded& b : cuts)
      for (const ScheduleDef* def : schedules_)
        if (placement_of(*def) == b.cut.placement) consider(b, std::string(def->name));
    if (asked_.schedules.empty()) {
      const std::vector<Choice> front = table_.front;
      for (const Choice& c : front)
        for (const Bounded& b : cuts)
          if (made_of(c, b.cut)) consider(b, "synthesised");
    }
    std::stable_sort(table_.front.begin(), table_.front.end(),
                     [](const Choice& a, const Choice& b) { return a.period < b.period; });
    return std::move(table_);
  }

 private:
  void own_period() {
    try {
      std::vector<std::string> sets = asked_.sets;
      sets.push_back(fmt::format("run.iterations={}", std::max(kIterations, own_.lowering.iterations)));
      const Scenario scenario = load_scenario(asked_.file, sets);
      table_.own = stagecraft::run(scenario, prepare(scenario), asked_.backend).report.period;
    } catch (const Infeasible&) {  // It is what is asked to be made better.
    }
  }

  std::vector<Bounded> all_cuts() {
    std::vector<Bounded> cuts;
    const int devices = static_cast<int>(names_.size());
    std::set<Placement> placements;
    for (const ScheduleDef* def : schedules_) placements.insert(placement_of(*def));
    for (const int ranks : counts_up_to(devices))
      for (const int replicas : counts_up_to(devices / ranks))
        for (const int size : sizes_)
          for (const Placement placement : placements)
            for (const bool recompute : {false, true}) {
              const Cut cut{ranks, replicas, size, placement, recompute};
              if (samples_ % size != 0 || size < replicas || cut.stages() > layers_) continue;
              if (samples_ / size > std::max(own_.micro_batches, kMostMicroBatches * ranks)) continue;
              progress_(fmt::format("{} stages, {} replicas, micro-batches of {}", cut.stages(), replicas, size));
              if (const std::optional<Choice> bound = bound_of(cut)) cuts.push_back({cut, *bound});
            }
    return cuts;
  }

  std::vector<std::string> sets_of(const Cut& c, const std::string& schedule) const {
    const bool any = schedule == "synthesised" && c.placement != Placement::Linear;
    const std::string options =
        any ? fmt::format("{{name: synthesised, placement: {}, chunks: 2}}", to_text(c.placement)) : schedule;
    std::vector<std::string> devices;
    for (std::size_t i = 0; i < static_cast<std::size_t>(c.ranks * c.replicas); ++i) {
      std::vector<std::size_t> chosen(fastest_.begin(), fastest_.begin() + c.ranks * c.replicas);
      std::sort(chosen.begin(), chosen.end());
      devices.push_back(fmt::format("\"{}\"", names_[chosen[i]]));
    }
    return {fmt::format("plan={{planner: balanced, stages: {}, replicas: {}, micro_batch_size: {}, recompute: {}, "
                        "devices: [{}]}}",
                        c.stages(), c.replicas, c.size, c.recompute ? "full" : "none", join(devices)),
            fmt::format("run.schedule={}", options), fmt::format("run.micro_batches={}", samples_ / c.size),
            "weights=auto"};
  }

  Scenario scenario_of(const Cut& cut, const std::string& schedule) const {
    std::vector<std::string> sets = asked_.sets;
    for (std::string& set : sets_of(cut, schedule)) sets.push_back(std::move(set));
    sets.push_back(fmt::format("run.iterations={}", kIterations));
    return load_scenario(asked_.file, sets);
  }

  /// Nothing when not even the weights fit.
  std::optional<Choice> bound_of(const Cut& cut) {
    const auto schedule = std::find_if(schedules_.begin(), schedules_.end(),
                                       [&](const ScheduleDef* d) { return placement_of(*d) == cut.placement; });
    ++table_.plans;
    try {
      const Prepared p = lay_out(scenario_of(cut, std::string((*schedule)->name)));
      if (instructions_of(p.plan, kIterations, true) > kMostInstructions) {
        table_.cut_short = true;
        return {};
      }
      std::vector<Seconds> busy(p.cluster.devices.size());
      std::vector<Bytes> held(p.cluster.devices.size()), largest(held);
      for (int s = 0; s < p.plan.stage_count(); ++s)
        for (std::size_t r = 0; r < p.plan.stage(StageId{s}).devices.size(); ++r) {
          const StageCost& c = p.costs[static_cast<std::size_t>(s)][r];
          const auto d = static_cast<std::size_t>(p.plan.stage(StageId{s}).devices[r]);
          const Seconds backward = std::min(c.backward, c.input_gradient + c.weight_gradient);
          const Seconds each = c.forward + backward + (cut.recompute ? c.recompute : Seconds{0});
          busy[d] += p.plan.micro_batches(StageId{s}) * each + c.update;
          held[d] += c.weights + c.gradients + c.optimizer + (cut.recompute ? Bytes{0} : c.stash);
          if (cut.recompute) largest[d] = std::max(largest[d], c.stash);  // One stage at a time has all of it.
        }
      Choice bound;
      bound.devices = cut.ranks * cut.replicas;
      bound.period = *std::max_element(busy.begin(), busy.end());
      for (std::size_t d = 0; d < held.size(); ++d) {
        held[d] += largest[d];
        bound.memory = std::max(bound.memory, held[d]);
        const Bytes there = p.cluster.types[static_cast<std::size_t>(p.cluster.devices[d].type)].memory;
        if (there.value > 0 && held[d] > there) return {};
      }
      return bound;
    } catch (const Infeasible&) {
    } catch (const InputError&) {  // More micro-batches than can be counted, ...
    }
    return {};
  }

  void consider(const Bounded& b, const std::string& schedule) {
    for (const Choice& c : table_.front)
      if (covers(c, b.bound)) return;
    if (table_.simulated >= asked_.most) {
      table_.cut_short = true;
      return;
    }
    progress_(fmt::format("{} simulated, a period of {} so far", table_.simulated,
                          table_.front.empty() ? std::string("-") : to_text(shortest())));
    ++table_.simulated;
    try {
      keep(simulated(b.cut, schedule));
    } catch (const Infeasible& e) {
      table_.unfit += e.problem().code == "memory";
    } catch (const InputError&) {  // The schedule wants other numbers of stages or micro-batches.
      --table_.simulated;
    }
  }

  Seconds shortest() const {
    Seconds least = table_.front.front().period;
    for (const Choice& c : table_.front) least = std::min(least, c.period);
    return least;
  }

  Choice simulated(const Cut& cut, const std::string& schedule) const {
    const Scenario scenario = scenario_of(cut, schedule);
    const Prepared p = prepare(scenario);
    const Report report = stagecraft::run(scenario, p, asked_.backend).report;
    Choice c;
    c.devices = cut.ranks * cut.replicas;
    c.stages = cut.stages();
    c.replicas = cut.replicas;
    c.micro_batch_size = cut.size;
    c.micro_batches = samples_ / cut.size;
    c.schedule = schedule;
    c.placement = to_text(cut.placement);
    c.recompute = cut.recompute;
    c.period = report.period;
    c.makespan = report.makespan;
    c.throughput = report.throughput;
    c.memory = fullest_of(report, p.cluster);
    c.limit = limit_of(report, p.cluster);
    c.sets = sets_of(cut, schedule);
    return c;
  }

  static std::string limit_of(const Report& report, const Cluster& cluster) {
    constexpr double kMuch = 0.9;
    if (1 - report.steady_bubble >= kMuch) {
      const auto busiest =
          std::max_element(report.devices.begin(), report.devices.end(),
                           [](const DeviceReport& a, const DeviceReport& b) { return a.utilisation < b.utilisation; });
      return fmt::format("the work of {}",
                         cluster.devices[static_cast<std::size_t>(busiest - report.devices.begin())].name);
    }
    if (!report.links.empty() && report.links.front().utilisation >= kMuch)
      return fmt::format("the link {}", cluster.links[static_cast<std::size_t>(report.links.front().link)].name);
    if (report.critical_transfer.value > report.critical_compute.value) return "messages one after the other";
    return "waiting for each other";
  }

  void keep(Choice c) {
    for (const Choice& other : table_.front)
      if (covers(other, c)) return;
    std::erase_if(table_.front, [&](const Choice& other) { return covers(c, other); });
    table_.front.push_back(std::move(c));
  }

  static bool made_of(const Choice& c, const Cut& cut) {
    return c.stages == cut.stages() && c.replicas == cut.replicas && c.micro_batch_size == cut.size &&
           c.placement == to_text(cut.placement) && c.recompute == cut.recompute;
  }

  const ChoiceOptions& asked_;
  const std::function<void(const std::string&)>& progress_;
  Scenario own_;
  std::vector<const ScheduleDef*> schedules_;
  ChoiceTable table_;
  int samples_ = 1, layers_ = 1;
  std::set<int> sizes_;               ///< Of micro-batches: powers of two, and the scenario's times and by them.
  std::vector<std::string> names_;    ///< Of the devices.
  std::vector<std::size_t> fastest_;  ///< Devices, the one with the highest peak first.
};

}  // namespace

ChoiceTable search_choices(const ChoiceOptions& asked, const std::function<void(const std::string&)>& progress) {
  if (get_from(backends::all(), "backend", asked.backend).clock != Clock::Simulated)
    throw InputError(fmt::format("the backend '{}' measures times and does not simulate them", asked.backend),
                     "--backend ideal, or simgrid");
  return ChoiceSearch(asked, progress).run();
}

}  // namespace stagecraft
