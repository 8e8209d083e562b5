// Answers of `serve` that are tables (compare, plan, search, sweep), one order without a scenario (schedule), and tasks
// for the search of another process (search_task).

#include <chrono>
#include <utility>

#include <fmt/core.h>

#include "sim/config/override.hpp"
#include "sim/core/activity.hpp"
#include "sim/experiment/limits.hpp"
#include "sim/output/json_files.hpp"
#include "sim/published/error_classes.hpp"
#include "sim/search/choices.hpp"
#include "sim/search/plan_table.hpp"
#include "sim/search/schedule_table.hpp"
#include "sim/sweep/run_sweep.hpp"
#include "tools/stagecraft/asked_order.hpp"
#include "tools/stagecraft/run_folder.hpp"
#include "tools/stagecraft/run_table.hpp"
#include "tools/stagecraft/serve/session.hpp"

namespace stagecraft::serve {
namespace {

Json table_answer(const std::string& json, const std::string& text) {
  return JsonObject{{"table", *Json::parse(json)}, {"text", text}};
}

Experiment asked_scenario(const Parameters& p) { return load_experiment(p.text("file"), p.texts("sets")); }

int replay_of(const Parameters& p, const std::string& backend) { return backend == "ideal" ? p.whole("replay", 0) : 0; }

/// The arguments of `stagecraft schedule` that stand for the parameters.
Arguments schedule_arguments_of(const Parameters& p) {
  Arguments a;
  a.values["NAME"] = {p.text("name")};
  for (const char* name : {"ranks", "microbatches", "chunks"})
    if (p.has(name)) a.values[name] = {std::to_string(p.whole(name, 0))};
  for (const char* name : {"f", "b", "i", "w", "r", "u", "comm"})
    if (p.has(name)) a.values[name] = {fmt::format("{:.17g}", p.number(name, 0))};
  if (p.has("recompute")) a.values["recompute"] = {p.text("recompute")};
  if (!p.texts("sets").empty()) a.values["set"] = p.texts("sets");
  return a;
}

AskedOrder order_of_function(const FunctionOrder& order, const Arguments& a, const StageCost& cost) {
  const int ranks = a.count("ranks", 1, 1 << 16), micro_batches = a.count("microbatches", 1, 1 << 20);
  const int chunks = a.has("chunks") ? a.count("chunks", 1, kMostChunks) : order.def.chunks.min;
  AskedOrder asked{
      .name = order.name, .plan = plan_for(order.def, ranks, chunks, micro_batches), .one = {}, .all_iterations = {}};
  check_size(asked.plan, kTimedIterations, order.def.trains);
  const StageCosts costs = uniform_costs(asked.plan, cost);
  asked.one = build_schedule(order.def, {.plan = asked.plan, .costs = costs});
  asked.all_iterations = complete(asked.one, asked.plan, kTimedIterations);
  return asked;
}

Json search_progress(const SearchProgress& p) {
  Json news = JsonObject{{"progress", fmt::format("searching: {} simulated, {} may be better", p.simulated, p.waiting)},
                         {"done", p.simulated},
                         {"seconds", p.seconds}};
  if (p.best) news["best_period_s"] = known_period(*p.best).value;
  return news;
}

}  // namespace

Json answer_schedule(Session& session, const Parameters& p) {
  const std::unique_ptr<FunctionOrder> order = read_order(session, p);
  const OrderScope scope(order.get());
  Arguments a = schedule_arguments_of(p);
  for (const auto& [name, fallback] : {std::pair{"f", "1"}, {"u", "0"}, {"comm", "0"}})
    if (!a.has(name)) a.values[name] = {fallback};
  const StageCost cost = asked_costs(a);
  const AskedOrder asked = order ? order_of_function(*order, a, cost) : asked_order(a, kTimedIterations);
  TimedOrder timed = time_order(asked, cost, Seconds{a.number("comm")}, 0);
  Json results = *Json::parse(schedule_json(asked.name, timed.program, timed.report, timed.peaks, asked.search));
  auto run = std::make_unique<ServedRun>();
  run->title = asked.name;
  run->order = asked.one;
  run->order_program = std::move(timed.program);
  run->order_cluster = std::move(timed.cluster);
  run->outcome = {std::move(timed.timeline), std::move(timed.report)};
  return keep_run(session, std::move(run), std::move(results), false);
}

namespace {

/// The orders that functions of the other program give on the plan of the scenario.
std::vector<OwnOrder> orders_of_functions(Session& session, const Parameters& p) {
  std::vector<OwnOrder> orders;
  for (const OwnSchedule& schedule : read_own_schedules(session, p))
    orders.push_back(order_for(schedule, asked_scenario(p)));
  return orders;
}

/// Runs of this session next to each other, as `compare` prints the folders of runs.
Json compared_runs(Session& session, const Parameters& p) {
  std::vector<NamedResults> runs;
  const std::vector<std::string> names = p.texts("names");
  for (const Json& number : p.items("runs")) {
    const auto run = session.runs.find(whole_number(number, "runs", 0, kLargestWhole));
    if (run == session.runs.end() || !run->second->compiled)
      throw InputError("a run is no longer there, or has no scenario", "run it again");
    runs.push_back({runs.size() < names.size() ? names[runs.size()] : run->second->title,
                    Json::parse(results_of(*run->second->compiled, run->second->outcome)).value()});
  }
  std::string text = to_text(run_table(runs));
  for (const std::string& more : {plans_text(runs), limits_text(runs)})
    if (!more.empty()) text += "\n" + more;
  return table_answer(runs_json(runs), text);
}

}  // namespace

Json answer_compare(Session& session, const Parameters& p) {
  if (p.has("runs")) return compared_runs(session, p);
  const std::string backend = p.text("backend", "ideal");
  const ScheduleTable table = [&] {
    ScheduleTable rows = compare_schedules(asked_scenario(p), {.schedules = p.text("schedules", "all"),
                                                               .orders = orders_of_functions(session, p),
                                                               .backend = backend,
                                                               .replay = replay_of(p, backend)});
    sort_rows(rows, parse_sort_key(p.text("by", "period")));
    return rows;
  }();
  return table_answer(schedules_json(table), to_text(table));
}

Json answer_plan(Session& session, const Parameters& p) {
  const std::string backend = p.text("backend", "ideal");
  const std::unique_ptr<FunctionOrder> order = read_order(session, p);
  const OrderScope scope(order.get());
  const PlanTable table =
      compare_plans(read_asked_experiment(p, order.get()),
                    {.planners = p.text("planners", "all"), .backend = backend, .replay = replay_of(p, backend)});
  return table_answer(plans_json(table), to_text(table));
}

namespace {

ChoiceOptions search_options(Session& session, const Parameters& p) {
  ChoiceOptions options{.schedules = p.texts("schedules"),
                        .own_schedules = read_own_schedules(session, p),
                        .weights = p.texts("weights"),
                        .pack_fields = p.texts("data"),
                        .objective = objective_from(p.has("objective") ? p.text("objective") : "time"),
                        .max_simulations = p.whole("most", 20000, 1, 1000000),
                        .margin = p.number("margin", ChoiceOptions{}.margin),
                        .contended = p.flag("contended", true),
                        .front_simulations = p.whole("front", 300),
                        .threads = p.whole("threads", 0, 0, 1024)};
  if (p.has("seconds"))
    options.time = Seconds{p.number("seconds", 0)};
  else
    options.max_orders = p.whole("orders", 16), options.patience = p.whole("patience", 400),
    options.patience_of_schedule = p.has("patience") ? 0 : 40, options.patience_ops = 8e6;
  return options;
}

/// The other program gives the tasks to an executor, whose workers ask answer_search_task().
std::vector<std::string> evaluate_by_executor(Session& session, const std::string& question,
                                              const std::vector<std::string>& tasks, std::optional<Seconds> left) {
  session.connection.send(JsonObject{{"call", "search_tasks"},
                                     {"question", question},
                                     {"tasks", Json(tasks)},
                                     {"left", left ? Json(left->value) : Json()}});
  const std::optional<Json> answer = session.connection.receive();
  if (!answer) throw BackendError("the program that asks has gone");
  const Parameters results(*answer, "answer");
  if (results.has("failed")) throw FunctionFailed();
  return results.texts("results");
}

/// The settings of a choice, with the order itself in place of the name of the other program's function.
std::vector<std::string> sets_with_order(const Choice& choice, const std::vector<OwnSchedule>& own_schedules,
                                         const Parameters& p) {
  std::vector<std::string> sets = choice.sets;
  for (const OwnSchedule& schedule : own_schedules) {
    if (choice.schedule != schedule.spec.name()) continue;
    std::erase_if(sets, [](const std::string& set) { return set.starts_with("run.schedule="); });
    std::vector<std::string> given = p.texts("sets");
    given.insert(given.end(), sets.begin(), sets.end());
    const OwnOrder order = order_for(schedule, load_experiment(p.text("file"), given));
    sets.push_back("run.schedule=" + config::to_set_text(*schedule_of(order).options));
  }
  return sets;
}

}  // namespace

Json answer_search(Session& session, const Parameters& p) {
  const Experiment experiment = asked_scenario(p);
  ChoiceOptions options = search_options(session, p);
  const auto begin = std::chrono::steady_clock::now();
  if (p.flag("executor", false))
    options.elsewhere = [&, time = options.time](const std::string& question, const std::vector<std::string>& tasks) {
      const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - begin;
      return evaluate_by_executor(session, question, tasks,
                                  time ? std::optional(*time - Seconds{passed.count()}) : std::nullopt);
    };
  const ChoiceTable table = search_choices(
      experiment, options, [&](const SearchProgress& news) { session.connection.send(search_progress(news)); });
  Json answer = table_answer(choices_json(table), to_text(table, false, false));
  if (!table.front.empty()) answer["best"] = Json(sets_with_order(table.front.front(), options.own_schedules, p));
  answer["as_written_is_best"] = !table.front.empty() && own_is_best(table);
  answer["iterations"] = table.iterations;
  return answer;
}

Json answer_search_task(Session& session, const Parameters& p) {
  if (const std::string question = p.text("question"); session.question != question) {
    session.question.clear();
    session.evaluator = task_evaluator(question, asked_scenario(p), search_options(session, p));
    session.question = question;
  }
  const std::optional<Seconds> left = p.has("left") ? std::optional(Seconds{p.number("left", 0)}) : std::nullopt;
  return JsonObject{{"result", session.evaluator(p.text("task"), left)}};
}

Json answer_sweep(Session& session, const Parameters& p) {
  const bool runs = p.flag("run", true);  // Else it only merges parts, and its points may lack results.
  const SweepOptions options{.file = p.text("file"),
                             .sets = p.texts("sets"),
                             .only = p.texts("only"),
                             .backend = p.text("backend"),
                             .jobs = p.whole("jobs", 0, 0, 1024),
                             .out = p.text("out"),
                             .parts = p.texts("parts"),
                             .own_schedules = read_own_schedules(session, p),
                             .stop = [runs] { return !runs; }};
  const SweepPlan plan = plan_sweep(options);
  const SweepEnd end = run_sweep(plan, options, [&](const SweepProgress& news) {
    const ActivityState state{"running points", "points", news.there + news.done, news.total, news.there, {},
                              news.seconds};
    session.connection.send(JsonObject{
        {"progress", progress_text(state)}, {"done", state.done}, {"total", news.total}, {"seconds", news.seconds}});
  });
  Json answer = table_answer(sweep_json(end.table), to_text(end.table));
  answer["out"] = plan.out;
  answer["failed"] = end.table.failed();
  answer["missing"] = end.table.missing();
  return answer;
}

}  // namespace stagecraft::serve
