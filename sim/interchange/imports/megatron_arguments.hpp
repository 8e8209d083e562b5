#pragma once

#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/core/diagnostic.hpp"
#include "sim/interchange/imports/shell_words.hpp"
#include "sim/interchange/imports/training_setup.hpp"

namespace stagecraft {

/// Arguments of Megatron-LM as a command line or a script gives them. What is asked for counts as used; the others are
/// sorted into the notes of the setup at the end, so that none is ignored silently.
class MegatronArguments {
 public:
  static constexpr int kMost = 1'000'000;  ///< No number is above it where nothing else is said.

  /// InputError where the text has no arguments of a GPT, and for what the parser of Megatron-LM refuses: an option
  /// that it does not have, too many or too few words after one, a word that is no number or none of the choices.
  /// `release` runs the file; empty: the newest.
  MegatronArguments(const std::string& text, const std::string& file, std::string release = {});

  /// Whether the file runs with a release before this one.
  bool is_before_release(std::string_view release) const;
  const std::string& release() const { return release_; }
  /// Collects the options, and the words after them, that this release does not have.
  void check_releases(TrainingSetup&) const;

  bool has(const std::string& name) const { return given_.contains(name); }
  /// Marks an option as used; whether it is given.
  bool take(const std::string& name);
  /// The value of an option; empty without.
  std::string word(const std::string& name);
  /// The values of an option; empty without. "[a b]" and "a,b" are two values, as "a b" is.
  std::vector<std::string> words(const std::string& name);
  /// A whole number from 1 on.
  std::optional<int> find_number(const std::string& name, int limit = kMost);
  /// A number from 0 to 1.
  std::optional<double> find_share(const std::string& name);
  /// A whole number from 1 on, noted as the value of a field.
  int number(TrainingSetup&, const std::string& name, const std::string& field, int fallback = 0);
  /// Whether a switch is given; then it is noted.
  bool flag(TrainingSetup&, const std::string& name, const std::string& field, const std::string& value);
  /// The value of an option as it is written with its name.
  std::string written(const std::string& name) const;
  /// The option as a note about it, marked as used.
  std::string take_written(const std::string& name);
  /// A variable of the environment that the script sets; empty where it unsets it, nothing where it does neither.
  std::optional<std::string> variable(const std::string& name) const;

  /// Adds every option that was not used to the notes about options.
  void sort_others(TrainingSetup&) const;

  /// The place of an option, or of the file for an option that is not given.
  Where where(const std::string& name) const;
  [[noreturn]] void refuse(const std::string& name, std::string message, std::string help) const;
  /// An option breaks a rule of Megatron-LM.
  [[noreturn]] void break_rule(const char* rule, const std::string& name, const std::string& message,
                               std::string help) const;
  [[noreturn]] void refuse_all(std::string message, std::string help, const char* code = "import") const;

 private:
  struct Argument {
    std::vector<std::string> values;  ///< Empty for a switch.
    int line = 0;
  };
  void read_command(const ShellCommand&);
  void read_arguments(std::span<const ShellWord>);
  std::size_t read_option(std::span<const ShellWord>, std::size_t at);
  void read_launcher(std::span<const ShellWord>);
  void add_problem(int line, const std::string& option, std::string message, std::string help);
  void refuse_computed();
  void check_words();

  const std::string& file_;
  std::string release_;
  std::map<std::string, Argument> given_;
  std::set<std::string> used_;
  std::set<std::string> unset_;                ///< Variables that the file uses and does not set.
  std::set<std::string> of_launcher_;          ///< Options before the name of the program that are not read.
  std::map<std::string, std::string> values_;  ///< Variables that the file sets.
  std::vector<std::string> of_script_;         ///< What the script leaves open.
  std::vector<Diagnostic> problems_;
};

/// Notes that an option became a field.
void note_match(TrainingSetup&, const std::string& option, const std::string& field, const std::string& value);

/// What later readers need of the shape of a model.
struct MegatronShape {
  int layers = 0, heads = 0, sequence = 0;
  int next_tokens = 0;  ///< Modules for the token after next.
  bool flash_attention = true;
};

/// The fields of the builder transformer, and expert parallelism.
MegatronShape read_megatron_model(MegatronArguments&, TrainingSetup&, const SetupOptions&);
/// Ranks, chunks, layout and schedule.
void read_megatron_pipeline(MegatronArguments&, TrainingSetup&, const MegatronShape&);
/// What is recomputed, and what is in the memory of hosts, where the cluster has some.
void read_megatron_recomputation(MegatronArguments&, TrainingSetup&, const MegatronShape&);
void read_megatron_offload(MegatronArguments&, TrainingSetup&, const MegatronShape&, const SetupOptions&);
/// What overlaps, as switches of the software stack, and buckets of gradients. `replicas` is the number of
/// data-parallel replicas.
void read_megatron_overlap(MegatronArguments&, TrainingSetup&, std::int64_t replicas);
/// InputError with every rule of Megatron-LM 0.20 that the arguments break, for what it refuses after its parser: when
/// it checks its arguments, builds the model or runs the first step. `replicas` is 0 where no number of GPUs is known.
void check_megatron_rules(const MegatronArguments&, const TrainingSetup&, const MegatronShape&, std::int64_t replicas);

/// Why Megatron-LM refuses what breaks this rule: "Megatron-LM 0.20 refuses this at the first step (ValueError): ".
std::string refused_by_megatron(std::string_view rule, std::string_view release = {});

}  // namespace stagecraft
