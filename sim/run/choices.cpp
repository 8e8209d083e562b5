#include "sim/run/choices.hpp"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "backends/backend.hpp"
#include "sim/run/candidates.hpp"
#include "sim/run/choice_replay.hpp"
#include "sim/run/remarks.hpp"
#include "sim/run/replay.hpp"
#include "sim/run/run.hpp"
#include "sim/schedule/builder.hpp"
#include "sim/weights/policy.hpp"

namespace stagecraft {
namespace {

using Words = std::vector<std::string>;

const Words kUsual = {"1f1b",   "gpipe",       "eager-1f1b",     "zb-h1", "zb-2p",
                      "v-half", "interleaved", "interleaved-zb", "zb-v",  "v-min"};
const Words kUnflushed = {"pipedream", "2bw"};
constexpr int kIterations = 5;
constexpr double kMostInstructions = 1e6;  // Of one simulation, which takes less than a second.

/// An order of work, and the weights it reads.
struct Way {
  const ScheduleDef* schedule;
  std::string weights = "auto";
};

const ScheduleDef& schedule_named(const std::string& name) {
  const ScheduleDef& def = get_from(schedules::all(), "schedule", name);
  const char* why = def.tasks           ? "needs a plan of tasks"
                    : !def.trains       ? "does not train"
                    : def.name == "csv" ? "is the order of one plan, from a file"
                                        : nullptr;
  if (why)
    throw InputError(fmt::format("the schedule '{}' {}, so there is nothing to search for", name, why),
                     "leave --schedules out, or name others");
  return def;
}

/// A policy that needs a flush goes with the schedules that have one, any other with those that have none.
std::vector<Way> ways_of(const ChoiceOptions& asked) {
  Words names = asked.schedules.empty() ? kUsual : asked.schedules;
  if (asked.schedules.empty() && !asked.weights.empty())
    names.insert(names.end(), kUnflushed.begin(), kUnflushed.end());
  std::vector<Way> ways;
  for (const std::string& name : names) {
    const ScheduleDef& def = schedule_named(name);
    if (asked.weights.empty()) ways.push_back({&def});
    for (const std::string& weights : asked.weights)
      if (get_from(weights::all(), "weights policy", weights).needs_flush == def.flushes)
        ways.push_back({&def, weights});
  }
  if (ways.empty())
    throw InputError("none of these schedules goes with any of these weights",
                     "flush is for schedules with a flush such as 1f1b, the others for pipedream and 2bw");
  return ways;
}

std::string limit_of(const Report& report, const Cluster& cluster) {
  constexpr double kMuch = 0.9;
  if (1 - report.steady_bubble >= kMuch) {
    const auto busiest =
        std::max_element(report.devices.begin(), report.devices.end(),
                         [](const DeviceReport& a, const DeviceReport& b) { return a.utilisation < b.utilisation; });
    return fmt::format("the work of {}", cluster.devices[busiest - report.devices.begin()].name);
  }
  if (!report.links.empty() && report.links.front().utilisation >= kMuch)
    return fmt::format("the link {}", cluster.links[report.links.front().link].name);
  if (report.critical_transfer.value > report.critical_compute.value) return "messages one after the other";
  return "waiting for each other";
}

class ChoiceSearch {
 public:
  ChoiceSearch(const ChoiceOptions& asked, const std::function<void(const std::string&)>& progress)
      : asked_(asked),
        progress_(progress),
        own_(load_scenario(asked.file, asked.sets)),
        ways_(ways_of(asked)),
        shortest_(3 * static_cast<std::size_t>(asked.replay)) {
    if (const ScheduleDef& own = get_from(schedules::all(), "schedule", own_.schedule); !own.trains)
      throw InputError(fmt::format("the scenario's schedule '{}' {}, and ways to train stages are searched for",
                                   own_.schedule, own.tasks ? "needs a plan of tasks" : "does not train"),
                       "set run.schedule to one that does");
    const Prepared p = lay_out(own_);
    table_.title = own_.title.empty() ? "(untitled)" : own_.title;
    table_.model = p.model.name;
    table_.cluster = p.cluster.name;
    table_.samples = p.plan.mini_batch;
    table_.notes = remarks(own_, p);
  }

  ChoiceTable run() {
    own_period();
    CandidateOptions options{asked_.file, asked_.sets, {}, kIterations, kMostInstructions};
    for (const Way& way : ways_) options.schedules.push_back(way.schedule);
    const Candidates candidates = candidate_plans(options, progress_);
    table_.plans = candidates.plans;
    table_.cut_short = candidates.cut_short;
    if (!candidates.list.empty()) table_.bound = candidates.list.front().bound.period;
    for (const Candidate& c : candidates.list)
      for (const Way& way : ways_)
        if (placement_of(*way.schedule) == c.placement && (c.both_ways.empty() || c.both_ways == way.schedule->name))
          consider(c, way);
    if (asked_.schedules.empty()) search_orders(candidates.list);
    std::stable_sort(table_.front.begin(), table_.front.end(),
                     [](const Choice& a, const Choice& b) { return a.period < b.period; });
    if (asked_.replay > 0) play_again();
    for (const auto& [name, why] : refused_)
      if (!ran_.contains(name)) table_.refused.emplace_back(name, why);
    return std::move(table_);
  }

