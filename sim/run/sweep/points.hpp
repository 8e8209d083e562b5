#pragma once

#include <string>
#include <utility>
#include <vector>

#include "sim/core/diagnostic.hpp"
#include "sim/run/sweep/sweep.hpp"

namespace stagecraft {

/// One scenario of a sweep.
struct Point {
  int number = 0;     ///< From 1, in the order of the sweep.
  std::string label;  ///< "schedule=1f1b,micro_batches=16"
  Step settings;
};

/// Every point of a sweep: the combinations of its axes without those left out, then `also`. InputError when there are
/// more than its limit. `warnings` gets what looks like a slip: an `exclude` that leaves nothing out.
std::vector<Point> points_of(const Sweep&, std::vector<Diagnostic>& warnings);

/// Whether two values say the same: numbers by what they are worth, all else by their text.
bool same_value(const config::Value&, const config::Value&);

/// Those of the points that have a value of every path in "path=value" conditions. InputError for a path that the sweep
/// does not vary, and when none is left.
std::vector<Point> only(const std::vector<Point>&, const std::vector<std::string>& conditions);

/// "2/4": the second of four.
struct Shard {
  int index = 1, count = 1;
};
Shard parse_shard(const std::string& text);

/// Whether each point belongs to a shard, by its scenario's hash: scenarios are dealt out in the order of their hashes,
/// so that shards differ by one scenario at most, whatever the axes are, and none is in two.
std::vector<bool> in_shard(const std::vector<std::string>& hashes, Shard);

}  // namespace stagecraft
