#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/config/expression.hpp"
#include "sim/config/fields.hpp"

// A sweep file as values: its scenario, axes and conditions, before points are made of them.

namespace stagecraft {

/// Paths of the scenario and their values, which are set together, with their places in the file.
using SweepStep = std::vector<config::Member>;
/// The values of one dimension of a sweep.
using SweepAxis = std::vector<SweepStep>;

/// A condition of `where:` and its place in the file.
struct SweepCondition {
  config::Expression expression;
  Where place;
};

/// A sweep file: a scenario and the values that vary.
struct Sweep {
  std::string file, name;  ///< `name` is the file's name without folder and extension.
  std::string title, text;
  std::string base_file;
  config::Value base;                 ///< The scenario with references resolved, not validated.
  std::vector<SweepAxis> axes;        ///< Axes as written, `together`, seeds of `repeat`; the first varies slowest.
  std::vector<SweepStep> exclude;     ///< The sweep omits a point that has all values of one of these.
  std::vector<SweepCondition> where;  ///< The sweep omits a point of the axes that does not meet all of these.
  std::vector<SweepStep> also;        ///< Points in addition to the points of the axes.
  SweepStep sets;                     ///< Values from the command line, set in every point after its own.
  SweepAxis seeds;                    ///< The last axis, from `repeat`; empty if that is 1.
  int limit = 0;                      ///< The largest allowed number of points.
  std::string backend;                ///< A name in the catalog; empty: not given.
  Where limit_place;
};

/// The field table of a sweep file.
const config::MapSpec& sweep_fields();

/// Reads a sweep (a file or a name, as in sweep_file()) and its scenario. `sets` has "path=value" for every point.
/// Throws InputError with all problems.
Sweep load_sweep(const std::string& given, const std::vector<std::string>& sets = {});

/// The most paths that a sweep may vary, so that comparing all of them stays quick.
constexpr std::size_t kMostPaths = 1000;

/// Every path that the points of a sweep set, in the order of the file.
std::vector<std::string> paths_of(const Sweep&);

/// The values of an axis, which is a list, one value, or a range {from, to, by} or {from, to, times}. Empty if there is
/// a problem.
std::vector<config::Value> axis_values(const config::Value& written, const std::string& path, config::Problems&);

/// The value as YAML on one line: "1f1b", "[1, 2]", "{name: interleaved, chunks: 2}".
std::string one_line(const config::Value&);

/// Whether a value of a sweep is computed: `= 32 / plan.stages`, without quotes.
bool is_expression(const config::Value&);

/// Adds a problem for every value of the sweep that begins like an expression and is none.
void check_expressions(const Sweep&, config::Problems&);

/// Reads the conditions of `where:`, a text or a list of texts.
std::vector<SweepCondition> read_conditions(const config::Value& written, config::Problems&);

/// The step with numbers and texts in place of its expressions. A name in them is another setting of the step, a value
/// of --set, or a value that the scenario has in its file. Nothing after a problem.
std::optional<SweepStep> evaluate_step(const SweepStep&, const Sweep&, config::Problems&);

/// Whether a step without expressions meets every condition of `where:`. Nothing after a problem.
std::optional<bool> meets_conditions(const SweepStep&, const Sweep&, config::Problems&);

}  // namespace stagecraft
