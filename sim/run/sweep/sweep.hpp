#pragma once

#include <string>
#include <vector>

#include "sim/config/fields.hpp"

namespace stagecraft {

/// What is set together at one place of an axis: paths of the scenario and their values, with where they were written.
using Step = std::vector<config::Member>;
/// One direction of a sweep.
using Axis = std::vector<Step>;

/// A sweep file: a scenario, and what of it is varied.
struct Sweep {
  std::string file, name;  ///< `name`: the file's, without folder and ending.
  std::string title, text;
  std::string base_file;
  config::Value base;         ///< The scenario with what its names stand for, unchecked.
  std::vector<Axis> axes;     ///< As written, then `together`, then the seeds of `repeat`; the first is the slowest.
  std::vector<Step> exclude;  ///< A point is left out that has all values of one of them.
  std::vector<Step> also;     ///< Whole points beside those of the axes.
  Step sets;                  ///< Of every point, behind what it sets itself; of the command line.
  Axis seeds;                 ///< Of `repeat`, the last axis; empty when that is 1.
  int limit = 0;              ///< Most points.
  std::string backend;        ///< Name in the catalogue.
  Where limit_place;
};

/// The field table of a sweep file.
const config::MapSpec& sweep_fields();

/// Reads a sweep (a file, or a name as sweep_file() takes it) and its scenario. `sets`: "path=value" for every point.
/// Throws InputError with all problems.
Sweep load_sweep(const std::string& given, const std::vector<std::string>& sets = {});

/// Every path that the points of a sweep set, in written order.
std::vector<std::string> paths_of(const Sweep&);

/// The values of an axis: a list as it stands, or {from, to, by} or {from, to, times} counted out. Empty behind a
/// problem.
std::vector<config::Value> axis_values(const config::Value& written, const std::string& path, config::Problems&);

/// On one line, as it could stand in a file: "1f1b", "[1, 2]", "{name: interleaved, chunks: 2}".
std::string one_line(const config::Value&);

}  // namespace stagecraft
