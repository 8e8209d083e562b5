// Reads a sweep file: its scenario, axes, conditions and seeds.

#include "sim/sweep/sweep.hpp"

#include <algorithm>
#include <filesystem>
#include <set>
#include <utility>

#include <fmt/core.h>

#include "backends/backend.hpp"
#include "sim/config/library.hpp"
#include "sim/config/override.hpp"
#include "sim/config/walk.hpp"
#include "sim/core/file.hpp"
#include "sim/core/text.hpp"
#include "sim/experiment/references.hpp"
#include "sim/experiment/scenario.hpp"
#include "sim/sweep/value_names.hpp"

namespace stagecraft {
namespace {

using config::Member;
using config::Problems;
using config::Value;

bool is_note(const Member& member) { return member.key.starts_with("x-"); }

SweepStep step_of(const Value& map) {
  SweepStep step;
  for (const Member& m : map.members)
    if (!is_note(m)) step.push_back(m);
  return step;
}

/// A scenario inside the sweep would have no name, and reports of a sweep print commands that run its scenario.
void check_base_is_named(const Value& root, Problems& problems) {
  const Value* base = root.is_map() ? root.find("base") : nullptr;
  if (base && (base->is_map() || base->is_list()))
    problems.add(base->where, "base", "a sweep names its scenario and cannot contain it",
                 "write the scenario into a file of its own, and here base: FILE.yaml", "wrong-type");
}

/// The file of `base:`, which is a path relative to the sweep file or a name from scenarios/.
std::string base_of(const Value& base, Problems& problems) {
  const std::string file = find_file(FileKind::Scenario, base.text, base.where.file);
  if (!file.empty()) return file;
  std::vector<std::string> names;
  for (const NamedFile& f : named_files(FileKind::Scenario)) {
    if (f.name == base.text) return f.path;
    names.push_back(f.name);
  }
  const auto near = closest(base.text, names);
  problems.add(base.where, "base", fmt::format("there is no scenario '{}'", base.text),
               near ? fmt::format("did you mean '{}'?", *near)
                    : "write a name that stagecraft list scenarios shows, or a file with its .yaml",
               "reference");
  return {};
}

void read_axes(const Value& written, Sweep& sweep, Problems& problems) {
  for (const Member& axis : written.members) {
    if (is_note(axis)) continue;
    SweepAxis steps;
    for (Value& value : axis_values(axis.value, config::under("axes", axis.key), problems)) {
      take_label(value);
      steps.push_back({{axis.key, axis.where, std::move(value)}});
    }
    if (!steps.empty()) sweep.axes.push_back(std::move(steps));
  }
}

/// The paths of a step are set in order too, so a later one must not replace an earlier one.
void check_step(const SweepStep& step, const std::string& path, Problems& problems) {
  for (std::size_t i = 0; i < step.size(); ++i)
    for (std::size_t before = 0; before < i; ++before) {
      const Member &m = step[i], &b = step[before];
      if (b.key.starts_with(m.key + ".") || b.key.starts_with(m.key + "["))
        problems.add(m.where, config::under(path, m.key),
                     fmt::format("this replaces what '{}' on line {} sets", b.key, b.where.line), "write it first",
                     "duplicate-path");
    }
}

void read_together(const Value& written, Sweep& sweep, Problems& problems) {
  SweepAxis axis;
  for (std::size_t i = 0; i < written.items.size(); ++i) {
    axis.push_back(step_of(written.items[i]));
    check_step(axis.back(), fmt::format("together[{}]", i), problems);
    const auto has = [](const SweepStep& step, const std::string& path) {
      return std::any_of(step.begin(), step.end(), [&](const Member& m) { return m.key == path; });
    };
    for (const Member& m : axis.front())
      if (!has(axis.back(), m.key))
        problems.add(written.items[i].where, fmt::format("together[{}]", i),
                     fmt::format("'{}' of the first step is missing here", m.key), "every step sets the same paths",
                     "missing-field");
    for (const Member& m : axis.back())
      if (!has(axis.front(), m.key))
        problems.add(m.where, fmt::format("together[{}].{}", i, m.key), "the first step does not set this",
                     "every step sets the same paths", "unknown-field");
  }
  if (!axis.empty()) sweep.axes.push_back(std::move(axis));
}

/// Whether the sweep sets this path or one that contains it.
bool sets(const Sweep& sweep, const std::string& path) {
  const std::vector<std::string> paths = paths_of(sweep);
  return std::any_of(paths.begin(), paths.end(), [&](const std::string& p) {
    return p == path || path.starts_with(p + ".") || path.starts_with(p + "[");
  });
}

/// The paths of the scenario's seeds: the seed of its training, or of the run if it does not train, and of its cluster.
std::vector<std::string> seed_paths(const Sweep& sweep) {
  std::vector<std::string> paths{sweep.base.has("training") ? "training.seed" : "run.seed"};
  const Value* cluster = sweep.base.find("cluster");
  if (!cluster) return paths;
  const auto add = [&](const std::string& path) {
    if (!sets(sweep, path)) paths.push_back(path);
  };
  if (cluster->has("jitter") || (sweep.also.empty() && sets(sweep, "cluster.jitter.most"))) add("cluster.jitter.seed");
  if (const Value* changes = cluster->find("changes"))
    for (std::size_t i = 0; i < changes->items.size(); ++i)
      if (changes->items[i].has("share")) add(fmt::format("cluster.changes[{}].seed", i));
  return paths;
}

/// An axis that sets all seeds to 1, 2, ...
SweepAxis seeds_of(const Value& repeat, const Sweep& sweep) {
  SweepAxis axis;
  const int count = config::as_int(repeat);
  const std::vector<std::string> paths = seed_paths(sweep);
  for (int seed = 1; count > 1 && seed <= count; ++seed) {
    axis.emplace_back();
    for (const std::string& path : paths)
      axis.back().push_back({path, repeat.where, Value::scalar(std::to_string(seed), repeat.where, "computed")});
  }
  return axis;
}

/// Axes are set in order, so a later axis must not set or replace a path of an earlier one.
void check_paths(const Sweep& sweep, Problems& problems) {
  std::vector<const Member*> before;
  for (const SweepAxis& axis : sweep.axes) {
    for (const Member& m : axis.front()) {
      for (const Member* b : before) {
        if (m.key == b->key)
          problems.add(m.where, m.key, "this is varied twice", fmt::format("it is already on line {}", b->where.line),
                       "duplicate-path");
        else if (b->key.starts_with(m.key + ".") || b->key.starts_with(m.key + "["))
          problems.add(m.where, m.key, fmt::format("this replaces what '{}' on line {} sets", b->key, b->where.line),
                       "write it first", "duplicate-path");
      }
    }
    for (const Member& m : axis.front()) before.push_back(&m);
  }
}

/// `exclude` may only name paths that vary.
void check_exclude(const Sweep& sweep, Problems& problems) {
  std::vector<std::string> paths;
  for (const SweepAxis& axis : sweep.axes)
    for (const Member& m : axis.front()) paths.push_back(m.key);
  for (std::size_t i = 0; i < sweep.exclude.size(); ++i)
    for (const Member& m : sweep.exclude[i])
      if (std::find(paths.begin(), paths.end(), m.key) == paths.end())
        problems.add(m.where, fmt::format("exclude[{}].{}", i, m.key), "no axis has this path", suggest(m.key, paths),
                     "unknown-path");
}

/// Counted without paths_of(), which compares all of them.
void check_path_count(const Sweep& sweep, const Where& where, Problems& problems) {
  std::set<std::string_view> paths;
  for (const SweepAxis& axis : sweep.axes)
    for (const Member& m : axis.front()) paths.insert(m.key);
  for (const SweepStep& step : sweep.also)
    for (const Member& m : step) paths.insert(m.key);
  if (paths.size() > kMostPaths)
    problems.add(where, "",
                 fmt::format("the sweep varies {} paths, and at most {} are allowed", paths.size(), kMostPaths),
                 "vary fewer, or write several sweeps", "range");
  problems.throw_if_any();
}

/// A value for every point may be inside a path that the sweep sets, but must not replace one.
void read_sets(const std::vector<std::string>& sets, Sweep& sweep, Problems& problems) {
  const std::vector<std::string> varied = paths_of(sweep);
  for (const std::string& set : sets) {
    auto read = config::read_assignment("--set", set, problems);
    if (!read) continue;
    for (const std::string& path : varied)
      if (path == read->key || path.starts_with(read->key + ".") || path.starts_with(read->key + "["))
        problems.add(read->where, read->key,
                     path == read->key ? "the sweep varies this itself"
                                       : fmt::format("this replaces '{}', which the sweep varies", path),
                     path == read->key ? fmt::format("--only {}=VALUE takes the points that have one value of it", path)
                                       : "set what is in it, one by one",
                     "duplicate-path");
    std::erase_if(sweep.sets, [&](const Member& m) { return m.key == read->key; });  // The last one wins, as in `run`.
    sweep.sets.push_back(std::move(*read));
  }
}

}  // namespace

const config::MapSpec& sweep_fields() {
  using namespace config;
  static const MapSpec spec{
      .title = "A sweep: a scenario and the values that vary.",
      .fields = {
          choice("schema", {"sweep/1"}).doc("Kind and version of the file."),
          text("title").fallback("\"\"").doc("Title for people."),
          text("base").doc("The scenario: a name from scenarios/, or a file."),
          table("axes", any("values"))
              .optional()
              .doc(
                  "Every combination, first axis slowest: a path of the scenario, as --set takes it, to a list of "
                  "values, to one value, or to {from: 4, to: 64, times: 2} or {from: 1, to: 9, by: 2}. Where the field "
                  "is a list, a bare value is a list of one. {label: 4:1, value: {...}} gives a value a name for "
                  "tables and "
                  "pictures. A value that begins with = is computed from other "
                  "settings: = 32 / plan.stages, with + - * / %, comparisons, and, or, not, and names of settings. "
                  "With "
                  "another run.schedule than the scenario's, plan.stages follows, so that the pipeline has the same "
                  "devices, unless the sweep sets it."),
          list("together", table("step", any("value")))
              .optional()
              .doc("One more axis: each item sets several paths at once, the same in all items."),
          list("exclude", table("values", any("value")))
              .optional()
              .doc("Omits the points of the axes that have all values of one of these."),
          any("where").optional().doc(
              "A condition, or a list of conditions that all hold: plan.stages * plan.replicas <= 16 and "
              "run.schedule != 'gpipe'. The sweep omits the points of the axes that do not meet it."),
          list("also", table("values", any("value")))
              .optional()
              .doc("Points in addition to the axes; each is the scenario with these values."),
          integer("repeat", 1, 1000)
              .fallback("1")
              .doc("Every point with seeds 1, 2, ...: training.seed, or run.seed of scenarios that learn nothing; and "
                   "the seeds of the cluster's jitter and of the shares of its changes."),
          integer("limit", 1, 1e7).fallback("10000").doc("Refuse to start with more points."),
          choice("backend", [] { return names_of(backends::catalog()); })
              .optional()
              .doc("Where the points run, unless --backend says otherwise. Default: simgrid, or fluid if a point has "
                   "links with `queue: fifo`."),
      }};
  return spec;
}

Sweep load_sweep(const std::string& given, const std::vector<std::string>& sets) {
  Sweep sweep;
  sweep.file = sweep_file(given);
  sweep.name = std::filesystem::path(sweep.file).stem().string();
  Problems problems;
  sweep.text = read_file(sweep.file);  // Read only once, because it may be a pipe.
  Value root = config::parse_yaml(sweep.text, sweep.file, problems);
  problems.throw_if_any();
  check_schema_line(root, "sweep", problems);
  check_base_is_named(root, problems);
  problems.throw_if_any();
  root = config::check(root, sweep_fields(), "", problems);
  problems.throw_if_any();

  sweep.title = root.at("title").text;
  if (const Value* backend = root.find("backend")) sweep.backend = backend->text;
  sweep.limit = config::as_int(root.at("limit"));
  sweep.limit_place = root.at("limit").where;
  sweep.base_file = base_of(root.at("base"), problems);
  if (!sweep.base_file.empty()) sweep.base = scenario_tree(sweep.base_file, problems);
  if (const Value* axes = root.find("axes")) read_axes(*axes, sweep, problems);
  if (const Value* together = root.find("together")) read_together(*together, sweep, problems);
  const bool varied = !sweep.axes.empty();
  if (const Value* exclude = root.find("exclude"))
    for (const Value& item : exclude->items) {
      sweep.exclude.push_back(step_of(item));
      check_step(sweep.exclude.back(), fmt::format("exclude[{}]", sweep.exclude.size() - 1), problems);
      if (sweep.exclude.back().empty())
        problems.add(item.where, "exclude", "this would leave out every point", "write {path: value}", "empty");
    }
  if (const Value* where = root.find("where")) sweep.where = read_conditions(*where, problems);
  if (const Value* also = root.find("also"))
    for (const Value& item : also->items) {
      sweep.also.push_back(step_of(item));
      check_step(sweep.also.back(), fmt::format("also[{}]", sweep.also.size() - 1), problems);
    }
  check_path_count(sweep, root.where, problems);
  check_exclude(sweep, problems);
  check_expressions(sweep, problems);
  sweep.seeds = seeds_of(root.at("repeat"), sweep);
  if (!sweep.seeds.empty()) sweep.axes.push_back(sweep.seeds);
  if (problems.empty() && !varied && sweep.also.empty() && sweep.seeds.empty())
    problems.add(root.where, "", "nothing is varied", "write axes: {run.micro_batches: [4, 8]}", "missing-field");
  check_paths(sweep, problems);
  read_sets(sets, sweep, problems);
  problems.throw_if_any();
  return sweep;
}

std::vector<std::string> paths_of(const Sweep& sweep) {
  std::vector<std::string> paths;
  const auto add = [&](const SweepStep& step) {
    for (const Member& m : step)
      if (std::find(paths.begin(), paths.end(), m.key) == paths.end()) paths.push_back(m.key);
  };
  for (const SweepAxis& axis : sweep.axes) add(axis.front());
  for (const SweepStep& step : sweep.also) add(step);
  add(sweep.sets);
  return paths;
}

}  // namespace stagecraft
