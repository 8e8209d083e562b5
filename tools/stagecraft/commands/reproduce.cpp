// `stagecraft reproduce`: simulates what publications have in tables and compares their figures; with `predictions`,
// compares measured runs of publications with simulations, or fits shares and intervals to them.

#include <algorithm>
#include <filesystem>

#include <fmt/core.h>

#include "sim/config/library.hpp"
#include "sim/config/value.hpp"
#include "sim/core/activity.hpp"
#include "sim/core/file.hpp"
#include "sim/published/error_classes.hpp"
#include "sim/published/fit.hpp"
#include "sim/published/prediction_errors.hpp"
#include "sim/published/table.hpp"
#include "tools/stagecraft/command.hpp"
#include "tools/stagecraft/interrupt.hpp"
#include "tools/stagecraft/picture_options.hpp"
#include "tools/stagecraft/table_options.hpp"

namespace stagecraft::commands {
namespace {

constexpr int kMissed = 3;
constexpr const char* kPredictions = "predictions";

std::vector<Published> chosen(const std::vector<std::string>& names) {
  std::vector<Published> publications;
  for (const std::string& name : names) publications.push_back(load_published(name));
  if (names.empty())
    for (const NamedFile& file : named_files(FileKind::Published)) publications.push_back(load_published(file.path));
  return publications;
}

/// Predicted files of scenarios/predictions, or the named ones.
std::vector<PredictionSet> predicted_sets(const std::vector<std::string>& names) {
  std::vector<PredictionSet> sets;
  for (const std::string& name : names) sets.push_back(load_predictions(name));
  if (names.empty()) sets = load_all_predictions();
  PredictionCache cache = PredictionCache::of_user();
  predict(sets, cache);
  return sets;
}

/// Whether a name is that of a file of measured runs, `schema: predictions/1`.
bool has_measured_runs(const std::string& name) {
  if (!std::filesystem::is_regular_file(name)) return false;
  config::Problems problems;
  const config::Value root = config::parse_yaml_file(name, problems);
  const config::Value* schema = root.is_map() ? root.find("schema") : nullptr;
  return schema && schema->text.starts_with("predictions/");
}

/// The names after `predictions`, or files of measured runs alone.
std::vector<std::string> names_of_runs(std::vector<std::string> names) {
  if (names.front() == kPredictions) {
    names.erase(names.begin());
    return names;
  }
  for (const std::string& name : names) {
    if (name == kPredictions)
      throw InputError("predictions comes before the names of its files", "stagecraft reproduce predictions sc21");
    if (!has_measured_runs(name))
      throw InputError(fmt::format("'{}' has no measured runs, and other names here have", name),
                       "reproduce files of measured runs apart from publications");
  }
  return names;
}

/// Measured runs next to simulations.
int execute_predictions(const Arguments& a) {
  const std::vector<std::string> names = names_of_runs(a.list("NAME"));
  const std::string format = a.text("format");
  check_format(format, {"text", "csv"});
  check_picture_options(a);
  if (a.has("html")) check_output_of(a, "html");
  if (a.flag("simulate")) print_error("note: predictions are simulations, so --simulate changes nothing\n");
  const std::vector<PredictionSet> sets = predicted_sets(names);
  if (a.flag("refit")) return print(to_text(fit_published(sets))), 0;
  if (a.flag("intervals")) return print(intervals_csv(sets, true)), 0;
  for (const PredictionSet& set : sets)
    for (const auto& [why, count] : set.not_predicted)
      if (format == "csv") print_error("note: {}: not simulated, {}: {}\n", set.name, count, why);
  print(format == "csv" ? prediction_csv(sets) : prediction_text(sets, layout_of(a)));
  flush();
  write_pictures(a, [&](const PictureSize& size) { return prediction_picture(sets, size); });
  if (a.has("html")) {
    write_output_of(a, "html", prediction_html(sets), CommentStyle::Markup);
    print_error("wrote {}\n", a.text("html"));
  }
  return 0;
}

int execute_reproduce(const Arguments& a) {
  const std::vector<std::string> names = a.list("NAME");
  const auto is_of_runs = [](const std::string& name) { return name == kPredictions || has_measured_runs(name); };
  if (std::any_of(names.begin(), names.end(), is_of_runs)) return execute_predictions(a);
  for (const char* option : {"simulate", "refit", "intervals"})
    if (a.flag(option))
      throw InputError(fmt::format("--{} is for predictions", option),
                       fmt::format("stagecraft reproduce predictions --{}", option));
  for (const char* option : {"svg", "pdf", "size"})
    if (a.has(option))
      throw InputError(fmt::format("--{} is for predictions", option), "stagecraft reproduce predictions --svg FILE");
  const std::string format = a.text("format");
  check_table_format(a, {"text", "csv", "json", "markdown"});
  const TextLayout layout = layout_of(a);
  if (a.has("columns") && format == "text")
    throw InputError("--columns chooses columns of --format csv and markdown; text has the columns of the publications",
                     "add --format markdown");
  if (a.has("html")) check_output_of(a, "html");
  std::vector<Reproduction> reproductions;
  int unexpected = 0;
  std::string changes;
  std::vector<Published> asked = chosen(names);
  std::int64_t figures = 0;
  for (const Published& one : asked) figures += figure_count(one);
  Activity activity("reproducing published results");
  activity.count(0, "figures", figures);
  for (Published& one : asked) {
    activity.note(one.title);
    reproductions.push_back(reproduce(std::move(one), [&] { activity.count_one(); }));
    unexpected += reproductions.back().unexpected();
    changes += unexpected_text(reproductions.back());
    if (format != "text") continue;
    print_text((reproductions.size() > 1 ? "\n" : "") + to_text(reproductions.back(), layout), layout);
    flush();
    on_interrupt_say(fmt::format("the {} of {} printed above are done", reproductions.size(), asked.size()));
  }
  if (format == "text" && reproductions.size() > 1) print(wrap_lines("\n" + summary_text(reproductions), layout.width));
  if (format == "csv" || format == "markdown" || format == "latex")
    print(table_in_format(figures_of(reproductions), format, layout));
  if (format == "json") print(reproduced_json(reproductions) + "\n");
  flush();
  if (a.has("html")) {
    write_output_of(a, "html", reproduced_html(reproductions), CommentStyle::Markup);
    print_error("wrote {}\n", a.text("html"));
  }
  if (unexpected == 0) return 0;
  print_error("{}{} not come out as {} file says under missed\n", changes,
              unexpected == 1 ? "1 published figure does" : fmt::format("{} published figures do", unexpected),
              unexpected == 1 ? "its" : "their");
  return kMissed;
}

std::vector<Argument> reproduce_arguments() {
  std::vector<Argument> arguments{
      {"NAME", Argument::Kind::List,
       "Folders of scenarios/papers, or files; without one, all of them. predictions: errors of times from shapes, of "
       "all files of scenarios/predictions or of those named after it. A file of your own measured runs (schema: "
       "predictions/1) is predicted, too"},
      {"--simulate", Argument::Kind::Flag, "predictions: no effect; every run is simulated"},
      {"--refit", Argument::Kind::Flag,
       "predictions: fit one share for each device type and format to the runs, which takes minutes"},
      {"--intervals", Argument::Kind::Flag,
       "predictions: print the intervals of all classes of runs, as scenarios/predictions/intervals.csv has them, "
       "which "
       "takes minutes"},
      {"--html", Argument::Kind::Text, "Write a page with plots to this file too"},
      force_argument(),
      quiet_argument(),
      {"--format", Argument::Kind::Text, "text, csv, json, markdown or latex", "text"}};
  for (Argument& a : picture_arguments("predicted over measured times", "predictions: "))
    arguments.push_back(std::move(a));
  return with_table_arguments(std::move(arguments));
}

}  // namespace

extern const Command reproduce{
    .name = "reproduce",
    .summary = "Reproduce published results and compare our figures with them",
    .group = "Measure",
    .example = "stagecraft reproduce zero-bubble --html published.html",
    .arguments = reproduce_arguments(),
    .run = execute_reproduce,
};

}  // namespace stagecraft::commands
