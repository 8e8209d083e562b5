// Runs a sweep, for `sweep`, `report` and `serve`: chooses its points, gives those without a result to a farm as jobs,
// and writes the results into its SQLite file.

#include "sim/sweep/run_sweep.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <optional>
#include <set>
#include <thread>

#include <fmt/core.h>

#include "backends/backend.hpp"
#include "sim/core/sha256.hpp"
#include "sim/core/text.hpp"
#include "sim/experiment/version.hpp"
#include "sim/farm/job_farm.hpp"
#include "sim/sweep/points.hpp"
#include "sim/sweep/store.hpp"

namespace stagecraft {
namespace {

bool simulates(const std::string& backend) {
  return get_from(backends::catalog(), "backend", backend).clock == Clock::Simulated;
}

bool has_one_queue(const ResolvedPoint& point) try {
  return point.scenario && read_experiment(*point.scenario).cluster->has_one_queue();
} catch (const InputError&) {
  return false;  // The point fails when it runs, and says so.
} catch (const Infeasible&) {
  return false;
}

/// Points have the links of the first one where they set nothing of the cluster.
std::string default_backend(const Sweep& sweep, const std::vector<Point>& points) {
  for (const Point& point : points) {
    const bool sets_cluster = std::any_of(point.settings.begin(), point.settings.end(),
                                          [](const config::Member& m) { return m.key.starts_with("cluster"); });
    if ((sets_cluster || &point == &points.front()) && has_one_queue(resolve_point(sweep, point))) return "fluid";
  }
  return "simgrid";
}

/// Warns of seeds that change nothing and of points that are the same scenario.
void add_warnings(SweepPlan& plan) {
  if (!plan.sweep.seeds.empty() && plan.sweep.seeds.front().size() == 1 && simulates(plan.backend))
    plan.warnings.push_back(
        {plan.sweep.seeds.front().front().where,
         "repeat",
         fmt::format("'{}' draws no random numbers without jitter: every repetition gives the same", plan.backend),
         {},
         "repeat"});
  std::map<std::string, const Point*> first;
  for (std::size_t i = 0; i < plan.points.size(); ++i) {
    const auto [at, fresh] = first.emplace(plan.hashes[i], &plan.points[i]);
    if (!fresh && !plan.points[i].settings.empty())
      plan.warnings.push_back({plan.points[i].settings.front().where,
                               "",
                               fmt::format("point {} ({}) is the same scenario as point {} ({})", plan.points[i].number,
                                           plan.points[i].label, at->second->number, at->second->label),
                               {},
                               "same"});
  }
}

/// The result of a point whose process ended before it sent one.
PointResult result_without_process(const SweepPlan& plan, const JobEnd& end, Seconds timeout) {
  const ResolvedPoint resolved = resolve_point(plan.sweep, plan.points[end.job]);
  PointResult result;
  result.hash = resolved.hash;
  result.scenario = resolved.text;
  const bool late = end.how == JobEnd::How::TimedOut;
  result.status = late ? "timeout" : "crash";
  result.message = late ? fmt::format("stopped after {} of wall time", to_text(timeout))
                        : fmt::format("the process that ran it ended: {}", end.text);
  result.seconds = end.seconds;
  return result;
}

int worker_count(const SweepOptions& options, const std::string& backend) {
  if (options.jobs > 0) return options.jobs;
  if (!simulates(backend) || options.together) return 1;
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

/// The chosen scenarios that have no result yet.
struct OpenScenarios {
  std::vector<int> jobs;                   ///< The first point of each scenario.
  std::map<std::string, int> points_with;  ///< Hash -> number of chosen points that have it.
};

OpenScenarios open_scenarios(const SweepPlan& plan, const std::set<std::string>& finished, SweepProgress& progress) {
  OpenScenarios open;
  for (std::size_t i = 0; i < plan.points.size(); ++i) {
    if (!plan.chosen[i]) continue;
    ++progress.total;
    if (finished.contains(plan.hashes[i]))
      ++progress.there;
    else if (++open.points_with[plan.hashes[i]] == 1)
      open.jobs.push_back(static_cast<int>(i));
  }
  return open;
}

void keep_chosen(SweepTable& table, const SweepPlan& plan) {
  std::erase_if(table.rows, [&](const SweepRow& r) { return !plan.chosen[r.number - 1]; });
}

/// The results in a file that may not be written, if all points of this sweep have one.
std::optional<SweepEnd> complete_results(const SweepPlan& plan, const SweepOptions& options, const Origin& origin) {
  std::error_code error;
  if (!std::filesystem::exists(plan.out, error)) return {};
  SweepEnd end;
  end.table = results_in(plan.out);
  const bool same = end.table.name == plan.sweep.name && end.table.text == plan.sweep.text &&
                    end.table.backend == origin.backend && end.table.version == origin.version &&
                    std::equal(end.table.rows.begin(), end.table.rows.end(), plan.hashes.begin(), plan.hashes.end(),
                               [](const SweepRow& row, const std::string& hash) { return row.hash == hash; });
  if (!same) return {};
  keep_chosen(end.table, plan);
  for (const SweepRow& row : end.table.rows)
    if (row.status.empty() || (options.retry && may_pass_another_time(row.status))) return {};
  end.progress.total = end.progress.there = static_cast<int>(end.table.rows.size());
  return end;
}

SweepEnd fill_store(const SweepPlan& plan, const SweepOptions& options, const Origin& origin,
                    const std::function<void(const SweepProgress&)>& progress, JobFarm& farm) {
  if (!may_be_written(plan.out)) {
    if (auto end = complete_results(plan, options, origin)) return std::move(*end);
    throw InputError(
        fmt::format("'{}' cannot be written, and not all results are there", plan.out),
        fmt::format("name another file: stagecraft sweep {} --out FILE.db; stagecraft report FILE.db shows it",
                    plan.sweep.file));
  }
  Store store(plan.out);
  store.describe(plan.sweep, plan.points, plan.hashes, origin);
  SweepEnd end;
  for (const std::string& part : options.parts) store.merge(part);
  if (options.reuse) end.reused = store.take_over(origin);
  const OpenScenarios open = open_scenarios(plan, store.finished(origin, options.retry), end.progress);
  const auto begin = std::chrono::steady_clock::now();
  const auto report = [&] {
    end.progress.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    progress(end.progress);
  };
  const auto stop = [&] {
    report();
    return options.stop();
  };
  const auto done = [&](const JobEnd& e) {
    if ((end.stopped |= e.how == JobEnd::How::Undone)) return;
    const PointResult result =
        e.how == JobEnd::How::Done ? result_from_bytes(e.text) : result_without_process(plan, e, options.timeout);
    store.add(result, origin);
    const int points = open.points_with.at(plan.hashes[e.job]);
    end.progress.done += points;
    if (!result.ran()) end.progress.failed += points;
    report();
  };
  try {
    farm.run(open.jobs, stop, done);
  } catch (const BackendError& e) {
    const int with_result = end.progress.there + end.progress.done;
    throw BackendError(fmt::format("{}; {} of {} {} results, and the same command goes on", e.what(), with_result,
                                   pluralize(end.progress.total, "point"), with_result == 1 ? "has" : "have"));
  }
  end.table = store.table();
  keep_chosen(end.table, plan);
  return end;
}

/// Equal in processes that have read the same sweep.
std::string sweep_key(const SweepPlan& plan, const Origin& origin) {
  std::string text = origin.backend + "\n" + origin.version + "\n";
  for (std::size_t i = 0; i < plan.points.size(); ++i) text += plan.hashes[i] + (plan.chosen[i] ? " chosen\n" : "\n");
  return sha256(text);
}

}  // namespace

int SweepPlan::count() const { return static_cast<int>(std::count(chosen.begin(), chosen.end(), true)); }

SweepTable planned_table(const SweepPlan& plan) {
  SweepTable table;
  for (std::size_t i = 0; i < plan.points.size(); ++i)
    if (plan.chosen[i]) {
      SweepRow& row = table.rows.emplace_back();
      row.number = plan.points[i].number;
      row.label = plan.points[i].label;
      row.settings = settings_json(plan.points[i]);
    }
  return table;
}

SweepPlan plan_sweep(const SweepOptions& options) {
  SweepPlan plan;
  plan.sweep = load_sweep(options.file, options.sets);
  plan.out = options.out.empty() ? plan.sweep.name + ".db" : options.out;
  plan.points = points_of(plan.sweep, plan.warnings);
  add_own_orders(plan.sweep, options.own_schedules, plan.points);
  plan.backend = !options.backend.empty()      ? options.backend
                 : !plan.sweep.backend.empty() ? plan.sweep.backend
                                               : default_backend(plan.sweep, plan.points);
  get_from(backends::catalog(), "backend", plan.backend);
  std::set<int> chosen_numbers;
  for (const Point& p : options.only.empty() ? plan.points : only(plan.points, options.only))
    chosen_numbers.insert(p.number);
  plan.hashes = hashes_of(plan.sweep, plan.points);
  plan.chosen = in_shard(plan.hashes, options.shard);
  for (std::size_t i = 0; i < plan.points.size(); ++i)
    plan.chosen[i] = plan.chosen[i] && chosen_numbers.contains(plan.points[i].number);
  add_warnings(plan);
  return plan;
}

SweepEnd run_sweep(const SweepPlan& plan, const SweepOptions& options,
                   const std::function<void(const SweepProgress&)>& progress) {
  const BackendDef& backend = get_from(backends::catalog(), "backend", plan.backend);
  if (const std::string why = backend.why_not(); !why.empty()) throw BackendError(plan.backend + ": " + why);
  const std::string library = backend.version();
  const Origin origin{plan.backend,
                      library.empty() ? version() : fmt::format("{}, {} {}", version(), backend.name, library)};
  const auto work = [&, runner = PointRunner(plan.sweep, plan.backend)](int job) mutable {
    return to_bytes(runner.run(plan.points[job]));
  };
  JobFarm farm({.workers = worker_count(options, plan.backend),
                .forks = true,
                .timeout = options.timeout,
                .key = options.together ? sweep_key(plan, origin) : std::string(),
                .other_work = "has read another sweep",
                .build = options.together ? build_name() : std::string()},
               work);
  SweepEnd end;
  if (!farm.is_first()) {
    farm.wait_for_end();
    end.elsewhere = true;
    return end;
  }
  end = fill_store(plan, options, origin, progress, farm);
  if (end.stopped) farm.leave_at_once();
  end.lost = farm.lost();
  end.without_workers = farm.without_workers();
  return end;
}

}  // namespace stagecraft
