// `stagecraft schema`: prints the JSON Schema or the CSV columns of a file that stagecraft reads or writes, or lists
// these files.

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include <fmt/core.h>

#include "sim/cluster/accelerator.hpp"
#include "sim/cluster/collective_curve.hpp"
#include "sim/core/diagnostic.hpp"
#include "sim/core/json.hpp"
#include "sim/core/text.hpp"
#include "sim/cost/profile.hpp"
#include "sim/experiment/scenario.hpp"
#include "sim/output/choice_table.hpp"
#include "sim/output/convergence.hpp"
#include "sim/output/files.hpp"
#include "sim/output/json_files.hpp"
#include "sim/output/plan_table.hpp"
#include "sim/output/rank_table.hpp"
#include "sim/output/schedule_table.hpp"
#include "sim/published/prediction_errors.hpp"
#include "sim/published/predictions.hpp"
#include "sim/published/published.hpp"
#include "sim/published/table.hpp"
#include "sim/search/saved_trials.hpp"
#include "sim/sweep/sweep.hpp"
#include "sim/sweep/table.hpp"
#include "tools/stagecraft/command.hpp"
#include "tools/stagecraft/run_table.hpp"

namespace stagecraft::commands {
namespace {

/// A kind of file that stagecraft reads or writes.
struct FileSchema {
  std::string name;   ///< The kind of an input, such as "scenario", or the name of an output file, such as "spans.csv".
  std::string about;  ///< One line: what it is, and which command writes it.
  bool read;          ///< Otherwise written.
  std::function<std::string()> text;  ///< A JSON Schema, or for CSV a JSON Table Schema.
};

/// What `stagecraft check --format json` prints.
const config::Field& problems_field() {
  using namespace config;
  static const MapSpec problem{
      .title = "Something wrong with a file.",
      .fields = {text("file").doc("The file."), integer("line", 0, kInfinity).doc("Line, from 1; 0: the whole file."),
                 integer("column", 0, kInfinity).doc("Column, from 1; 0: the whole line."),
                 text("path").doc("Field, as a dotted path; may be empty."), text("message").doc("What is wrong."),
                 text("help").doc("What to do; may be empty."), text("code").doc("Kind of problem; may be empty.")}};
  static const Field field =
      list("problems", map("problem", problem)).positional().doc("What `stagecraft check --format json` prints.");
  return field;
}

/// What `stagecraft list --format json` prints.
const config::Field& entries_field() {
  using namespace config;
  static const MapSpec entry{
      .title = "An entry of a list.",
      .fields = {text("name").doc("Its name in files and options."), text("summary").doc("What it is, in a line."),
                 text("source").optional().doc("Paper, page or data sheet that it is from.")}};
  static const Field field =
      list("entries", map("entry", entry)).positional().doc("What `stagecraft list --format json` prints.");
  return field;
}

FileSchema input(const char* name, const char* about, std::string (*text)()) { return {name, about, true, text}; }

FileSchema json(const char* name, const char* about, const config::MapSpec& (*fields)()) {
  return {name, about, false, [name, fields] { return config::json_schema(fields(), name); }};
}

/// A file of JSON lines: the first is of one kind, all others are of another.
FileSchema json_lines(const char* name, const char* about, const config::MapSpec& (*first)(),
                      const config::MapSpec& (*others)()) {
  return {name, about, false, [name, first, others] {
            JsonArray kinds;
            for (const auto& fields : {first, others})
              kinds.push_back(*Json::parse(config::json_schema(fields(), name)));
            return Json(JsonObject{{"$schema", "https://json-schema.org/draft/2020-12/schema"},
                                   {"title", "One line of the file."},
                                   {"anyOf", std::move(kinds)}})
                .dump(2);
          }};
}

FileSchema csv(const char* name, const char* about, std::vector<FileColumn> (*columns)()) {
  return {name, about, false, [name, about, columns] { return table_schema(name, about, columns()); }};
}

std::vector<FileSchema> inputs() {
  using config::json_schema;
  return {input("scenario", "model, cluster, plan and run", [] { return json_schema(scenario_fields(), "scenario"); }),
          input("model", "layers and their costs", [] { return json_schema(model_fields().fields.front(), "model"); }),
          input("cluster", "devices and links", [] { return json_schema(cluster_fields().fields.front(), "cluster"); }),
          input("profile", "measured times; stagecraft profile and validate write it too",
                [] { return json_schema(profile_fields(), "profile"); }),
          input("sweep", "a scenario and the values that vary", [] { return json_schema(sweep_fields(), "sweep"); }),
          input("published", "published figures and how to reproduce them",
                [] { return json_schema(published_fields(), "published"); }),
          input("device", "a device type with its kernels and rates",
                [] { return json_schema(accelerator_fields(), "device"); }),
          input("collectives", "measured times of collectives by size",
                [] { return json_schema(collective_curve_fields(), "collectives"); }),
          input("predictions", "published runs whose times are predicted from shapes",
                [] { return json_schema(prediction_fields(), "predictions"); })};
}

std::vector<FileSchema> outputs() {
  return {
      json("results.json", "all numbers of a run: run --out, run --format json", results_fields),
      json("trace.json", "a run for ui.perfetto.dev: run --out", trace_fields),
      csv("spans.csv", "one row for each instruction of a run: run --out", spans_columns),
      csv("memory.csv", "one row for each change of a device's memory: run --out", memory_csv_columns),
      csv("losses.csv", "one row for each iteration of a real run: run --out", losses_columns),
      json("runs.json", "several runs with their times for a sample: compare --format json", runs_fields),
      csv("runs.csv", "one row for each number of several runs: compare --format csv", run_columns),
      json("schedules.json", "schedules on one scenario: compare --schedules --format json", schedules_fields),
      csv("schedules.csv", "one row for each schedule: compare --schedules --format csv", schedules_columns),
      json("plans.json", "planners on one scenario: plan --format json", plans_fields),
      csv("plans.csv", "one row for each planner: plan --format csv", plans_columns),
      json("choices.json", "the best ways to train: search --format json", choices_fields),
      json_lines("search-state.jsonl", "each line of the state of a search: search --resume", saved_search_fields,
                 saved_trial_fields),
      csv("ranks.csv", "one row for each pipeline rank: run --format csv", rank_columns),
      csv("choices.csv", "one row for each way to train: search --format csv", choices_columns),
      {"sweep.db", "tables of the SQLite file: sweep --out", false, database_schema},
      json("sweep.json", "the points of a sweep: sweep --format json, sweep-merge --format json", sweep_results_fields),
      csv("sweep.csv", "one row for each point: sweep --format csv, sweep-merge --format csv", sweep_columns),
      json("reproduced.json", "published figures and their reproductions: reproduce --format json", reproduced_fields),
      csv("reproduced.csv", "one row for each published figure: reproduce --format csv", reproduced_columns),
      csv("predictions.csv", "one row for each measured run: reproduce predictions --format csv", prediction_columns),
      json("validation.json", "a simulation next to a real run: validate --out", validation_fields),
      csv("convergence.csv", "one row for each evaluation of the loss: convergence --out", convergence_columns),
      csv("tta.csv", "one row for each target and method: convergence --out", tta_columns),
      json("order.json", "times and checks of an order without a scenario: schedule --format json", order_fields),
      {"list.json", "names that there are: list --format json", false,
       [] { return config::json_schema(entries_field(), "list.json"); }},
      {"problems.json", "what is wrong with files: check --format json", false,
       [] { return config::json_schema(problems_field(), "problems.json"); }}};
}

/// "spans" of "spans.csv".
std::string stem(const std::string& name) { return name.substr(0, name.find('.')); }

const std::vector<FileSchema>& file_schemas() {
  static const std::vector<FileSchema> list = [] {
    std::vector<FileSchema> schemas = inputs();
    for (FileSchema& output : outputs()) schemas.push_back(std::move(output));
    return schemas;
  }();
  return list;
}

/// By name; the ending may be left out where no other name begins so. InputError otherwise.
const FileSchema& file_schema(const std::string& name) {
  std::vector<const FileSchema*> same_stem;
  std::vector<std::string> names, matches;
  for (const FileSchema& f : file_schemas()) {
    if (f.name == name) return f;
    names.push_back(f.name);
    if (stem(f.name) != name) continue;
    same_stem.push_back(&f);
    matches.push_back(f.name);
  }
  if (same_stem.size() == 1) return *same_stem.front();
  if (!same_stem.empty())
    throw InputError(fmt::format("'{}' has several schemas", name), "write one of " + join(matches));
  throw InputError("there is no schema '" + name + "'",
                   closest(name, names) ? suggest(name, names) : "stagecraft schema lists those that there are");
}

std::string list_text(bool read) {
  std::size_t width = 0;
  for (const FileSchema& f : file_schemas()) width = std::max(width, f.name.size());
  std::string text;
  for (const FileSchema& f : file_schemas())
    if (f.read == read) text += fmt::format("  {:<{}}  {}\n", f.name, width, f.about);
  return text;
}

int execute_schema(const Arguments& a) {
  if (a.has("KIND"))
    print(file_schema(a.text("KIND")).text());
  else
    print("YAML files that stagecraft reads (JSON Schema):\n" + list_text(true) +
          "\nFiles and output that it writes (JSON Schema; for CSV and SQLite the columns as JSON Table Schema):\n" +
          list_text(false));
  return 0;
}

}  // namespace

extern const Command schema{
    .name = "schema",
    .summary = "Print the JSON Schema of a file, or the columns of a CSV file with units and meaning",
    .group = "Files",
    .example = "stagecraft schema scenario > scenario.schema.json\n  stagecraft schema spans.csv",
    .arguments = {{"KIND", Argument::Kind::Text,
                   "scenario, results.json, spans.csv, ...; without one, the list of all"}},
    .run = execute_schema,
};

}  // namespace stagecraft::commands
