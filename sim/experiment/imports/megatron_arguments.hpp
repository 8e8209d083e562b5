#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "sim/experiment/imports/training_setup.hpp"

namespace stagecraft {

/// Arguments of Megatron-LM as a command line or a script gives them. What is asked for counts as used; the others are
/// sorted into the notes of the setup at the end, so that none is ignored silently.
class MegatronArguments {
 public:
  /// InputError where the text has no arguments of a GPT.
  MegatronArguments(const std::string& text, const std::string& file);

  bool has(const std::string& name) const { return given_.contains(name); }
  /// Marks an option as used; whether it is given.
  bool take(const std::string& name);
  /// The value of an option; empty without.
  std::string word(const std::string& name);
  /// The values of an option; empty without. "[a b]" and "a,b" are two values, as "a b" is.
  std::vector<std::string> words(const std::string& name);
  /// A whole number from 1 on.
  std::optional<int> find_number(const std::string& name, int limit = 1'000'000);
  /// Likewise, noted as the value of a field.
  int number(TrainingSetup&, const std::string& name, const std::string& field, int fallback = 0);
  /// Whether a switch is given; then it is noted.
  bool flag(TrainingSetup&, const std::string& name, const std::string& field, const std::string& value);
  /// The value of an option as it is written with its name.
  std::string written(const std::string& name) const;

  /// Adds every option that was not used to the notes about options.
  void sort_others(TrainingSetup&) const;

  [[noreturn]] void refuse(const std::string& name, std::string message, std::string help) const;
  [[noreturn]] void refuse_all(std::string message, std::string help) const;

 private:
  struct Argument {
    std::vector<std::string> values;  ///< Empty for a switch.
    int line = 0;
  };
  const std::string& file_;
  std::map<std::string, Argument> given_;
  std::set<std::string> used_;
  std::set<std::string> unset_;  ///< Variables that the file uses and does not set.
};

/// Notes that an option became a field.
void note_match(TrainingSetup&, const std::string& option, const std::string& field, const std::string& value);

/// What later readers need of the shape of a model.
struct MegatronShape {
  int layers = 0;
  bool flash_attention = true;
};

/// The fields of the builder transformer, and expert parallelism.
MegatronShape read_megatron_model(MegatronArguments&, TrainingSetup&, const SetupOptions&);
/// Ranks, chunks, layout and schedule.
void read_megatron_pipeline(MegatronArguments&, TrainingSetup&, const MegatronShape&);

}  // namespace stagecraft
