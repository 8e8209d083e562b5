#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/result/metrics.hpp"
#include "sim/sweep/table.hpp"

namespace stagecraft {

/// A path in which the points of a sweep differ: its values in the order of the sweep, and the number of each point's
/// value; -1: as in the base.
struct VariedPath {
  std::string path;
  std::vector<std::string> values;
  std::vector<int> value_of;  ///< [row of the table]
  bool is_number = true;      ///< Every value begins with a digit.
  /// It is varied to run on other devices: a part of the cluster, or how many devices a plan uses, unless each schedule
  /// has its own value.
  bool sets_devices = false;
};

/// The paths that vary, in the order in which points have them. One that follows another is none of them, such as
/// `plan.stages` with the stages that a schedule needs: some points lack it, and the value of the other path says which
/// value the rest has. The page of a sweep has the same rule.
std::vector<VariedPath> varied_paths(const SweepTable&);

/// The number of devices on which most of these rows ran, of equally many the largest; nothing where all ran on equally
/// many.
std::optional<double> usual_devices(const std::vector<const SweepRow*>&);

/// Which rows of a sweep can be compared in a metric.
struct ComparableRows {
  /// [row] For a row that is left out, because it ran on another number of devices: the number of those that stay.
  std::vector<std::optional<double>> usual_instead;
  std::string left_out, why;  ///< "2 of 8 points" and "they ran on 2 devices, and the others on 4"; or empty.
  bool is_one = false;

  /// "2 of 8 points are left out: they ran on 2 devices, and the others on 4"; empty where none is.
  std::string sentence(const std::string& are = "left out") const;
  bool has(std::size_t row) const { return !usual_instead[row]; }
};

/// The rule of everything that takes the best, the mean or the worst of several rows: rows on another number of devices
/// than the rest are left out, except for metrics that mean the same on any number of them. `shown`: the paths whose
/// values are told apart. Where one of them is varied to run on other devices (VariedPath::sets_devices), as in a
/// picture over `cluster`, the rows of each of its values are compared among themselves. The page of a sweep has the
/// same rule (tools/report/answer.js).
ComparableRows comparable_rows(const SweepTable&, const Metric&, const std::vector<const VariedPath*>& shown);

/// comparable_rows() with the values of every path told apart: rows that ran on another number of devices than the rest
/// with the same cluster.
ComparableRows rows_on_usual_devices(const SweepTable&);

}  // namespace stagecraft
