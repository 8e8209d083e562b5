// Makes the points of a sweep from its axes, and selects some by `--only` and `--shard`.

#include "sim/sweep/points.hpp"

#include <algorithm>
#include <map>

#include <fmt/core.h>

#include "sim/config/override.hpp"
#include "sim/core/text.hpp"
#include "sim/sweep/sweep.hpp"

namespace stagecraft {
namespace {

using config::Member;
using config::Value;

constexpr double kMostCombinations = 1e7;
constexpr const char* kStages = "plan.stages";

/// The last field of each path, or the whole path if another one ends in the same field.
std::map<std::string, std::string> short_names(const Sweep& sweep) {
  std::map<std::string, int> uses;
  std::vector<std::string> paths = paths_of(sweep);
  if (std::find(paths.begin(), paths.end(), kStages) == paths.end()) paths.emplace_back(kStages);
  for (const std::string& path : paths) ++uses[last_field(path)];
  std::map<std::string, std::string> names;
  for (const std::string& path : paths) names[path] = uses[last_field(path)] == 1 ? last_field(path) : path;
  return names;
}

const Member* find(const SweepStep& step, const std::string& path) {
  const auto at = std::find_if(step.begin(), step.end(), [&](const Member& m) { return m.key == path; });
  return at == step.end() ? nullptr : &*at;
}

bool has_all(const SweepStep& step, const SweepStep& wanted) {
  return std::all_of(wanted.begin(), wanted.end(), [&](const Member& w) {
    const Member* m = find(step, w.key);
    return m && same_value(m->value, w.value);
  });
}

/// The settings of combination `number`; the last axis varies fastest.
SweepStep combination(const std::vector<SweepAxis>& axes, std::size_t number) {
  std::vector<const SweepStep*> chosen(axes.size());
  for (std::size_t a = axes.size(); a-- > 0; number /= axes[a].size()) chosen[a] = &axes[a][number % axes[a].size()];
  SweepStep step;
  for (const SweepStep* s : chosen) step.insert(step.end(), s->begin(), s->end());
  return step;
}

double combinations(const Sweep& sweep) {
  const bool only_also = sweep.axes.size() == (sweep.seeds.empty() ? 0U : 1U) && !sweep.also.empty();
  if (only_also) return 0;
  double count = 1;
  for (const SweepAxis& axis : sweep.axes) count *= static_cast<double>(axis.size());
  return count;
}

[[noreturn]] void refuse(const Sweep& sweep, double points, const char* help) {
  throw InputError(
      {{sweep.limit_place, "limit",
        fmt::format("the sweep has {:.0f} points, and {} are the most", points, sweep.limit), help, "limit"}});
}

SweepStep evaluated(const SweepStep& step, const Sweep& sweep) {
  config::Problems problems;
  auto values = evaluate_step(step, sweep, problems);
  problems.throw_if_any();
  return std::move(*values);
}

bool meets(const SweepStep& step, const Sweep& sweep) {
  config::Problems problems;
  const auto holds = meets_conditions(step, sweep, problems);
  problems.throw_if_any();
  return *holds;
}

/// A later value of a path takes the place of an earlier one.
void set_stages(SweepStep& settings, int stages) {
  std::erase_if(settings, [](const Member& m) { return m.key == kStages; });
  settings.push_back({kStages, {}, Value::scalar(std::to_string(stages), {}, "computed")});
}

std::string canonical(const Value& value) {
  std::string ignored;
  if (value.is_scalar() && !value.quoted)
    if (const auto number = config::parse_number(value.text, ignored)) return shortest(*number);
  std::string text = one_line(value);
  if (value.is_scalar()) std::erase(text, ' ');
  return text;
}

}  // namespace

std::string last_field(const std::string& path) { return path.substr(path.rfind('.') + 1); }

bool is_within(const std::string& path, const std::string& part) {
  return path == part || path.starts_with(part + ".") || path.starts_with(part + "[");
}

bool same_value(const Value& a, const Value& b) { return a.kind == b.kind && canonical(a) == canonical(b); }

std::vector<Point> points_of(const Sweep& sweep, std::vector<Diagnostic>& warnings) {
  const double count = combinations(sweep);
  if (count > kMostCombinations) refuse(sweep, count, "shorten an axis");
  std::vector<bool> used(sweep.exclude.size(), false);
  std::vector<Point> points;
  const auto add = [&](SweepStep step) {
    points.push_back({static_cast<int>(points.size()) + 1, {}, std::move(step)});
  };
  for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
    SweepStep step = evaluated(combination(sweep.axes, i), sweep);
    bool out = false;
    for (std::size_t e = 0; e < sweep.exclude.size(); ++e)
      if (has_all(step, sweep.exclude[e])) out = used[e] = true;
    if (!out && meets(step, sweep)) add(std::move(step));
  }
  for (const SweepStep& written : sweep.also) {
    const SweepStep also = evaluated(written, sweep);
    const bool own_seed = !sweep.seeds.empty() && std::any_of(sweep.seeds.front().begin(), sweep.seeds.front().end(),
                                                              [&](const Member& m) { return find(also, m.key); });
    if (sweep.seeds.empty() || own_seed) add(also);
    if (own_seed) continue;  // It sets its seed itself.
    for (const SweepStep& seed : sweep.seeds) {
      add(also);
      points.back().settings.insert(points.back().settings.end(), seed.begin(), seed.end());
    }
  }
  if (std::ssize(points) > sweep.limit)
    refuse(sweep, static_cast<double>(points.size()), "shorten an axis, or write a higher limit");
  if (points.empty())
    throw InputError(
        {{{sweep.file, 1, 1}, sweep.where.empty() ? "exclude" : "where", "no point is left", {}, "empty"}});
  for (std::size_t e = 0; e < used.size(); ++e)
    if (!used[e] && !sweep.exclude[e].empty())
      warnings.push_back({sweep.exclude[e].front().where,
                          fmt::format("exclude[{}]", e),
                          "no point has these values, so nothing is excluded",
                          {},
                          "exclude"});

