#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/cluster/cluster.hpp"
#include "sim/core/diagnostic.hpp"
#include "sim/cost/software.hpp"

namespace stagecraft {

/// What the configuration of a training framework says, in the words of a scenario. An empty text and a zero stand for
/// what it does not say.
struct TrainingSetup {
  std::vector<std::pair<std::string, std::string>> model;  ///< Fields of the builder transformer.
  std::string model_name;                                  ///< A model of the library instead.
  int sequence = 0;                                        ///< Tokens of a sample of that model.
  int ranks = 1, chunks = 1;                               ///< Pipeline ranks, and stages on each.
  int chunk_group = 0;  ///< Micro-batches through a chunk before the next; 0: one for each rank.
  int tensor = 1, context = 1, expert = 1, expert_tensor = 0;
  int replicas = 0;
  int recompute_layers = 0;  ///< Only the first layers of each stage run again; 0: all.
  int shard_copies = 1;      ///< Groups of devices that each have a whole copy of what `shard` divides.
  bool sequence_parallel = false, shared_overlap = false;
  std::string context_type, dispatcher, order, shard, recompute, offload, layout, schedule, gradient_buckets, precision,
      software;
  std::string release;                            ///< Release of the stack; empty: the newest.
  std::vector<std::pair<Overlap, bool>> overlap;  ///< Switches of the stack `software` that differ from the usual ones.
  std::optional<bool> fused_loss;                 ///< Nothing: as the stack has it.
  int gathered_bytes = 0;                         ///< Bytes of a weight that replicas gather; 0: as the stack has it.
  int gradient_bytes = 0;                         ///< Bytes of a gradient that replicas sum; 0: as the stack has it.
  int micro_batch_size = 0;                       ///< Samples of one replica.
  int global_batch = 0;                           ///< Samples.

  std::vector<std::string> matched;    ///< What the scenario has from the file, as "--num-layers 24 -> layers: 24".
  std::vector<std::string> unmodeled;  ///< Options that change time and memory, and are not modeled.
  std::vector<std::string> unmodeled_time;    ///< Options that change the time alone.
  std::vector<std::string> unmodeled_memory;  ///< Options that change the memory alone.
  std::vector<std::string> without_use;       ///< Options that change neither.
  std::vector<std::string> unknown;           ///< Facts that the reader does not know.
  std::vector<std::string> assumed;           ///< Sentences about values that the file does not give.
  std::vector<Diagnostic> of_other_releases;  ///< Options that this release of the framework does not have.
};

/// What a configuration does not say, from the options of the command line.
struct SetupOptions {
  std::string model = {};    ///< A model of the library, or a file.
  std::string cluster = {};  ///< Likewise; required.
  int devices = 0;           ///< All devices; 0: the file says it, or one replica is assumed.
  int vocabulary = 0;        ///< Where the file names a tokenizer instead.
  /// File that the scenario is written to: paths of the model and the cluster begin at its folder. Empty: at the
  /// working folder.
  std::string out = {};
  std::string config = {};   ///< Function of a Python file of torchtitan; empty: its only one.
  std::string release = {};  ///< Release of Megatron-LM that runs the file; empty: the newest.
};

/// The cluster of the options; nothing where they name none that is there.
std::optional<Cluster> cluster_named_by(const SetupOptions&);

/// Arguments of Megatron-LM, as words with white space between, or a shell script that has them. Variables that the
/// script sets are followed. InputError where an argument is not what it should be.
TrainingSetup read_megatron(const std::string& text, const std::string& file, const SetupOptions&);
/// A job configuration of torchtitan in TOML; or of a release that is configured in Python, a file or a command line.
TrainingSetup read_torchtitan(const std::string& text, const std::string& file, const SetupOptions&);
/// A configuration of DeepSpeed in JSON.
TrainingSetup read_deepspeed(const std::string& text, const std::string& file, const SetupOptions&);

/// The scenario. InputError where the model, the cluster or the batch is not known, or the options name a model or a
/// cluster that is not there.
std::string scenario_yaml(const TrainingSetup&, const SetupOptions&, const std::string& file);

/// The stack of a setup with its switches.
SoftwareStack stack_of(const TrainingSetup&);
/// "megatron-core", or "{base: megatron-core, overlap: {tensor: true}}".
std::string software_text(const TrainingSetup&);

/// One note for each kind: what matched, what is not modeled, has no use or is unknown, what is assumed. Without
/// `details` a list that is longer than a line ends in the number of its other items.
std::vector<std::string> notes_of(const TrainingSetup&, bool details = true);

}  // namespace stagecraft
