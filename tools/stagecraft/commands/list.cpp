#include <algorithm>

#include <fmt/format.h>

#include "backends/backend.hpp"
#include "sim/cluster/device_presets.hpp"
#include "sim/cluster/generator.hpp"
#include "sim/cluster/phases.hpp"
#include "sim/cost/software.hpp"
#include "sim/experiment/library.hpp"
#include "sim/model/builder.hpp"
#include "sim/plan/planner.hpp"
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
    print(fmt::format("{:<{}}  {:>10} at {:>10}  {:>12}, {:>2.0f} % of it reached  [{}]\n", d.type.name, widest,
                      to_text(d.type.memory), to_text(d.type.memory_bandwidth), to_text(d.type.peak),
                      100 * d.type.efficiency, d.source));
}

void print_software() {
  std::size_t widest = 0;
  for (const SoftwareStack& stack : software_stacks()) widest = std::max(widest, stack.name.size());
  for (const SoftwareStack& stack : software_stacks())
    print(fmt::format("{:<{}}  {}  [{}]\n", stack.name, widest, stack.summary, stack.source));
}

struct Kind {
  std::string name;
  void (*print)();
};

const Kind kKinds[] = {{"schedules", [] { print_catalog(schedules::catalog()); }},
                       {"planners", [] { print_catalog(planners::catalog()); }},
                       {"weights", [] { print_catalog(weights::catalog()); }},
                       {"backends", [] { print_catalog(backends::catalog()); }},
                       {"builders", [] { print_catalog(model_builders::catalog()); }},
                       {"devices", print_devices},
                       {"software", print_software},
                       {"generators", [] { print_catalog(topology_generators::catalog()); }},
                       {"collectives", [] { print_catalog(collective_algorithms::catalog()); }},
                       {"tasks", [] { print_catalog(tasks::catalog()); }},
                       {"optimizers", [] { print_catalog(optimizers()); }},
                       {"models", [] { print_files(FileKind::Model); }},
                       {"topologies", [] { print_files(FileKind::Cluster); }},
                       {"scenarios", [] { print_files(FileKind::Scenario); }},
                       {"profiles", [] { print_files(FileKind::Profile); }},
                       {"sweeps", [] { print_files(FileKind::Sweep); }},
                       {"published", [] { print_files(FileKind::Published); }}};

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

int execute_list(const Arguments& a) {
  const std::string kind = a.text("KIND");
  for (const Kind& k : kKinds)
    if (k.name == kind) {
      k.print();
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
        "collectives, "
        "scenarios, sweeps, profiles or what is published",
    .group = "Inspect",
    .example = "stagecraft list schedules",
    .arguments = {{"KIND", Argument::Kind::Text, kinds_text(), {}, true}},
    .run = execute_list,
};

}  // namespace stagecraft::commands
