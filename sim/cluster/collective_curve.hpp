#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/cluster/collective_cost.hpp"
#include "sim/config/fields.hpp"

namespace stagecraft {

/// Measured times of one collective on one system, by the bytes of the whole array.
struct CollectiveCurve {
  struct Point {
    Bytes bytes;
    Seconds time;
  };

  std::string system, source;
  std::string device = {};  ///< Preset of the devices; empty: any.
  CollectiveKind kind = CollectiveKind::AllReduce;
  int ranks = 2, nodes = 1;
  std::vector<Point> points;  ///< Sorted by bytes, all different.

  /// On a monotone cubic through the points, in logarithms of bytes and time. Above the largest size the rate of
  /// the largest point holds. Nothing below the smallest size: use the formula there.
  std::optional<Seconds> time_of(Bytes) const;
};

/// The first curve of this kind for a group of this shape whose members fill their nodes equally, or null.
const CollectiveCurve* find_curve(std::span<const CollectiveCurve>, CollectiveKind, const GroupShape&);

/// Measured where a curve has the size; nothing where none has.
std::optional<Seconds> curve_time(std::span<const CollectiveCurve>, CollectiveKind, const GroupShape&, Bytes);

/// The formula for one group: alpha + S/rate + root sqrt(S).
struct CurveFit {
  Seconds alpha;
  Bandwidth rate;
  double root = 0;  ///< Seconds for each square root of a byte.

  Seconds time_of(Bytes) const;
};

/// The constants with the least squares of relative errors that are not negative. Needs three points; InputError
/// otherwise.
CurveFit fit(const CollectiveCurve&);

/// The field table of a file of topologies/collectives.
const config::MapSpec& collective_curve_fields();
std::vector<CollectiveCurve> read_collective_curves(const config::Value& checked);
std::vector<CollectiveCurve> load_collective_curves(const std::string& file);
/// Serializes to YAML; read_collective_curves() is its inverse.
std::string to_yaml(std::span<const CollectiveCurve>, const std::string& title, const std::string& source);

/// The curve in the text that a program of nccl-tests prints: times out of place, ranks and nodes from its list of
/// devices. `file` names the text in errors. The kind comes from the line that names the test, or else from `kind`;
/// InputError when neither says it, or when the text has no table of times.
CollectiveCurve read_nccl_tests(std::string_view text, const std::string& file,
                                std::optional<CollectiveKind> kind = std::nullopt);

}  // namespace stagecraft
