#include "sim/search/choices.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include <fmt/format.h>

#include "backends/backend.hpp"
#include "sim/experiment/remarks.hpp"
#include "sim/experiment/run.hpp"
#include "sim/schedule/builder.hpp"
#include "sim/search/candidates.hpp"
#include "sim/search/replay.hpp"
#include "sim/weights/policy.hpp"

namespace stagecraft {
namespace {

using Strings = std::vector<std::string>;

const Strings kUsual = {"1f1b",   "gpipe",       "eager-1f1b",     "zb-h1", "zb-2p",
                        "v-half", "interleaved", "interleaved-zb", "zb-v",  "v-min"};
const Strings kMegatron = {"1f1b", "interleaved"};  // All that Megatron-LM and what builds on it run.
const Strings kUnflushed = {"pipedream", "2bw"};
constexpr int kIterations = 5;
constexpr double kMostInstructions = 1e6;  // One simulation takes less than a second.

/// An order of work, and the weights it reads.
struct SchedulingPolicy {
  const ScheduleDef* schedule;
  std::string weights = "auto";
};

const ScheduleDef& schedule_named(const std::string& name) {
  const ScheduleDef& def = get_from(schedules::catalog(), "schedule", name);
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
std::vector<SchedulingPolicy> policies_of(const ChoiceOptions& asked, const CostRules* rules) {
  const bool megatron = rules && (rules->software.name.starts_with("megatron") || rules->software.name == "bloom" ||
                                  rules->software.name.starts_with("nemo"));
  Strings names = !asked.schedules.empty() ? asked.schedules : megatron ? kMegatron : kUsual;
  if (asked.schedules.empty() && !asked.weights.empty())
    names.insert(names.end(), kUnflushed.begin(), kUnflushed.end());
  std::vector<SchedulingPolicy> policies;
  for (const std::string& name : names) {
    const ScheduleDef& def = schedule_named(name);
    if (asked.weights.empty()) policies.push_back({&def});
    for (const std::string& weights : asked.weights)
      if (get_from(weights::catalog(), "weights policy", weights).needs_flush == def.flushes)
        policies.push_back({&def, weights});
  }
  if (policies.empty())
    throw InputError("none of these schedules goes with any of these weights",
                     "flush is for schedules with a flush such as 1f1b, the others for pipedream and 2bw");
  return policies;
}

std::string limit_of(const Report& report, const Cluster& cluster) {
  constexpr double kMuch = 0.9;
  if (1 - report.steady_bubble >= kMuch) {
    const auto busiest =
        std::max_element(report.devices.begin(), report.devices.end(),
                         [](const DeviceReport& a, const DeviceReport& b) { return a.utilisation < b.utilisation; });
    return fmt::format("the work of {}", cluster.devices[DeviceId{busiest - report.devices.begin()}].name);
  }
  if (!report.links.empty() && report.links.front().utilisation >= kMuch)
    return fmt::format("the link {}", cluster.links[report.links.front().link].name);
  if (report.critical_transfer.value > report.critical_compute.value) return "messages one after the other";
  return "waiting for each other";
}

/// The plans of one candidate for the policies that want the same of them: a planner answers once.
class PlanCache {
 public:
  PlannedExperiment plan(const Candidate& candidate, const Experiment& e) {
    if (candidate_ != &candidate) plans_.clear(), candidate_ = &candidate;
    for (const PlannedExperiment& cached : plans_)
      if (same_questions(cached.experiment, e)) {
        PlannedExperiment planned = cached;
        planned.experiment = e;
        return planned;
      }
    return plans_.emplace_back(plan_experiment(e));
  }

 private:
  /// A planner sees where the schedule wants the stages, and a plan has ties where the schedule flushes.
  static bool same_questions(const Experiment& a, const Experiment& b) {
    const auto placing = [](const Experiment& e) { return placing_of(*e.schedule.def, e.schedule.options.get()); };
    return a.costs == b.costs && a.schedule.flushes() == b.schedule.flushes() && placing(a) == placing(b);
  }

  const Candidate* candidate_ = nullptr;
  std::vector<PlannedExperiment> plans_;
};

class ChoiceSearch {
 public:
  ChoiceSearch(const Experiment& configured, const ChoiceOptions& asked,
               const std::function<void(const std::string&)>& progress)
      : asked_(asked),
        progress_(progress),
        policies_(policies_of(asked, configured.rules.get())),
        configured_(plan_trained(configured)),
        shortest_(3 * static_cast<std::size_t>(asked.replay)) {
    table_.title = configured.title.empty() ? "(untitled)" : configured.title;
    table_.model = configured.model->name;
    table_.cluster = configured.cluster->name;
    table_.samples = configured_.plan.mini_batch;
    table_.notes = remarks(configured_);
  }

  ChoiceTable run() {
    own_period();
    CandidateOptions options{{}, kIterations, kMostInstructions};
    for (const SchedulingPolicy& policy : policies_) options.schedules.push_back(policy.schedule);
    const Candidates candidates = candidate_plans(configured_, options, progress_);
    table_.plans = candidates.plans;
    table_.too_large = candidates.too_large;
    table_.least_memory = candidates.least_memory;
    table_.cut_short = candidates.cut_short;
    if (!candidates.list.empty()) table_.bound = candidates.list.front().bound.period;
    for (const Candidate& c : candidates.list)
      for (const SchedulingPolicy& policy : policies_)
        if (placement_of(*policy.schedule) == c.placement && (!c.both_ways || c.both_ways == policy.schedule))
          consider(c, policy);
    // No training framework runs an order that was searched for, and with groups there are many plans.
    if (asked_.schedules.empty() && !configured_.experiment.rules) search_orders(candidates.list);
    std::stable_sort(table_.front.begin(), table_.front.end(),
                     [](const Choice& a, const Choice& b) { return a.period < b.period; });
    if (asked_.replay > 0) simulate_again();
    for (Choice& c : table_.front) c.sets = sets_of(tried_[c.id]);
    for (const auto& [name, why] : refused_)
      if (!ran_.contains(name)) table_.refused.emplace_back(name, why);
    return std::move(table_);
  }

 private:
  struct Combination {
    const Candidate* candidate;
    SchedulingPolicy policy;
  };

  static PlannedExperiment plan_trained(const Experiment& configured) {
    const ScheduleDef& def = *configured.schedule.def;
    if (!def.trains)
      throw InputError(fmt::format("the scenario's schedule '{}' {}, and ways to train stages are searched for",
                                   def.name, def.tasks ? "needs a plan of tasks" : "does not train"),
                       "set run.schedule to one that does");
    return plan_experiment(configured);
  }

  void own_period() {
    try {
      Experiment e = variant_of(configured_.experiment);
      e.run.lowering.iterations = std::max(kIterations, e.run.lowering.iterations);
      PlannedExperiment planned = configured_;
      planned.experiment = std::move(e);
      const CompiledExperiment c = compile(std::move(planned));
      table_.configured_period = stagecraft::run(c, asked_.backend).report.period;
      if (asked_.replay > 0) table_.own_replayed = contended_result(c);
    } catch (const Infeasible&) {  // The scenario as it stands is what is to be improved.
    }
  }

  /// Searches for an order on the plans of the fronts of each kind of recomputation: another order may make up for the
  /// time that more recomputation costs.
  void search_orders(const std::vector<Candidate>& candidates) {
    const SchedulingPolicy policy{&get_from(schedules::catalog(), "schedule", "synthesised")};
    std::vector<const PlanSpec*> plans;
    for (const auto& [recompute, front] : fronts_)
      for (const Choice& c : front) plans.push_back(&tried_[c.id].candidate->plan);
    for (const Candidate& c : candidates)
      if (std::any_of(plans.begin(), plans.end(), [&](const PlanSpec* plan) { return *plan == c.plan; }))
        consider(c, policy);
  }

  static bool is_placed(const Combination& c) {
    return c.policy.schedule->name == "synthesised" && c.candidate->placement != Placement::Linear;
  }

  /// The settings on the command line that make the combination of the scenario.
  Strings sets_of(const Combination& c) const {
    const std::string_view name = c.policy.schedule->name;
    return {"plan=" + to_text(c.candidate->plan, configured_.cluster()),
            is_placed(c) ? fmt::format("run.schedule={{name: {}, placement: {}, chunks: 2}}", name,
                                       to_text(c.candidate->placement))
                         : fmt::format("run.schedule={}", name),
            fmt::format("run.micro_batches={}", c.candidate->bound.micro_batches), "weights=" + c.policy.weights};
  }

  /// The experiment with the order of a combination; made once for all combinations that have it.
  const Experiment& ordered(const Combination& c) {
    const Placement placement = is_placed(c) ? c.candidate->placement : Placement::Any;
    const auto [entry, is_new] = ordered_.try_emplace({c.policy.schedule, c.policy.weights, placement});
    if (!is_new) return entry->second;
    std::vector<config::Member> options;
    const auto add = [&](const char* key, std::string_view value) {
      options.push_back({key, {}, config::Value::scalar(std::string(value), {})});
    };
    if (is_placed(c)) add("placement", to_text(placement)), add("chunks", "2");
    Experiment e = configured_.experiment;
    e.run.lowering.iterations = kIterations;
    try {
      entry->second =
          with_order(e, schedule_spec(*c.policy.schedule, std::move(options)), weights_spec(c.policy.weights));
    } catch (...) {
      ordered_.erase(entry);
      throw;
    }
    return entry->second;
  }

  Experiment experiment_of(const Combination& c) {
    Experiment e = ordered(c);
    e.plan = c.candidate->plan;
    e.run.micro_batches = c.candidate->bound.micro_batches;
    return e;
  }

  void consider(const Candidate& candidate, const SchedulingPolicy& policy) {
    for (const Choice& c : table_.front)
      if (covers(c, candidate.bound)) return;
    if (table_.simulated >= asked_.max_simulations) {
      table_.cut_short = true;
      return;
    }
    progress_(fmt::format("{} simulated, a period of {} so far", table_.simulated,
                          table_.front.empty() ? std::string("-") : to_text(shortest())));
    ++table_.simulated;
    try {
      keep(simulated({&candidate, policy}));
      ran_.emplace(policy.schedule->name);
    } catch (const Infeasible& e) {
      if (e.problem().code == "memory")
        ++table_.unfit, ran_.emplace(policy.schedule->name);
      else
        refuse(policy, e.problem().message);
    } catch (const InputError& e) {
      refuse(policy, e.problems().front().message);
    }
  }

  /// The schedule wants other numbers of stages or micro-batches.
  void refuse(const SchedulingPolicy& policy, const std::string& why) {
    --table_.simulated;
    refused_.emplace(policy.schedule->name, why);
  }

  Seconds shortest() const {
    Seconds fastest = table_.front.front().period;
    for (const Choice& c : table_.front) fastest = std::min(fastest, c.period);
    return fastest;
  }

  /// Compiles programs again: keeping the programs of a few rows would take more memory than the rest of the search.
  void simulate_again() {
    table_.replay.backend = kReplayBackend;
    int count = 0;
    replay_choices(table_, asked_.replay, shortest_.list(), [&](const Choice& c) {
      progress_(fmt::format("{} simulated again on {}", count++, kReplayBackend));
      return contended_result(compile(experiment_of(tried_[c.id])));
    });
  }

  Choice simulated(const Combination& combination) {
    Choice c = combination.candidate->bound;
    const CompiledExperiment p = compile(plans_.plan(*combination.candidate, experiment_of(combination)));
    const Report report = stagecraft::run(p, asked_.backend).report;
    c.schedule = combination.policy.schedule->name;
    c.weights = p.experiment.weights.name();
    c.unexchanged = unexchanged_gradients(p);
    c.period = report.period;
    c.makespan = report.makespan;
    c.throughput = report.throughput;
    c.memory = fullest_device_memory(report, p.cluster());
    for (const DeviceReport& d : report.devices)
      if (d.memory.reserved.value == 0 && d.memory.capacity.value > 0)
        c.filled = std::max(c.filled, d.memory.total / d.memory.capacity);
    c.limit = limit_of(report, p.cluster());
    c.id = static_cast<int>(tried_.size());
    tried_.push_back(combination);
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
  std::vector<SchedulingPolicy> policies_;
  PlannedExperiment configured_;
  ChoiceTable table_;
  std::vector<Combination> tried_;  ///< [Choice::id]
  PlanCache plans_;
  std::map<std::tuple<const ScheduleDef*, std::string, Placement>, Experiment> ordered_;
  ShortestChoices shortest_;
  std::map<std::string, std::vector<Choice>> fronts_;  ///< Recomputation -> its Pareto front.
  std::set<std::string> ran_;                          ///< Schedules that could run one of the plans.
  std::map<std::string, std::string> refused_;         ///< Schedule -> why it could not run the first plan that failed.
};

}  // namespace

ChoiceTable search_choices(const Experiment& configured, const ChoiceOptions& asked,
                           const std::function<void(const std::string&)>& progress) {
  if (get_from(backends::catalog(), "backend", asked.backend).clock != Clock::Simulated)
    throw InputError(fmt::format("the backend '{}' measures times and does not simulate them", asked.backend),
                     "--backend ideal, or simgrid");
  return ChoiceSearch(configured, asked, progress).run();
}

}  // namespace stagecraft
