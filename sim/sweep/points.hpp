#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/core/diagnostic.hpp"
#include "sim/experiment/own_orders.hpp"
#include "sim/sweep/sweep.hpp"

namespace stagecraft {

/// One scenario of a sweep.
struct Point {
  int number = 0;     ///< Starts at 1, in the order of the sweep.
  std::string label;  ///< "schedule=1f1b,micro_batches=16"
  SweepStep settings;
  SweepStep orders = {};  ///< Orders of the user, in place of the names that `settings` has for them.
};

/// "micro_batches" of "run.micro_batches".
std::string last_field(const std::string& path);
/// Whether a path is this part of a scenario or inside of it.
bool is_within(const std::string& path, const std::string& part);

/// Every point of a sweep: the combinations of its axes without the excluded ones, then `also`. InputError if there are
/// more than the limit. Adds a warning for each `exclude` that excludes nothing.
std::vector<Point> points_of(const Sweep&, std::vector<Diagnostic>& warnings);

/// Compares numbers by value and everything else by text.
bool same_value(const config::Value&, const config::Value&);

/// The points that meet "path=value" conditions: for each path they have one of its values. InputError for a path that
/// the sweep does not vary, and if no point is left.
std::vector<Point> only(const std::vector<Point>&, const std::vector<std::string>& conditions);

/// "2/4": the second of four.
struct Shard {
  int index = 1, count = 1;
};
Shard parse_shard(const std::string& text);

/// Whether each point belongs to a shard. Scenarios are assigned to shards round-robin in the order of their hashes, so
/// shards differ in size by at most one scenario.
std::vector<bool> in_shard(const std::vector<std::string>& hashes, Shard);

/// The number of stages with which the schedule of a point runs on the devices of the sweep's scenario: the same
/// pipeline ranks with as many stages on each as the schedule needs, as `compare` has them. Nothing where the point has
/// the scenario's schedule or its own number of stages, or where the plan has no number of stages to change.
std::optional<int> following_stages(const Sweep&, const SweepStep& settings);

/// Gives each point whose `run.schedule` is the name of one of these schedules the order of that schedule on its plan,
/// as `Point::orders`. Throws what is wrong with an order. A point without a plan says so when it runs.
void add_own_orders(const Sweep&, const std::vector<OwnSchedule>&, std::vector<Point>&);

}  // namespace stagecraft
