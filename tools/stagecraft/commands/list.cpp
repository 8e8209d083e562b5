#include <algorithm>

#include <fmt/format.h>

#include "backends/backend.hpp"
#include "sim/cluster/device_presets.hpp"
#include "sim/cluster/generator.hpp"
#include "sim/model/builder.hpp"
#include "sim/plan/planner.hpp"
#include "sim/run/library.hpp"
#include "sim/schedule/builder.hpp"
#include "sim/training/optimizer.hpp"
#include "sim/training/task.hpp"
#include "sim/weights/policy.hpp"
#include "tools/stagecraft/command.hpp"

namespace stagecraft::commands {
namespace {

template <class Def>
void print_catalog(Catalog<Def> catalog) {
  std::size_t widest = 14;
  for (const Def* d : catalog) widest = std::max(widest, d->name.size());
  for (const Def* d : catalog)
    print(fmt::format("{:<{}} {}{}\n", d->name, widest, d->summary,
                      d->source.empty() ? "" : fmt::format("  [{}]", d->source)));
}

void print_files(FileKind kind) {
  for (const NamedFile& f : named_files(kind)) {
    config::Problems ignored;
    const config::Value root = config::parse_yaml_file(f.path, ignored);
    const config::Value* title = root.is_map() ? root.find("title") : nullptr;
    print(fmt::format("{:<22} {}  [{}]\n", f.name, title ? title->text : "(untitled)", f.path));
  }
}

void print_devices() {
  std::size_t widest = 0;
  for (const DevicePreset& d : device_presets()) widest = std::max(widest, d.type.name.size());
  for (const DevicePreset& d : device_presets())
    print(fmt::format("{:<{}}  {:>7} at {:>10}  {:>12}, {:>2.0f} % of it reached  [{}]\n", d.type.name, widest,
                      to_text(d.type.memory), to_text(d.type.memory_bandwidth), to_text(d.type.peak),
                      100 * d.type.efficiency, d.source));
}

int execute(const Arguments& a) {
  const std::string kind = a.text("KIND");
  const std::vector<std::string> kinds = {"schedules",  "planners",   "weights",  "backends",   "builders",
                                          "devices",    "generators", "tasks",    "optimizers", "models",
                                          "topologies", "scenarios",  "profiles", "sweeps",     "published"};
  if (kind == "schedules")
    print_catalog(schedules::all());
  else if (kind == "planners")
    print_catalog(planners::all());
  else if (kind == "weights")
    print_catalog(weights::all());
  else if (kind == "backends")
    print_catalog(backends::all());
  else if (kind == "builders")
    print_catalog(model_builders::all());
  else if (kind == "generators")
    print_catalog(topology_generators::all());
  else if (kind == "devices")
    print_devices();
  else if (kind == "tasks")
    print_catalog(tasks::all());
  else if (kind == "optimizers")
    print_catalog(optimizers());
  else if (kind == "profiles")
    print_files(FileKind::Profile);
  else if (kind == "models")
    print_files(FileKind::Model);
  else if (kind == "topologies")
    print_files(FileKind::Cluster);
  else if (kind == "scenarios")
    print_files(FileKind::Scenario);
  else if (kind == "sweeps")
    print_files(FileKind::Sweep);
  else if (kind == "published")
    print_files(FileKind::Published);
  else
    throw InputError(kind.empty() ? "list what?" : "there is nothing called '" + kind + "' to list",
                     suggest(kind, kinds).empty() ? "write one of " + join(kinds) : suggest(kind, kinds));
  return 0;
}

}  // namespace

extern const Command list{
    .name = "list",
    .summary =
        "List schedules, planners, weights, tasks, optimizers, backends, models, topologies, devices, scenarios, "
        "sweeps, profiles or what is published",
    .group = "Look before you run",
    .example = "stagecraft list schedules",
    .arguments = {{"KIND",
                   Argument::Kind::Text,
                   "schedules, planners, weights, backends, builders, devices, generators, tasks, optimizers, models, "
                   "topologies, scenarios, profiles, sweeps or published",
                   {},
                   true}},
    .run = execute,
};

}  // namespace stagecraft::commands
