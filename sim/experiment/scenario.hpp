#pragma once

#include <string>
#include <vector>

#include "sim/cluster/cluster.hpp"
#include "sim/config/fields.hpp"
#include "sim/model/model_graph.hpp"
#include "sim/schedule/builder.hpp"
#include "sim/weights/policy.hpp"

namespace stagecraft {

/// A scenario as text: every reference followed, every default filled in, every field checked. It is itself a valid
/// scenario. read_experiment() turns it into values.
struct Scenario {
  config::Value tree;

  std::string hash() const;  ///< SHA-256 of the canonical text.
};

/// The field tables of the three kinds of file.
const config::MapSpec& scenario_fields();
const config::MapSpec& model_fields();
const config::MapSpec& cluster_fields();

/// Reads a scenario (a file, or a name as scenario_file() takes it), follows names, applies `override` and then each
/// "path=value" of `sets`, and checks everything. Throws InputError with all problems of all files.
Scenario load_scenario(const std::string& given, const std::vector<std::string>& sets);

// load_scenario() in three steps, for many scenarios that share a file.

/// Parses the file and follows its references.
config::Value scenario_tree(const std::string& file, config::Problems&);
/// Applies overrides, checks every field and fills in defaults. Overrides after `schema` are for the newest form.
config::Value checked_scenario(config::Value tree, const std::vector<config::Member>& overrides, config::Problems&);
/// Checks what several fields mean together, or throws InputError.
Scenario settled_scenario(config::Value checked);

/// One field of a scenario ("weights", "run.schedule") checked on its own, with its defaults. InputError.
config::Value checked_field(const std::string& path, config::Value value);

/// A model or cluster file on its own, checked.
config::Value load_model_file(const std::string& file);
config::Value load_cluster_file(const std::string& file);

ModelGraph build_model(const config::Value& checked);
Cluster build_cluster(const config::Value& checked);

/// Adds a problem where the policy needs what the order of work does not do. `options`: the checked `run.schedule` map.
void check_weights(const WeightsDef&, const WeightsRule&, const ScheduleDef&, const config::Value& options,
                   const Where&, config::Problems&);

/// Adds a problem where so few iterations show no period. Without a drain the first iteration fills the pipeline, the
/// last one empties it, and only the iterations between them show what one more costs.
void check_iterations(int iterations, const ScheduleDef&, const config::Value& options, const Where&,
                      config::Problems&);

}  // namespace stagecraft
