// `stagecraft report`: writes an HTML page of kept runs and of scenarios that it runs first, or of a sweep, whose
// missing points it runs as `sweep` does.

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

#include <fmt/core.h>

#include "backends/backend.hpp"
#include "sim/config/library.hpp"
#include "sim/config/value.hpp"
#include "sim/core/file.hpp"
#include "sim/core/json.hpp"
#include "sim/diagnosis/memory_remedies.hpp"
#include "sim/sweep/run_sweep.hpp"
#include "sim/sweep/store.hpp"
#include "sim/sweep/sweep.hpp"
#include "sim/sweep/table.hpp"
#include "tools/stagecraft/command.hpp"
#include "tools/stagecraft/interrupt.hpp"
#include "tools/stagecraft/run_folder.hpp"
#include "tools/stagecraft/sweep_points.hpp"

namespace stagecraft {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSqlite = "SQLite format 3";

/// The scenario of a sweep, from a sweep file that still has the same text: next to the results, in the working folder
/// or in the library.
std::optional<std::string> found_base(const SweepTable& table, const std::string& results) {
  std::vector<std::string> files{(fs::path(results).parent_path() / (table.name + ".yaml")).string(),
                                 table.name + ".yaml"};
  for (const NamedFile& f : named_files(FileKind::Sweep))
    if (fs::path(f.path).stem() == table.name) files.push_back(f.path);
  for (const std::string& file : files) {
    std::error_code error;
    if (fs::is_regular_file(file, error) && read_file(file) == table.text) return load_sweep(file).base_file;
  }
  return std::nullopt;
}

/// The name of a scenario file where it has one; else its path.
std::string called(const std::string& file) {
  for (const NamedFile& f : named_files(FileKind::Scenario))
    if (f.path == file) return f.name;
  return file;
}

/// Whether a command is given a sweep: a file of results, a sweep file, or the name of one.
bool is_sweep_results(const std::string& given) {
  std::error_code error;
  if (!fs::is_regular_file(given, error)) return false;
  std::ifstream file(given, std::ios::binary);
  std::string start(kSqlite.size(), '\0');
  file.read(start.data(), static_cast<std::streamsize>(start.size()));
  return file && start == kSqlite;
}

bool is_sweep_file(const std::string& given) {
  std::error_code error;
  if (fs::is_regular_file(given, error)) {
    config::Problems problems;
    const config::Value root = config::parse_yaml_file(given, problems);
    const config::Value* schema = problems.empty() ? root.find("schema") : nullptr;
    return schema && schema->text.starts_with("sweep/");
  }
  const auto named = [&](FileKind kind) {
    const auto files = named_files(kind);
    return std::any_of(files.begin(), files.end(), [&](const NamedFile& f) { return f.name == given; });
  };
  return named(FileKind::Sweep) && !named(FileKind::Scenario);
}

}  // namespace

}  // namespace stagecraft

