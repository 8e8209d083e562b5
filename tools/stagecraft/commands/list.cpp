// `stagecraft list`: prints a catalog of the code (schedules, planners, backends, ...) or the library files of a kind
// (models, topologies, ...), with the source of each entry.

#include <algorithm>

#include <fmt/core.h>

#include "backends/backend.hpp"
#include "sim/cluster/device_presets.hpp"
#include "sim/cluster/generator.hpp"
#include "sim/cluster/phases.hpp"
#include "sim/config/library.hpp"
#include "sim/cost/software.hpp"
#include "sim/model/builder.hpp"
#include "sim/planners/shared/planner.hpp"
#include "sim/schedule/builder.hpp"
#include "sim/training/optimizer.hpp"
#include "sim/training/task.hpp"
#include "sim/weights/policy.hpp"
#include "tools/stagecraft/command.hpp"
#include "tools/stagecraft/table_options.hpp"

namespace stagecraft::commands {
namespace {

struct Entry {
  std::string name, summary, source;
};
using Entries = std::vector<Entry>;

template <class Def>
Entries entries_of(Catalog<Def> catalog) {
  Entries entries;
  for (const Def* d : catalog)
    entries.push_back({std::string(d->name), std::string(d->summary), std::string(d->source)});
  return entries;
}

Entries files_of(FileKind kind) {
  Entries entries;
  for (const NamedFile& f : named_files(kind)) {
    config::Problems ignored;
    const config::Value root = config::parse_yaml_file(f.path, ignored);
    const config::Value* title = root.is_map() ? root.find("title") : nullptr;
    entries.push_back({f.name, title ? title->text : "(untitled)", f.path});
  }
  return entries;
}

Entries devices() {
  Entries entries;
  for (const std::string& name : device_preset_names()) {
    const Accelerator device = *find_device_preset(name);
    const Bytes reserve = device.type.memory_reserve;
    const std::string reserved = reserve.value > 0 ? fmt::format("; {} reserved", to_text(reserve)) : "";
    entries.push_back({name,
                       fmt::format("{:>10} at {:>10}  {:>12}, {:>2.0f} % of it reached{}", to_text(device.type.memory),
                                   to_text(device.type.memory_bandwidth), to_text(device.type.peak),
                                   100 * device.type.efficiency, reserved),
                       device.source});
  }
  return entries;
}

Entries software() {
  Entries entries;
  for (const SoftwareStack& stack : software_stacks())
    entries.push_back({std::string(stack.name), std::string(stack.summary), std::string(stack.source)});
  return entries;
}

/// Text has the source in brackets after the summary; files have it apart.
Table entry_table(const Entries& entries) {
  using Row = Entry;
  return make_table<Row>(
      {{{.key = word_column("name", "Name, as scenarios and options use it."),
         .heading = "name",
         .width = 14,
         .align = TextAlign::Left,
         .widens = true,
         .gap = 0},
        &Row::name},
       {{.heading = "what it is", .align = TextAlign::Left, .gap = 1, .wraps = true},
        [](const Row& e) { return e.summary + (e.source.empty() ? "" : fmt::format("  [{}]", e.source)); }},
       {{.key = word_column("summary", "What it is.")}, &Row::summary},
       {{.key = word_column("source", "Paper, code or file that it comes from.")}, &Row::source}},
      entries);
}

struct Kind {
  std::string name;
  Entries (*entries)();
};

const Kind kKinds[] = {{"schedules", [] { return entries_of(schedules::catalog()); }},
                       {"planners", [] { return entries_of(planners::catalog()); }},
                       {"weights", [] { return entries_of(weights::catalog()); }},
                       {"backends", [] { return entries_of(backends::catalog()); }},
                       {"builders", [] { return entries_of(model_builders::catalog()); }},
                       {"devices", devices},
                       {"software", software},
                       {"generators", [] { return entries_of(topology_generators::catalog()); }},
                       {"collectives", [] { return entries_of(collective_algorithms::catalog()); }},
                       {"curves", [] { return files_of(FileKind::Curves); }},
                       {"tasks", [] { return entries_of(tasks::catalog()); }},
                       {"optimizers", [] { return entries_of(optimizers()); }},
                       {"models", [] { return files_of(FileKind::Model); }},
                       {"topologies", [] { return files_of(FileKind::Cluster); }},
                       {"scenarios", [] { return files_of(FileKind::Scenario); }},
                       {"profiles", [] { return files_of(FileKind::Profile); }},
                       {"sweeps", [] { return files_of(FileKind::Sweep); }},
                       {"published", [] { return files_of(FileKind::Published); }}};

std::vector<std::string> kinds() {
  std::vector<std::string> names;
  for (const Kind& k : kKinds) names.push_back(k.name);
  return names;
}

/// "a, b or c"
std::string kinds_text() {
  std::vector<std::string> names = kinds();
  const std::string last = names.back();
  names.pop_back();
  return join(names) + " or " + last;
}

void print_entries(const Table& table, const std::string& format, const TextLayout& layout) {
  if (format == "json")
    print(Json(to_json(table)).dump(2) + "\n");
  else if (format != "text")
    print(table_in_format(table, format, layout));
  else if (layout.columns.empty())
    print_text(rows_text(table, layout), layout);
  else
    print_text(to_text(table, layout), layout);
}

int execute_list(const Arguments& a) {
  const std::string kind = a.text("KIND"), format = a.text("format");
  check_table_format(a, {"text", "csv", "json", "markdown"});
  const TextLayout layout = layout_of(a);
  for (const Kind& k : kKinds)
    if (k.name == kind) {
      print_entries(entry_table(k.entries()), format, layout);
      return 0;
    }
  throw InputError(kind.empty() ? "list what?" : "there is nothing called '" + kind + "' to list",
                   suggest(kind, kinds()).empty() ? "write one of " + join(kinds()) : suggest(kind, kinds()));
}

}  // namespace

extern const Command list{
    .name = "list",
    .summary =
        "List schedules, planners, weights, tasks, optimizers, backends, models, topologies, devices, software, "
        "collectives, curves, "
        "scenarios, sweeps, profiles or what is published",
    .group = "Rest",
    .example = "stagecraft list schedules",
    .arguments =
        with_table_arguments({{"KIND", Argument::Kind::Text, kinds_text()},
                              {"--format", Argument::Kind::Text, "text, csv, json, markdown or latex", "text"}}),
    .run = execute_list,
};

}  // namespace stagecraft::commands
