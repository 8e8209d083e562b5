#include <algorithm>

#include <fmt/core.h>

#include "sim/config/library.hpp"
#include "sim/core/activity.hpp"
#include "sim/core/file.hpp"
#include "sim/published/event_calibration.hpp"
#include "sim/published/prediction_errors.hpp"
#include "sim/published/table.hpp"
#include "tools/stagecraft/command.hpp"
#include "tools/stagecraft/interrupt.hpp"
#include "tools/stagecraft/picture_options.hpp"
#include "tools/stagecraft/table_options.hpp"

namespace stagecraft::commands {
namespace {

constexpr int kMissed = 3;

std::vector<Published> chosen(const std::vector<std::string>& names) {
  std::vector<Published> publications;
  for (const std::string& name : names) publications.push_back(load_published(name));
  if (names.empty())
    for (const NamedFile& file : named_files(FileKind::Published)) publications.push_back(load_published(file.path));
  return publications;
}

/// The measured runs of scenarios/predictions next to the closed form from shapes.
int execute_predictions(const Arguments& a) {
  if (a.list("NAME").size() > 1)
    throw InputError("predictions stands alone", "name the publications in another command");
  const std::string format = a.text("format");
  check_format(format, {"text", "csv"});
  check_picture_options(a);
  if (a.has("html")) check_output_of(a, "html");
  const std::vector<PredictionSet> sets = load_all_predictions();
  if (a.flag("refit")) {
    print(to_text(fit_with_events(sets, accelerators_of(sets))));
    return 0;
  }
  if (a.flag("simulate")) {
    if (format != "text" || draws(a) || a.has("html"))
      throw InputError("--simulate prints a table alone", "leave out --format, --html, --svg and --pdf");
    print(simulated_text(sets, layout_of(a)));
    return 0;
  }
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
  if (std::find(names.begin(), names.end(), "predictions") != names.end()) return execute_predictions(a);
  if (a.flag("simulate"))
    throw InputError("--simulate is for predictions", "stagecraft reproduce predictions --simulate");
  if (a.flag("refit")) throw InputError("--refit is for predictions", "stagecraft reproduce predictions --refit");
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
  if (format == "csv" || format == "markdown") print(table_in_format(figures_of(reproductions), format, layout));
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
       "Folders of scenarios/papers, or files; without one, all of them. predictions: errors of times from shapes"},
      {"--simulate", Argument::Kind::Flag, "predictions: simulate every run too, which takes minutes"},
      {"--refit", Argument::Kind::Flag,
       "predictions: fit one share for each device type and format to simulated runs, which takes many minutes"},
      {"--html", Argument::Kind::Text, "Write a page with plots to this file too"},
      force_argument(),
      quiet_argument(),
      {"--format", Argument::Kind::Text, "text, csv, json or markdown", "text"}};
  for (Argument& a : picture_arguments("predicted over measured times", "predictions: "))
    arguments.push_back(std::move(a));
  return with_table_arguments(std::move(arguments));
}

}  // namespace

extern const Command reproduce{
    .name = "reproduce",
    .summary = "Reproduce published results and compare our figures with them",
    .group = "Run",
    .example = "stagecraft reproduce zero-bubble --html published.html",
    .arguments = reproduce_arguments(),
    .run = execute_reproduce,
};

}  // namespace stagecraft::commands