 private:
  void own_period() {
    try {
      Words sets = asked_.sets;
      sets.push_back(fmt::format("run.iterations={}", std::max(kIterations, own_.lowering.iterations)));
      const Scenario scenario = load_scenario(asked_.file, sets);
      const Prepared p = prepare(scenario);
      table_.own = stagecraft::run(scenario, p, asked_.backend).report.period;
      if (asked_.replay > 0) table_.own_replayed = replayed(scenario, p);
    } catch (const Infeasible&) {  // It is what is asked to be made better.
    }
  }

  /// On the plans that nothing covers with as much recomputation: another order may make up for what less of it costs.
  void search_orders(const std::vector<Candidate>& candidates) {
    const Way way{&get_from(schedules::all(), "schedule", "synthesised")};
    Words plans;
    for (const auto& [recompute, front] : fronts_)
      for (const Choice& c : front) plans.push_back(c.sets.front());
    for (const Candidate& c : candidates)
      if (std::find(plans.begin(), plans.end(), "plan=" + c.plan) != plans.end()) consider(c, way);
  }

  Words sets_of(const Candidate& c, const Way& way) const {
    const std::string name(way.schedule->name);
    const bool placed = name == "synthesised" && c.placement != Placement::Linear;
    return {"plan=" + c.plan,
            placed ? fmt::format("run.schedule={{name: synthesised, placement: {}, chunks: 2}}", to_text(c.placement))
                   : "run.schedule=" + name,
            fmt::format("run.micro_batches={}", c.bound.micro_batches), "weights=" + way.weights};
  }

  void consider(const Candidate& candidate, const Way& way) {
    for (const Choice& c : table_.front)
      if (covers(c, candidate.bound)) return;
    if (table_.simulated >= asked_.most) {
      table_.cut_short = true;
      return;
    }
    progress_(fmt::format("{} simulated, a period of {} so far", table_.simulated,
                          table_.front.empty() ? std::string("-") : to_text(shortest())));
    ++table_.simulated;
    try {
      keep(simulated(candidate, way));
      ran_.emplace(way.schedule->name);
    } catch (const Infeasible& e) {
      if (e.problem().code == "memory")
        ++table_.unfit, ran_.emplace(way.schedule->name);
      else
        refuse(way, e.problem().message);
    } catch (const InputError& e) {
      refuse(way, e.problems().front().message);
    }
  }

  /// The schedule wants other numbers of stages or micro-batches.
  void refuse(const Way& way, const std::string& why) {
    --table_.simulated;
    refused_.emplace(way.schedule->name, why);
  }

  Seconds shortest() const {
    Seconds least = table_.front.front().period;
    for (const Choice& c : table_.front) least = std::min(least, c.period);
    return least;
  }

  Scenario scenario_of(const Choice& c) const {
    Words sets = asked_.sets;
    sets.insert(sets.end(), c.sets.begin(), c.sets.end());
    sets.push_back(fmt::format("run.iterations={}", kIterations));
    return load_scenario(asked_.file, sets);
  }

  /// Programs are made anew: kept, those of a few would take more memory than all that comes before.
  void play_again() {
    table_.replay.backend = kReplayBackend;
    int count = 0;
    replay_choices(table_, asked_.replay, shortest_.list(), [&](const Choice& c) {
      progress_(fmt::format("{} played again on {}", count++, kReplayBackend));
      const Scenario scenario = scenario_of(c);
      return replayed(scenario, prepare(scenario));
    });
  }

  Choice simulated(const Candidate& candidate, const Way& way) const {
    Choice c = candidate.bound;
    c.sets = sets_of(candidate, way);
    const Scenario scenario = scenario_of(c);
    const Prepared p = prepare(scenario);
    const Report report = stagecraft::run(scenario, p, asked_.backend).report;
    c.schedule = way.schedule->name;
    c.weights = scenario.weights;
    c.unexchanged = unexchanged_gradients(scenario, p);
    c.period = report.period;
    c.makespan = report.makespan;
    c.throughput = report.throughput;
    c.memory = fullest_of(report, p.cluster);
    for (const DeviceReport& d : report.devices)
      if (d.memory.reserved.value == 0 && d.memory.capacity.value > 0)
        c.filled = std::max(c.filled, d.memory.total / d.memory.capacity);
    c.limit = limit_of(report, p.cluster);
    return c;
  }

  static void put(const Choice& c, std::vector<Choice>& front) {
    for (const Choice& other : front)
      if (covers(other, c)) return;
    std::erase_if(front, [&](const Choice& other) { return covers(c, other); });
    front.push_back(c);
  }

  void keep(const Choice& c) {
    shortest_.add(c);
    put(c, fronts_[c.recompute]);
    put(c, table_.front);
  }

  const ChoiceOptions& asked_;
  const std::function<void(const std::string&)>& progress_;
  Scenario own_;
  std::vector<Way> ways_;
  ChoiceTable table_;
  ShortestChoices shortest_;
  std::map<std::string, std::vector<Choice>> fronts_;  ///< By recomputation.
  std::set<std::string> ran_;                          ///< Schedules that could run one of the plans.
  std::map<std::string, std::string> refused_;  ///< Of each schedule: why it could not run the first that it could not.
};

}  // namespace

ChoiceTable search_choices(const ChoiceOptions& asked, const std::function<void(const std::string&)>& progress) {
  if (get_from(backends::all(), "backend", asked.backend).clock != Clock::Simulated)
    throw InputError(fmt::format("the backend '{}' measures times and does not simulate them", asked.backend),
                     "--backend ideal, or simgrid");
  return ChoiceSearch(asked, progress).run();
}

}  // namespace stagecraft
