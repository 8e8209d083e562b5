// `stagecraft search`: fills in what a scenario may lack here, searches (sim/search), diagnoses the rows that it
// prints, and writes the answer, its page, and a scenario of the first row.

#include <algorithm>
#include <chrono>
#include <csignal>
#include <functional>
#include <future>
#include <map>
#include <optional>
#include <set>
#include <string>

#include <fmt/core.h>

#include "backends/world.hpp"
#include "sim/config/library.hpp"
#include "sim/config/override.hpp"
#include "sim/config/units.hpp"
#include "sim/config/value.hpp"
#include "sim/core/activity.hpp"
#include "sim/core/stop_point.hpp"
#include "sim/core/text.hpp"
#include "sim/core/threads.hpp"
#include "sim/experiment/packed_data.hpp"
#include "sim/experiment/scenario_version.hpp"
#include "sim/experiment/version.hpp"
#include "sim/output/choice_table.hpp"
#include "sim/published/error_classes.hpp"
#include "sim/search/choices.hpp"
#include "sim/search/search_objective.hpp"
#include "sim/weights/policy.hpp"
#include "tools/stagecraft/command.hpp"
#include "tools/stagecraft/interrupt.hpp"
#include "tools/stagecraft/picture_options.hpp"
#include "tools/stagecraft/row_diagnosis.hpp"
#include "tools/stagecraft/table_options.hpp"

