#pragma once

#include <optional>
#include <string>
#include <vector>

#include "backends/backend.hpp"
#include "sim/cluster/cluster.hpp"
#include "sim/config/fields.hpp"
#include "sim/cost/profile.hpp"
#include "sim/model/model_graph.hpp"
#include "sim/program/lower.hpp"
#include "sim/training/training.hpp"

namespace stagecraft {

/// A scenario with every default and reference filled in.
struct Scenario {
  config::Value tree;  ///< Itself a valid scenario.
  std::string title;
  std::string schedule;  ///< Name in the catalogue.
  std::string weights;   ///< Name in the catalogue.
  WeightsRule weights_rule;
  int micro_batches = 1;
  LoweringOptions lowering;
  std::uint64_t seed = 1;
  Training training;  ///< Of scenarios without one: a task that fits every model.
  bool emulated = false;
  GpuOptions gpu;
  std::optional<Profile> profile;  ///< Measured costs.

  std::string hash() const;  ///< SHA-256 of the canonical text.
};

/// The field tables of the three kinds of file.
const config::MapSpec& scenario_fields();
const config::MapSpec& model_fields();
const config::MapSpec& cluster_fields();

/// Reads a scenario (a file, or a name as scenario_file() takes it), follows names, applies `override` and then each
/// "path=value" of `sets`, and checks everything. Throws InputError with all problems of all files.
Scenario load_scenario(const std::string& given, const std::vector<std::string>& sets);

/// The same in steps, for many scenarios that share a file: the file with what its names stand for; the tree with
/// overrides, every field checked and every default filled in; and what its parts mean together, or InputError.
config::Value scenario_tree(const std::string& file, config::Problems&);
config::Value checked_scenario(config::Value tree, const std::vector<config::Member>& overrides, config::Problems&);
Scenario settled_scenario(config::Value checked);

/// A model or cluster file on its own, checked.
config::Value load_model_file(const std::string& file);
config::Value load_cluster_file(const std::string& file);

ModelGraph build_model(const config::Value& checked);
Cluster build_cluster(const config::Value& checked);

}  // namespace stagecraft
