// Resolves and hashes the points of a sweep, refuses a sweep with a value that is wrong in every point that has it, and
// runs one point after another in a worker of the farm.

#include "sim/sweep/result.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <map>
#include <new>
#include <set>
#include <tuple>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "backends/backend.hpp"
#include "sim/core/sha256.hpp"
#include "sim/experiment/fold_replicas.hpp"
#include "sim/plan/plan_words.hpp"
#include "sim/result/metrics.hpp"

namespace stagecraft {
namespace {

void fail(PointResult& result, const char* status, const std::string& code, const std::string& message) {
  result.status = status;
  result.code = code;
  result.message = message;
}

std::string message_of(const Diagnostic& problem) {
  return problem.path.empty() ? full_message(problem) : problem.path + ": " + full_message(problem);
}

/// Identifies a value of the file or a problem by its text and place.
using Key = std::tuple<std::string, int, int, std::string>;

Key key_of(const config::Member& m) { return {m.key, m.value.where.line, m.value.where.column, one_line(m.value)}; }
Key key_of(const Diagnostic& d) { return {d.where.file, d.where.line, d.where.column, d.path + ": " + d.message}; }

/// Counts the points that have a value, and those that have a problem with it.
class ProblemCensus {
 public:
  void count(const Point& point, const std::vector<Diagnostic>& problems) {
    ++points_;
    std::set<Key> seen;
    for (const Diagnostic& d : problems) {
      if (!seen.insert(key_of(d)).second) continue;
      auto& one = found_.try_emplace(key_of(d), ProblemCount{d, 0, {}}).first->second;
      ++one.points;
      for (const config::Member& m : point.settings) ++one.with[key_of(m)];
    }
    for (const config::Member& m : point.settings) ++values_[key_of(m)];
  }

  std::vector<Diagnostic> of_the_file() const {
    std::vector<Diagnostic> list;
    for (const auto& [key, entry] : found_) {
      bool always = entry.points == points_;
      for (const auto& [value, count] : entry.with) always = always || count == values_.at(value);
      if (always) list.push_back(entry.problem);
    }
    return list;
  }

 private:
  struct ProblemCount {
    Diagnostic problem;
    int points = 0;
    std::map<Key, int> with;
  };
  int points_ = 0;
  std::map<Key, int> values_;
  std::map<Key, ProblemCount> found_;
};

}  // namespace

bool may_pass_another_time(std::string_view status) {
  return status == "crash" || status == "timeout" || status == "backend";
}

ResolvedPoint resolve_point(const Sweep& sweep, const Point& point) {
  ResolvedPoint resolved;
  config::Problems problems;
  try {
    SweepStep settings = point.settings;
    settings.insert(settings.end(), point.orders.begin(), point.orders.end());
    config::Value checked = checked_scenario(sweep.base, settings, problems);
    resolved.problems = problems.list();
    resolved.ill_formed = !problems.empty();
    if (problems.empty()) resolved.scenario = settled_scenario(std::move(checked));
  } catch (const InputError& e) {
    resolved.problems = e.problems();
  }
  resolved.text = resolved.scenario ? config::to_yaml(resolved.scenario->tree, false)
                                    : fmt::format("{}# {}\n", config::to_yaml(sweep.base, false), point.label);
  resolved.hash = sha256(resolved.text);
  return resolved;
}

void PointRunner::try_to_run(const Scenario& scenario, PointResult& result) try {
  previous_ = read_experiment(scenario, previous_ ? &*previous_ : nullptr);
  const PlannedExperiment planned = plan_experiment(*previous_);
  result.plan = plan_words(planned.plan);
  const bool is_simulated = get_from(backends::catalog(), "backend", backend_).clock == Clock::Simulated;
  const CompiledExperiment compiled = is_simulated ? compile_folded(planned, nullptr) : compile(planned);
  const Outcome outcome = stagecraft::run(compiled, backend_);
  result.machine = outcome.timeline.provenance.machine;
  const RunView view = view_of(compiled, outcome);
  for (const Metric& m : metrics()) result.figures.push_back(m.value_of(view));
} catch (const InputError& e) {
  fail(result, "input", e.problems().front().code, message_of(e.problems().front()));
} catch (const Infeasible& e) {
  fail(result, "infeasible", e.code(), message_of(e.problem()));
} catch (const BackendError& e) {
  fail(result, "backend", "", e.what());
} catch (const std::bad_alloc&) {
  fail(result, "backend", "memory", "this machine has not enough memory for it");
} catch (const std::exception& e) {
  fail(result, "bug", "", e.what());
}

PointResult PointRunner::run(const Point& point) {
  const auto begin = std::chrono::steady_clock::now();
  ResolvedPoint resolved = resolve_point(*sweep_, point);
  PointResult result;
  result.hash = std::move(resolved.hash);
  result.scenario = std::move(resolved.text);
  if (resolved.scenario)
    try_to_run(*resolved.scenario, result);
  else
    fail(result, "input", resolved.problems.front().code, message_of(resolved.problems.front()));
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return result;
}

std::vector<std::string> hashes_of(const Sweep& sweep, const std::vector<Point>& points) {
  std::vector<std::string> hashes;
  ProblemCensus census;
  for (const Point& point : points) {
    ResolvedPoint resolved = resolve_point(sweep, point);
    census.count(point, resolved.ill_formed ? resolved.problems : std::vector<Diagnostic>{});
    hashes.push_back(std::move(resolved.hash));
  }
  if (auto wrong = census.of_the_file(); !wrong.empty()) throw InputError(std::move(wrong));
  return hashes;
}

// Messages between the processes of a sweep are CBOR.
std::string to_bytes(const PointResult& r) {
  std::string bytes;
  nlohmann::json::to_cbor({r.hash, r.scenario, r.status, r.code, r.message, r.seconds, r.machine, r.plan, r.figures},
                          bytes);
  return bytes;
}

PointResult result_from_bytes(const std::string& bytes) {
  const nlohmann::json json = nlohmann::json::from_cbor(bytes);
  PointResult r;
  r.hash = json[0], r.scenario = json[1], r.status = json[2], r.code = json[3], r.message = json[4];
  r.seconds = json[5], r.machine = json[6], r.plan = json[7];
  for (const nlohmann::json& f : json[8]) r.figures.push_back(f.get<double>());
  return r;
}

}  // namespace stagecraft