namespace stagecraft::commands {
namespace {

bool is_folder(const std::string& given) {
  std::error_code error;
  return std::filesystem::is_directory(given, error);
}

/// Whether `given` names results of a sweep, even if the file does not exist.
bool means_results(const std::string& given) {
  return is_sweep_results(given) || (given.ends_with(".db") && !is_folder(given));
}

std::string title_of(const Arguments& a, const KeptRun& first) {
  if (a.has("title")) return a.text("title");
  const std::optional<Json> results = Json::parse(first.results);
  const Json* title = results ? results->find("title") : nullptr;
  return title && title->is_string() && !title->text().empty() ? title->text() : first.name;
}

void add_scenario(const std::string& given, const Arguments& a, std::vector<KeptRun>& runs) {
  std::vector<std::string> backends = a.list("backend");
  for (const std::string& backend : backends) get_from(backends::catalog(), "backend", backend);
  CompiledExperiment compiled = compile_or_advise(load_experiment(given, a.list("set")));
  if (backends.empty()) backends.push_back(default_backend(compiled.plan, compiled.cluster()));
  for (const std::string& backend : backends) {
    Outcome outcome = run(compiled, backend);
    print_error("{} {} on {}\n", outcome.timeline.clock == Clock::Simulated ? "simulated" : "measured", given, backend);
    add_interval(compiled, outcome);
    add_diagnosis(compiled, outcome, given, a.list("set"));
    runs.push_back(kept_run(backends.size() > 1 ? given + " on " + backend : given, compiled, outcome));
  }
}

void write_page(const Arguments& a, const std::string& page) {
  write_output_of(a, "out", page, CommentStyle::Markup);
  print_error("wrote {}\n", a.text("out"));
}

/// `base`: the scenario of the sweep; empty where it has to be found by the sweep's name, next to the results or in the
/// library.
int write_sweep(const Arguments& a, SweepTable table, const std::string& results, const std::string& base) {
  if (table.rows.empty()) throw InputError(fmt::format("'{}' has no points", results), "run the sweep first");
  std::optional<std::string> scenario = base.empty() ? found_base(table, results) : base;
  if (scenario) scenario = called(*scenario);
  if (a.has("title")) table.title = a.text("title");
  write_page(a, sweep_html(table, scenario, a.text("out")));
  return 0;
}

/// Runs what has no result yet, as the command sweep does.
int run_and_write_sweep(const Arguments& a, const std::string& given) {
  const std::vector<std::string> backends = a.list("backend");
  if (backends.size() > 1) throw InputError("a sweep runs on one backend", "give --backend once");
  SweepOptions options{.file = given, .sets = a.list("set")};
  options.stop = NotedInterrupt::came;
  if (!backends.empty()) options.backend = get_from(backends::catalog(), "backend", backends.front()).name;
  const SweepPlan plan = plan_sweep(options);
  warn(plan.warnings);
  const NotedInterrupt noted;
  const SweepEnd end = run_points(plan, options);
  if (!end.stopped) return write_sweep(a, results_in(plan.out), plan.out, plan.sweep.base_file);
  print_error("{}: {} to go, which the same command does\n", NotedInterrupt::word(),
              end.progress.total - end.progress.there - end.progress.done);
  return NotedInterrupt::exit_code();
}

int execute_sweep(const Arguments& a, const std::string& given) {
  if (a.list("RUN").size() > 1)
    throw InputError(fmt::format("'{}' is a sweep, which has a page of its own", given), "one command for each page");
  if (is_sweep_file(given)) return run_and_write_sweep(a, given);
  for (const char* name : {"set", "backend"})
    if (a.has(name))
      throw InputError(fmt::format("--{} is for what is to be run, and these points have run already", name),
                       "give the sweep's file, of which is run what has no result yet");
  return write_sweep(a, results_in(given), given, "");
}

int execute_report(const Arguments& a) {
  check_output_of(a, "out");
  for (const std::string& given : a.list("RUN"))
    if (means_results(given) || is_sweep_file(given)) return execute_sweep(a, given);
  std::vector<KeptRun> runs;
  bool ran = false;
  for (std::string given : a.list("RUN")) {
    while (given.size() > 1 && given.ends_with('/')) given.pop_back();
    // The results of a run stand for its folder.
    const std::filesystem::path path(given);
    if (path.filename() == "results.json") given = path.has_parent_path() ? path.parent_path().string() : ".";
    if (is_folder(given)) {
      runs.push_back(read_kept_run(given));
    } else {
      add_scenario(given, a, runs);
      ran = true;
    }
  }
  for (const char* name : {"set", "backend"})
    if (a.has(name) && !ran)
      throw InputError(fmt::format("--{} is for scenarios, and these have run already", name), "give a scenario file");
  write_page(a, html_page(runs, title_of(a, runs.front())));
  return 0;
}

}  // namespace

extern const Command report{
    .name = "report",
    .summary = "Write runs, or a sweep, as one HTML page",
    .group = "Plan",
    .example =
        "stagecraft report out/a out/b --out page.html\n"
        "  stagecraft report scenarios/examples/teacher.yaml -b simgrid -b cpu\n"
        "  stagecraft report schedules.db",
    .arguments = {{"RUN",
                   Argument::Kind::List,
                   "Folders that run --out wrote, or scenarios to run; the first is the baseline. Or one sweep: its "
                   "results, or its file, whose missing points are run",
                   {},
                   true},
                  {"-b,--backend", Argument::Kind::List,
                   "Backend of scenarios; several: each scenario runs on all of them (default: simgrid; above 64 "
                   "devices fluid)"},
                  {"-s,--set", Argument::Kind::List,
                   "path=value, applied to each scenario or to every point of a sweep; may be repeated"},
                  {"-o,--out", Argument::Kind::Text, "File to write", "report.html"},
                  {"--title", Argument::Kind::Text, "Title of the page (default: the title of the first run)"},
                  force_argument(),
                  quiet_argument()},
    .run = execute_report,
};

}  // namespace stagecraft::commands
