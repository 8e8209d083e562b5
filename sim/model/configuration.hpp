#pragma once

#include <set>
#include <string>
#include <string_view>

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

/// The model that the tree of a config.json describes, as fields of a builder. What is not known is a problem, never a
/// guess. `keys` gets the names of the facts that were read.
config::Value read_configuration(const config::Value& configuration, config::Problems&,
                                 std::set<std::string>* keys = nullptr);

}  // namespace stagecraft