  const auto names = short_names(sweep);
  for (Point& p : points) {
    const std::optional<int> stages = following_stages(sweep, p.settings);
    p.settings.insert(p.settings.end(), sweep.sets.begin(), sweep.sets.end());
    if (stages) set_stages(p.settings, *stages);
    for (const Member& m : p.settings)
      p.label += fmt::format("{}{}={}", p.label.empty() ? "" : ",", names.at(m.key), one_line(m.value));
    if (p.label.empty()) p.label = "base";
  }
  return points;
}

std::vector<Point> only(const std::vector<Point>& points, const std::vector<std::string>& conditions) {
  config::Problems problems;
  std::map<std::string, std::vector<Value>> wanted;
  std::vector<std::string> paths;
  for (const Point& p : points)
    for (const Member& m : p.settings)
      if (std::find(paths.begin(), paths.end(), m.key) == paths.end()) paths.push_back(m.key);
  for (const std::string& condition : conditions) {
    auto read = config::read_assignment("--only", condition, problems);
    if (!read) continue;
    if (std::find(paths.begin(), paths.end(), read->key) == paths.end())
      problems.add(read->where, read->key, "the sweep does not vary this", suggest(read->key, paths), "unknown-path");
    wanted[read->key].push_back(std::move(read->value));
  }
  problems.throw_if_any();
  std::vector<Point> chosen;
  for (const Point& p : points) {
    const bool fits = std::all_of(wanted.begin(), wanted.end(), [&](const auto& path_and_values) {
      const Member* m = find(p.settings, path_and_values.first);
      return m && std::any_of(path_and_values.second.begin(), path_and_values.second.end(),
                              [&](const Value& v) { return same_value(m->value, v); });
    });
    if (fits) chosen.push_back(p);
  }
  if (chosen.empty()) throw InputError("--only: no point is left", "stagecraft sweep FILE --list shows all of them");
  return chosen;
}

Shard parse_shard(const std::string& text) {
  std::string_view rest = text;
  const auto index = read_number(rest);
  const bool slash = rest.starts_with('/');
  if (slash) rest.remove_prefix(1);
  const auto count = read_number(rest);
  if (!index || !slash || !count || !rest.empty() || *index < 1 || *index > *count)
    throw InputError(fmt::format("--shard: '{}' is not a part of a whole", text), "write 2/4 for the second of four");
  return {*index, *count};
}

std::vector<bool> in_shard(const std::vector<std::string>& hashes, Shard shard) {
  std::vector<std::string> order = hashes;
  std::sort(order.begin(), order.end());
  order.erase(std::unique(order.begin(), order.end()), order.end());
  std::vector<bool> mine;
  for (const std::string& hash : hashes) {
    const auto rank = std::lower_bound(order.begin(), order.end(), hash) - order.begin();
    mine.push_back(rank % shard.count == shard.index - 1);
  }
  return mine;
}

}  // namespace stagecraft
