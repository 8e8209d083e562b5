#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "sim/config/value.hpp"
#include "sim/core/catalog.hpp"

namespace stagecraft {

class ConfigurationReader;

/// How the configurations of one `model_type` of Hugging Face's transformers are read: one file in
/// models/configurations/.
struct ConfigurationFamily {
  std::string_view name;  ///< The `model_type`.
  std::string_view summary, source;
  /// Sets the fields of the builder `transformer`, each at the place of the fact that it follows from.
  void (*read)(ConfigurationReader&);
};

namespace model_configurations {
Catalog<ConfigurationFamily> catalog();
}

/// What a reading of a configuration is asked for, and what it took.
struct ConfigurationReading {
  int sequence = 0;                ///< Tokens of a sample; 0: as the configuration says.
  int limit = 0;                   ///< The most tokens if none are asked for; 0: no limit.
  std::set<std::string> keys;      ///< Names of the facts that were read.
  std::vector<std::string> notes;  ///< Sentences about what the model has otherwise than the configuration.
};

/// The part about text of the configuration of a model of several kinds of input: `text_config`, with what it leaves to
/// the whole. The configuration itself where it has no such part.
config::Value text_part(const config::Value& configuration);

/// The model that the tree of a config.json describes, as fields of a builder. What is not known is a problem, never a
/// guess.
config::Value read_configuration(const config::Value& configuration, config::Problems&,
                                 ConfigurationReading* reading = nullptr);

}  // namespace stagecraft