namespace stagecraft::commands {
namespace {

constexpr int kNoPlanFits = 3;
constexpr int kOrdersByDefault = 16, kFrontByDefault = 300, kPatienceByDefault = 400, kPatienceOfSchedule = 40;
constexpr double kPatienceOps = 8e6;  // About 60 simulations of 64 stages with 16 replicas and 128 micro-batches.

std::vector<std::string> option_words(const Arguments& a, const char* option) {
  std::vector<std::string> words;
  if (a.has(option))
    for (const std::string& word : split(a.text(option), ',')) words.emplace_back(trim(word));
  return words;
}

/// A share of a device's memory.
double margin_of(const std::string& text) {
  std::string why;
  const std::optional<double> share = config::parse_quantity(config::Dimension::Share, text, why);
  if (!share || *share < 0 || *share >= 1)
    throw InputError(fmt::format("--margin: '{}' is no share of a device's memory: {}", text,
                                 !share       ? why
                                 : *share < 0 ? "it is below zero"
                                              : "nothing would be left to use"),
                     "such as 6%");
  return *share;
}

ChoiceOptions search_options(const Arguments& a) {
  ChoiceOptions options{.schedules = option_words(a, "schedules"),
                        .objective = objective_from(a.text("objective")),
                        .backend = a.text("backend")};
  if (a.has("weights") && a.text("weights") == "all") {
    for (const WeightsDef* def : weights::catalog())
      if (def->name != "custom") options.weights.emplace_back(def->name);
  } else {
    options.weights = option_words(a, "weights");
  }
  options.pack_fields = option_words(a, "data");
  options.max_simulations = a.count("most", 1, 1000000);
  options.margin = margin_of(a.text("margin"));
  options.contended = replay_rows(a, options.backend, "all") > 0;
  if (!a.flag("all")) options.front_simulations = kFrontByDefault;
  if (!a.flag("all") && !a.has("time"))
    options.max_orders = kOrdersByDefault, options.patience = kPatienceByDefault,
    options.patience_of_schedule = kPatienceOfSchedule, options.patience_ops = kPatienceOps;
  options.threads = a.has("jobs") ? a.count("jobs", 1, 1024) : launched().size > 1 ? 1 : 0;
  options.seed = static_cast<std::uint64_t>(a.count("seed", 0, 1 << 30));
  if (a.has("time")) options.time = time_limit(a);
  options.resume = a.text("resume");
  options.stop = NotedInterrupt::came;
  return options;
}

/// --set, after defaults for what a search does not need from a scenario.
struct SearchSets {
  std::vector<std::string> sets;
  bool has_plan = true;
};

/// What a search does not need from a scenario: a plan, and a schedule, because it makes its own. Without a batch an
/// iteration has eight samples for each device.
SearchSets sets_of(const Arguments& a) {
  constexpr int kSamplesOfDevice = 8;
  SearchSets given{a.list("set")};
  config::Problems problems;
  const config::Value root = config::parse_yaml_file(scenario_file(a.text("FILE")), problems);
  problems.throw_if_any();
  const auto lacks = [&](const std::string& path) {
    const std::string part = path.substr(0, path.find('.'));
    return root.is_map() && !config::get_path(root, path) &&
           std::none_of(given.sets.begin(), given.sets.end(), [&](const std::string& set) {
             return set.starts_with(path + "=") || set.starts_with(path + ".") || set.starts_with(part + "=");
           });
  };
  std::vector<std::string> defaults;
  given.has_plan = !lacks("plan");
  if (!given.has_plan) defaults.push_back("plan={planner: balanced, stages: 1}");
  if (lacks("run.schedule")) defaults.push_back("run.schedule=1f1b");
  const bool without_batch = lacks("run.micro_batches") && lacks("run.global_batch") && lacks("run.loads");
  if (without_batch) defaults.push_back("run.micro_batches=1");
  given.sets.insert(given.sets.begin(), defaults.begin(), defaults.end());
  if (!without_batch) return given;
  const std::size_t devices = load_experiment(a.text("FILE"), given.sets).cluster->devices.size();
  const std::size_t samples = kSamplesOfDevice * devices;
  given.sets[defaults.size() - 1] = fmt::format("run.micro_batches={}", samples);
  if (launched().rank > 0) return given;
  print_error(
      "note: the scenario has no batch, so an iteration has {}, {} for each device; --set run.global_batch=N "
      "takes others\n",
      pluralize(static_cast<std::int64_t>(samples), "sample"), kSamplesOfDevice);
  return given;
}

/// The scenario whose `run` shows the first row, or the scenario as it is where that is shorter.
std::string best_scenario(const Arguments& a, std::vector<std::string> sets, const ChoiceTable& table) {
  const Choice& first = table.front.front();
  if (!own_is_best(table)) sets = with_chosen_options(std::move(sets), first.sets);
  sets.push_back(fmt::format("run.iterations={}", table.iterations));
  return config::to_yaml(load_scenario(a.text("FILE"), sets).tree, true);
}

/// "shortest period: 13.38 ms so far, at most 900 to go (3 s)".
std::string progress_note(const SearchProgress& p) {
  std::string text = fmt::format("{}: {}", p.phase, p.best ? p.unit.text(p.best->amount) + " so far" : "nothing yet");
  // What is found makes most of what waits superfluous, so this is the longest that it can take.
  if (p.waiting > 0 && p.rate > 0) text += fmt::format(", at most {} to go ({:.0f} s)", p.waiting, p.waiting / p.rate);
  return text;
}

/// The end of a search with --time is for the diagnosis of its first row, which runs a few simulations.
Seconds diagnosis_time(Seconds time) {
  constexpr double kShare = 0.1;
  constexpr Seconds kMost{2};
  return std::min(kShare * time, kMost);
}

/// What limits the rows that are printed, the first one with what a change saves, until `stop` asks for the end.
void diagnose_rows(const Arguments& a, const std::vector<std::string>& sets, const std::function<bool()>& stop,
                   int threads, ChoiceTable& table) try {
  const Activity activity("diagnosing the rows");
  const StopScope scope(stop);
  const Choice& first = table.front.front();
  const bool contended = first.ran_contended();
  const std::string backend = contended ? table.replay.backend : a.text("backend");
  table.diagnosis =
      diagnose_row(a.text("FILE"), sets, first.sets, backend, WhatIf::Row, nullptr, {first.order, table.iterations});
  table.front.front().limit = cause_text(table.diagnosis);
  const bool is_whole = a.flag("all") || a.has("html") || a.text("format") != "text";
  std::set<int> printed;
  for (const Choice& row : printed_rows(table, is_whole)) printed.insert(row.id);
  RowsToDiagnose others{.file = a.text("FILE"), .sets = sets, .sets_of_rows = {}, .orders = {}, .backend = backend};
  std::vector<Choice*> rows;
  for (std::size_t i = 1; i < table.front.size(); ++i) {
    if (!printed.contains(table.front[i].id)) continue;
    rows.push_back(&table.front[i]);
    others.sets_of_rows.push_back(table.front[i].sets);
    others.orders.push_back({table.front[i].order, table.iterations});
  }
  const std::vector<std::string> causes = causes_of_rows(others, threads, stop);
  for (std::size_t i = 0; i < causes.size(); ++i) rows[i]->limit = causes[i];
} catch (const Stopped&) {
  table.diagnosis.not_simulated =
      fmt::format("not diagnosed in the time that was left; stagecraft run --what-if does it");
}

/// The page with the command that runs a row, as `run` is told the same file and options.
void write_search_page(const Arguments& a, const std::vector<std::string>& sets, const ChoiceTable& table) {
  std::string command = "stagecraft run " + shell_word(a.text("FILE"));
  if (const std::string backend = table.replay.asked() ? table.replay.backend : a.text("backend"); !backend.empty())
    command += " --backend " + backend;
  for (const std::string& set : sets) command += " --set " + shell_word(set);
  write_output_of(a, "html", choices_html(table, command, version()), CommentStyle::Markup);
  print_error("wrote {}\n", a.text("html"));
}

/// An answer with one row, for its columns.
Table example_of(const ChoiceOptions& options, const Experiment& experiment) {
  ChoiceTable table;
  table.unit = {.objective = options.objective, .tokens = static_cast<double>(tokens_of_sample(*experiment.model))};
  if (options.contended) table.replay.backend = kReplayBackend;
  Choice& row = table.front.emplace_back();
  row.group = "TP 8";
  std::map<std::string, int> one_of_each_type;
  for (const DeviceType& type : experiment.cluster->types) one_of_each_type[type.name] = 1;
  row.period = Seconds{1};
  row.economics = economics(experiment.budget, one_of_each_type, table.unit.tokens);
  return rows_of(table);
}

void print_choices(const Arguments& a, const ChoiceTable& table, const TextLayout& layout) {
  const std::string format = a.text("format");
  for (const std::string& note : table.notes) print_error("note: {}\n", note);
  if (const std::string line = unexchanged_text(table); format != "text" && !line.empty())
    print_error("note: {}\n", line);
  if (format == "text")
    print_text(to_text(table, a.flag("all"), a.flag("details"), layout), layout);
  else
    print(format == "json" ? choices_json(table) + "\n" : table_in_format(rows_of(table), format, layout));
  flush();
}

void write_choices(const Arguments& a, const std::vector<std::string>& sets, const std::string& title,
                   const ChoiceTable& table) {
  if (a.has("out") && !table.front.empty())
    write_output_of(a, "out", best_scenario(a, sets, table), CommentStyle::Hash);
  if (a.has("html")) write_search_page(a, sets, table);
  if (!table.front.empty())
    write_pictures(a, [&](const PictureSize& size) { return front_picture(table, title, size); });
}

/// The exit code.
int say_interrupted(const ChoiceTable& table, bool has_state) {
  if (table.stopped != "interrupted")
    print_error("{} after the search was complete\n", NotedInterrupt::word());
  else
    print_error(
        "{}; {}\n", NotedInterrupt::word(),
        has_state ? "the same command resumes the search" : "with --resume FILE the next search would go on from here");
  return NotedInterrupt::exit_code();
}

int execute_search(const Arguments& a) {
  check_table_format(a, {"text", "csv", "json", "markdown"});
  const TextLayout layout = layout_of(a);
  const bool is_first = launched().rank == 0;  // Only the first of the processes that share a search writes.
  if (is_first && a.has("out")) check_output_of(a, "out");
  if (is_first && a.has("html")) check_output_of(a, "html");
  check_picture_options(a);
  const auto begin = std::chrono::steady_clock::now();
  ChoiceOptions options = search_options(a);
  const SearchSets given = sets_of(a);
  const Experiment experiment = load_experiment(a.text("FILE"), given.sets);
  select_columns(example_of(options, experiment), layout.columns);  // Names a wrong column before the search.
  const std::optional<Seconds> time = options.time;
  if (time) options.time = *time - diagnosis_time(*time);
  // Reading the published runs takes one thread some tenths of a second, so it goes on next to the search; after it
  // where the system has no more threads.
  std::future<std::optional<PredictionInterval>> interval =
      std::async(options.threads == 1 ? std::launch::deferred : std::launch::async | std::launch::deferred,
                 [&experiment] { return prediction_interval(experiment); });
  ChoiceTable table;
  std::optional<NotedInterrupt> noted(std::in_place);
  {
    Activity activity("searching");
    table = search_choices(experiment, options, [&](const SearchProgress& p) {
      activity.count(p.simulated, "simulations");
      activity.note(progress_note(p));
    });
  }
  if (!is_first) return 0;
  if (!given.has_plan) {
    table.configured_period = {}, table.configured_amount = 0, table.own_replayed.reset();
    // The plan that stands in for a missing one uses few devices.
    std::erase_if(table.notes, [](const std::string& note) { return note.find("nothing to do") != note.npos; });
  }
  const auto is_over = [&] {
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - begin;
    return NotedInterrupt::came() || (time && passed.count() >= time->value);
  };
  if (!table.front.empty() && table.stopped != "interrupted")
    diagnose_rows(a, given.sets, is_over, thread_count(options.threads), table);
  {
    const Activity activity("reading published runs");
    table.interval = interval.get();
  }
  const bool is_interrupted = NotedInterrupt::came();
  noted.reset();
  print_choices(a, table, layout);
  write_choices(a, given.sets, experiment.title, table);
  if (is_interrupted || table.stopped == "interrupted") return say_interrupted(table, !options.resume.empty());
  return table.front.empty() ? kNoPlanFits : 0;
}

std::vector<Argument> search_arguments() {
  std::vector<Argument> arguments{
      {"FILE", Argument::Kind::Text, "Scenario: its model, cluster and samples in an iteration", {}, true},
      {"--objective", Argument::Kind::Text,
       "What is to be as small as possible: time (the period), cost (dollars for 10^9 tokens, by report.price or "
       "report.prices) or energy (joules a token)",
       "time"},
      {"--time", Argument::Kind::Text,
       "Print the best so far after this time: 60s, 5min; its last tenth, at most 2 s, is for the diagnosis of the "
       "rows (default: search until nothing else can be shorter, or 400 simulations, and 40 of each schedule, found "
       "nothing better)"},
      {"-o,--out", Argument::Kind::Text, "File for a scenario whose run shows the first row"},
      {"--html", Argument::Kind::Text,
       "Write a page with the answer, the Pareto front and the reasons to this file too"},
      {"--resume", Argument::Kind::Text,
       "File for the state of the search; if it exists, the search resumes with the same answer"},
      {"-j,--jobs", Argument::Kind::Count,
       "Threads of each process; the answer is the same with any number (default: one for each core, one with "
       "--hosts or mpirun)"},
      {"--seed", Argument::Kind::Count, "Order of choices with equal bounds", "1"},
      {"--schedules", Argument::Kind::Text,
       "Names with commas between, and files of your own orders (NAME.csv, as PyTorch writes them), which run on plans "
       "with as many stages and micro-batches. chimera and other bidirectional schedules are tried only if named "
       "(default: the usual synchronous schedules, then synthesised; with software of Megatron-LM 1f1b and "
       "interleaved, and with torchtitan what it runs)"},
      {"--weights", Argument::Kind::Text,
       "Weights policies with commas between, or all; stale ones are included (default: the policy of the "
       "scenario, or what belongs to each schedule)"},
      {"--data", Argument::Kind::Text,
       "What the search chooses too of how sequences of different lengths are packed, with commas between: room "
       "(tokens of a pack), pack (the rule) and order (of the micro-batches) (default: data stays as it is)"},
      {"--all", Argument::Kind::Flag, "Search for and print the whole Pareto front of time, memory and devices"},
      details_argument("why the first row is the first, what limits it, and all that was not tried"),
      {"--margin", Argument::Kind::Text,
       "Share of each device's memory that the first row leaves free, because predictions of memory err; rows with "
       "less "
       "come after it and are marked as tight",
       "6%"},
      {"--most", Argument::Kind::Count, "Most simulations", "20000"},
      {"-b,--backend", Argument::Kind::Text, "Backend that simulates them first", "ideal"},
      {"--replay", Argument::Kind::Text,
       "0: rank without network contention. Otherwise whatever may be best is simulated on fluid too, and "
       "ranked by that (default: all; 0 with a backend other than ideal)"},
      {"-s,--set", Argument::Kind::List, "path=value of the scenario; may be repeated"},
      quiet_argument(),
      force_argument(),
      {"--format", Argument::Kind::Text, "text, csv, json, markdown or latex", "text"}};
  for (Argument& a : picture_arguments("the Pareto front")) arguments.push_back(std::move(a));
  for (Argument& a : host_arguments()) arguments.push_back(std::move(a));
  return with_table_arguments(std::move(arguments));
}

}  // namespace

extern const Command search{
    .name = "search",
    .summary =
        "Search plans, devices, schedules, micro-batches, recomputation and weights together for the fastest or "
        "cheapest",
    .group = "Plan",
    .example = "stagecraft search scenarios/examples/quickstart.yaml --time 60s --out best.yaml",
    .arguments = search_arguments(),
    .run = execute_search,
    .shared = [](const Arguments&) { return true; },
};

}  // namespace stagecraft::commands
