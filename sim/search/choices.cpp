// Entry of `stagecraft search` and of the request `search` of `serve`: runs the phases of a search and returns the
// table of the best; or evaluates tasks for the search of another process.

#include "sim/search/choices.hpp"

#include <algorithm>
#include <cmath>
#include <tuple>

#include <fmt/core.h>

#include "backends/backend.hpp"
#include "backends/world.hpp"
#include "sim/cluster/memory_reserve.hpp"
#include "sim/core/sha256.hpp"
#include "sim/core/stop_point.hpp"
#include "sim/core/text.hpp"
#include "sim/core/threads.hpp"
#include "sim/experiment/fold_replicas.hpp"
#include "sim/experiment/order_evaluation.hpp"
#include "sim/experiment/remarks.hpp"
#include "sim/experiment/run.hpp"
#include "sim/experiment/version.hpp"
#include "sim/search/choice_search.hpp"
#include "sim/search/published_choices.hpp"
#include "sim/search/replay.hpp"
#include "sim/search/untried.hpp"

namespace stagecraft {
namespace {

constexpr double kBetweenProgress = 0.1;  // Seconds.

/// Enough to show the steady state. On many devices programs are long, and every schedule that is tried by default
/// repeats its iterations from the first on. Iterations with sequences of their own are as many as the scenario has.
int iterations_of(const Experiment& e) {
  if (e.run.packs) return e.run.lowering.iterations;
  constexpr std::size_t kManyDevices = 128;
  return std::max(e.cluster->devices.size() > kManyDevices ? 3 : kFewestIterations, e.run.lowering.iterations);
}

PlannedExperiment plan_trained(const Experiment& configured) {
  const ScheduleDef& def = *configured.schedule.def;
  if (!def.trains)
    throw InputError(fmt::format("the scenario's schedule '{}' {}, and ways to train stages are searched for", def.name,
                                 def.tasks ? "needs a plan of tasks" : "does not train"),
                     "stagecraft plan compares planners for it; or set run.schedule to one that trains");
  if (configured.plan.divides_vocabulary)
    throw InputError({{configured.plan.where("vocabulary"), "plan.vocabulary",
                       "a search makes no plans whose ranks divide the vocabulary yet",
                       "vocabulary: ends, with run.schedule: 1f1b; `stagecraft compare --schedules "
                       "1f1b,vocab-1,vocab-2,interlaced` ranks them on one plan",
                       "vocabulary"}});
  return plan_experiment(configured);
}

/// The most memory that a device has without its reserve; infinite where that is not known of all.
Bytes largest_capacity(const Cluster& cluster) {
  Bytes largest;
  for (const DeviceType& type : cluster.types) {
    if (type.memory.value <= 0) return Bytes{kInfinity};
    largest = std::max(largest, type.memory - type.memory_reserve);
  }
  return largest;
}

/// Identifies the question, so that a file of saved trials is not used for another.
std::string question_of(const Experiment& e, const ChoiceOptions& asked) {
  std::string text =
      fmt::format("{} {} {} {} {} {} {} {} {} {} {} {}", version(), e.scenario_hash, asked.backend, asked.margin,
                  asked.contended, asked.max_simulations, asked.front_simulations, asked.patience, asked.patience_ops,
                  asked.max_orders, asked.seed, static_cast<int>(asked.objective));
  for (const std::string& name : asked.schedules)
    text += " schedule " + name + (is_order_file(name) ? own_order(name).csv : std::string());
  for (const OwnSchedule& schedule : asked.own_schedules) text += " own " + schedule.spec.name();
  for (const std::string& name : asked.weights) text += " weights " + name;
  for (const std::string& name : asked.pack_fields) text += " data " + name;
  return sha256(text);
}

}  // namespace

std::string reason_to_stop(const ChoiceOptions& asked, std::chrono::steady_clock::time_point begin) {
  if (asked.stop()) return "interrupted";
  const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - begin;
  return asked.time && passed.count() >= asked.time->value ? "the time is over" : "";
}

ChoiceSearch::ChoiceSearch(const Experiment& configured, const ChoiceOptions& asked,
                           const std::function<void(const SearchProgress&)>& progress)
    : asked_(asked),
      progress_(progress),
      policies_(scheduling_policies(asked.schedules, asked.weights, configured.software(), configured.weights,
                                    asked.own_schedules)),
      configured_(plan_trained(configured)),
      objective_(asked.objective, configured_, iterations_of(configured)),
      limits_(configured_.experiment, !asked.schedules.empty() || !asked.own_schedules.empty()),
      runner_(configured_.experiment, policies_, asked.backend, iterations_of(configured), asked.margin, objective_,
              limits_),
      saved_(asked.resume, question_of(configured, asked)),
      farm_({.workers = thread_count(asked.threads),
             .stop = [this] { return reason_to_stop(); },
             .key = question_of(configured, asked),
             .other_work = "searches for another answer",
             .describe = [this](int job) { return description_of(job); },
             .do_described = [this](const std::string& description) { return evaluate_described(description); },
             .elsewhere = asked.elsewhere},
            [this](int job) {
              results_.at(task_of(job)) = result_of(job);
              return std::string();
            }) {
  table_.title = configured.title.empty() ? "(untitled)" : configured.title;
  table_.model = configured.model->name;
  table_.cluster = configured.cluster->name;
  table_.reserve = reserve_line(*configured.cluster);
  table_.capacity = equal_capacity(*configured.cluster);
  table_.margin = asked.margin;
  largest_capacity_ = largest_capacity(*configured.cluster);
  table_.unit = objective_.unit();
  table_.samples = static_cast<int>(std::lround(objective_.unit().samples));
  table_.iterations = iterations_of(configured);
  table_.notes = remarks(configured_);
  drop_refused_policies();
}

void ChoiceSearch::drop_refused_policies() {
  std::erase_if(policies_, [&](const SchedulingPolicy& p) { return !runner_.can_run(p); });
  for (const auto& [name, why] : runner_.refused())
    if (why.code == "weights" && asked_.weights.empty())
      without_weights_.push_back(name);
    else
      refused_.emplace(name, why.message);
  if (!policies_.empty()) return;
  throw InputError(fmt::format("no schedule can be tried: {}", runner_.refused().front().second.message),
                   without_weights_.empty() ? "write others after --schedules"
                                            : "--set weights=auto, with which each schedule brings its own weights");
}

void ChoiceSearch::search() {
  begin_phase("the scenario as it is");
  own_period();
  begin_phase("published recipes");
  run_published();
  begin_phase("listing plans");
  list_plans();
  for (const PlanVariant& v : variants_.list) {
    if (v.memory > (1 + 1e-9) * largest_capacity_) {
      leave_out_large(v.memory), ++table_.plans;
      continue;
    }
    add({.variant = &v,
         .bound = v.bound,
         .amount = v.amount,
         .memory = v.memory,
         .devices = v.devices,
         .effort = v.searches || v.is_unusual});
  }
  begin_phase(objective_.is_time()                  ? "shortest period"
              : asked_.objective == Objective::Cost ? "lowest cost"
                                                    : "lowest energy");
  find_shortest();
  begin_phase("orders of work");
  find_orders();
  table_.untried = count_untried();
  begin_phase("less memory, fewer devices");
  find_front();
  begin_phase("swaps of devices");
  swap_devices();
}

void ChoiceSearch::list_plans() {
  std::vector<const ScheduleDef*> schedules;
  for (const SchedulingPolicy& policy : policies_)
    schedules.push_back(policy.order ? &policy.shape.placed_as() : policy.schedule);
  PlannedExperiment fullest = configured_;  // Bounds have to hold for what overlaps most.
  fullest.experiment = with_overlap(configured_.experiment, limits_.switches());
  set_braids(fullest.experiment, std::any_of(schedules.begin(), schedules.end(),
                                             [](const ScheduleDef* schedule) { return schedule->braids; }));
  variants_ = plan_variants(fullest, schedules, runner_.parts(), objective_, limits_, asked_.pack_fields);
  for (std::size_t i = 0; i < variants_.list.size(); ++i) variants_.list[i].number = static_cast<int>(i);
}

ChoiceTable ChoiceSearch::run() {
  const StopScope scope([this] { return !reason_to_stop().empty(); });
  if (!farm_.is_first()) return follow();
  try {
    search();
  } catch (const Stopped&) {  // Before the first simulation; from then on the search ends by itself.
    table_.stopped = reason_to_stop();
  }
  if (table_.stopped == "interrupted") farm_.leave_at_once();
  saved_.save(true);
  finish();
  return std::move(table_);
}

ChoiceTable ChoiceSearch::follow() {
  try {
    list_plans();
  } catch (const Stopped&) {  // The tasks that it gets end at once.
  } catch (const std::exception& e) {
    farm_.fail(e.what());
    throw FailedElsewhere();
  }
  farm_.wait_for_end();
  return std::move(table_);
}

void ChoiceSearch::own_period() {
  try {
    Experiment e = variant_of(configured_.experiment);
    e.run.lowering.iterations = table_.iterations;
    PlannedExperiment planned = configured_;
    planned.experiment = std::move(e);
    const LinkCollectives links(planned.experiment.cluster);
    const CompiledExperiment c = compile_folded(planned, asked_.backend == "ideal" ? &links : nullptr);
    const Report report = run_to_compare(c, asked_.backend).report;
    table_.configured_period = report.period;
    for (const DeviceReport& d : report.devices)
      table_.configured_is_tight |=
          d.memory.capacity.value > 0 && d.memory.total > (1 - asked_.margin) * d.memory.capacity;
    if (asked_.contended) table_.own_replayed = contended_result(compile_folded(planned, nullptr));
    if (table_.own_replayed && !table_.own_replayed->ran()) return;
    Choice as_written;
    as_written.period = report.period, as_written.energy = report.energy / table_.iterations,
    as_written.replayed = table_.own_replayed;
    table_.configured_amount = objective_.amount(objective_.of_devices(devices_of(planned.plan)), as_written);
  } catch (const Infeasible&) {  // The scenario as it stands is what is to be improved.
  }
}

void ChoiceSearch::run_published() {
  if (configured_.experiment.run.packs) return reasons_.note("published recipes, which are for equal sequences");
  table_.published = published_choices(configured_, asked_.backend, asked_.contended, table_.iterations,
                                       runner_.parts(), objective_, limits_);
  for (PublishedChoice& p : table_.published) {
    p.choice.is_tight = p.choice.filled > 1 - asked_.margin;
    const bool is_asked = std::any_of(policies_.begin(), policies_.end(), [&](const SchedulingPolicy& policy) {
      return policy.name() == p.choice.schedule;
    });
    if (!p.why_not.empty() || !p.is_offered || !is_asked) continue;
    reasons_.add(p.choice);
    take_best(p.choice);
    put(p.choice, table_.front);
  }
}

void ChoiceSearch::begin_phase(const char* phase) {
  phase_ = phase;
  shown_ = -kBetweenProgress;
  show();
}

void ChoiceSearch::show() {
  SearchProgress p{.simulated = table_.simulated,
                   .seconds = seconds(),
                   .best = best_ ? best_ : best_tight_,
                   .unit = table_.unit,
                   .phase = phase_};
  if (p.seconds - shown_ < kBetweenProgress) return;
  shown_ = p.seconds;
  for (const TaskQueue* queue : {&plans_, &trials_})
    p.waiting += queue->count_if([&](double amount) { return may_be_better(amount); });
  p.rate = static_cast<double>(done_) / p.seconds;
  progress_(p);
}

void ChoiceSearch::finish() {
  table_.bound = least_bound_ < kInfinity ? least_bound_ : 0;
  table_.cut_short |= !table_.stopped.empty();
  for (const SearchTask& task : orders_) {
    const Candidate* plan = task.combination.candidate.get();
    table_.dropped_by_bound += !ordered_plans_.contains(plan) && !untried_orders_.contains(plan);
  }
  std::stable_sort(table_.front.begin(), table_.front.end(), [](const Choice& a, const Choice& b) {
    return std::tuple(a.amount, a.memory, a.devices, a.id) < std::tuple(b.amount, b.memory, b.devices, b.id);
  });
  if (asked_.contended) {
    table_.replay.backend = kReplayBackend;
    for (const Choice& c : table_.front) count(table_.replay, c.period, c.replayed);
    if (objective_.is_time())
      order_by_replay(table_.front, table_.replay, [](const ContendedResult& r) { return r.period; });
  }
  if (!table_.front.empty()) {
    const int first_without = table_.front[table_.replay.was_first].id;
    table_.has_shorter_tight |= std::any_of(table_.front.begin(), table_.front.end(), [&](const Choice& c) {
      return c.is_tight && best_ && c.amount < best_->amount * kLess;
    });
    std::stable_partition(table_.front.begin(), table_.front.end(), [](const Choice& c) { return !c.is_tight; });
    const auto at =
        std::find_if(table_.front.begin(), table_.front.end(), [&](const Choice& c) { return c.id == first_without; });
    table_.replay.was_first = at - table_.front.begin();
  }
  for (Choice& c : table_.front) {
    if (c.id >= 0) c.sets = runner_.sets_of(tried_[c.id]);  // Else the row is a published recipe.
    if (!c.overlap.empty()) c.sets.push_back(c.overlap);
    c.samples = objective_.unit().samples, c.tokens = objective_.unit().tokens;
    c.economics = objective_.economics_of(c);
  }
  for (const auto& [name, why] : refused_)
    if (!ran_.contains(name)) table_.refused.emplace_back(name, why);
  for (const std::string& phrase : untried_plans(configured_, variants_)) reasons_.note(phrase);
  for (const std::string& phrase : untried_orders(policies_, without_weights_, configured_.experiment.weights.name()))
    reasons_.note(phrase);
  table_.reasons = reasons_.lines(table_, runner_.parts().explanation());
  std::string switches;
  for (const Overlap f : limits_.switches())
    switches += fmt::format("{}software.overlap.{}", switches.empty() ? "" : ", ", name_of(f));
  if (!switches.empty()) table_.reasons.push_back("tried on in plans that the framework runs so: " + switches);
}

Objective objective_from(const std::string& name) {
  const std::vector<std::string>& names = objective_names();
  const auto at = std::find(names.begin(), names.end(), name);
  if (at == names.end())
    throw InputError(fmt::format("there is no objective '{}'", name), "write one of " + join(names));
  return static_cast<Objective>(at - names.begin());
}

ChoiceTable search_choices(const Experiment& configured, const ChoiceOptions& asked,
                           const std::function<void(const SearchProgress&)>& progress) {
  if (get_from(backends::catalog(), "backend", asked.backend).clock != Clock::Simulated)
    throw InputError(fmt::format("the backend '{}' measures times and does not simulate them", asked.backend),
                     "--backend ideal, or simgrid");
  if (configured.run.packs && configured.run.packs->slices > 1)
    throw InputError("a search changes the samples of a micro-batch, which is one slice of a sequence here",
                     "stagecraft sweep over run.schedule.slices and the fields of plan; or run.schedule.cut: false");
  check_pack_fields(configured, asked.pack_fields);
  const bool is_alone = world().size == 1;  // Else a process that others wait for must not leave before they meet.
  const auto begin = std::chrono::steady_clock::now();
  const StopScope scope([&] { return is_alone && !reason_to_stop(asked, begin).empty(); });
  try {
    return ChoiceSearch(configured, asked, progress).run();
  } catch (const Stopped&) {  // While the plan of the scenario was made.
    ChoiceTable table;
    table.title = configured.title.empty() ? "(untitled)" : configured.title;
    table.model = configured.model->name;
    table.cluster = configured.cluster->name;
    table.stopped = reason_to_stop(asked, begin);
    table.cut_short = true;
    return table;
  }
}

TaskEvaluator task_evaluator(const std::string& question, const Experiment& configured, const ChoiceOptions& asked) {
  if (question_of(configured, asked) != question)
    throw InputError("this process reads another scenario than the search, or is another version of Stagecraft",
                     "let both see the same files and the same program");
  const auto search = std::make_shared<ChoiceSearch>(configured, asked, [](const SearchProgress&) {});
  search->list_plans();
  return [search](const std::string& task, std::optional<Seconds> left) {
    const auto begin = std::chrono::steady_clock::now();
    const StopScope scope([&] {
      return left && std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() >= left->value;
    });
    try {
      stop_point();
      return search->evaluate_described(task);
    } catch (const Stopped&) {
      return std::string();
    }
  };
}

}  // namespace stagecraft
