// The kind simgrid-xml of `export` and `import`: a cluster as a platform file of SimGrid and back, with notes on what
// the other side lacks.

#include "tools/stagecraft/foreign_files.hpp"

#include <algorithm>
#include <filesystem>

#include <fmt/core.h>

#include "sim/config/library.hpp"
#include "sim/config/override.hpp"
#include "sim/core/file.hpp"
#include "sim/core/text.hpp"
#include "sim/experiment/scenario.hpp"
#include "sim/experiment/simgrid_xml.hpp"
#include "tools/stagecraft/command.hpp"
#include "topologies/simgrid_xml.hpp"

namespace stagecraft {
namespace {

[[noreturn]] void say_unknown(const std::string& given) {
  std::vector<std::string> names;
  for (const FileKind kind : {FileKind::Cluster, FileKind::Scenario})
    for (std::string& name : file_names(kind)) names.push_back(std::move(name));
  const auto near = closest(given, names);
  throw InputError(fmt::format("there is no cluster and no scenario '{}'", given),
                   near ? fmt::format("did you mean '{}'?", *near)
                        : std::string("stagecraft list topologies shows those that have a name"));
}

/// Builds the cluster of a cluster file, of a scenario file, or of the name of either.
Cluster cluster_in(const std::string& given, const std::vector<std::string>& sets) {
  std::error_code error;
  if (!std::filesystem::exists(given, error)) {
    for (const FileKind kind : {FileKind::Cluster, FileKind::Scenario})
      for (const NamedFile& named : named_files(kind))
        if (named.name == given) return cluster_in(named.path, sets);
    say_unknown(given);
  }
  const std::string& file = given;
  config::Problems problems;
  const config::Value root = config::parse_yaml_file(file, problems);
  problems.throw_if_any();
  const config::Value* line = root.is_map() ? root.find("schema") : nullptr;
  if (line && line->text.starts_with("cluster/")) {
    if (!sets.empty()) throw InputError("--set is for scenarios", "write a cluster with base and override");
    return build_cluster(load_cluster_file(file));
  }
  return build_cluster(load_scenario(file, sets).tree.at("cluster"));
}

}  // namespace

int export_simgrid(const Arguments& a) {
  if (!a.has("FILE"))
    throw InputError("simgrid-xml is made of a cluster, or of that of a scenario",
                     "stagecraft export simgrid-xml lab-4 --out platform.xml");
  const Cluster cluster = cluster_in(a.text("FILE"), a.list("set"));
  const std::string text = simgrid_xml(cluster);
  if (!cluster.changes.empty() || cluster.jitter.max_fraction > 0)
    print_error("note: changes over time are not part of the platform\n");
  if (const std::vector<std::string> lost = types_lost(cluster); !lost.empty())
    print_error("note: of these device types the platform has only speed and memory: {}\n", join(lost));
  if (!a.has("out")) return print(text), 0;
  write_output_of(a, "out", text, CommentStyle::Markup);
  return print("wrote " + a.text("out") + "\n"), 0;
}

std::string import_simgrid(const Arguments& a) {
  config::Problems problems;
  std::vector<config::Member> fields;
  for (const std::string& set : a.list("set"))
    if (auto field = config::read_assignment("--set", set, problems)) fields.push_back(std::move(*field));
  problems.throw_if_any();
  const bool said = std::any_of(fields.begin(), fields.end(),
                                [](const config::Member& f) { return f.key == "memory_bandwidth" || f.key == "type"; });
  const config::Value cluster = platform_cluster(a.text("FILE"), std::move(fields));
  if (const config::Value* types = cluster.find("types"); types && !types->members.empty() && !said)
    print_error(
        "note: a platform has no memory bandwidth, which counts as unlimited; "
        "--set memory_bandwidth=\"1 TB/s\" or type=NAME says it\n");
  return config::to_yaml(cluster, false);
}

}  // namespace stagecraft
