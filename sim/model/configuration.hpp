#pragma once

#include <string_view>

#include "sim/config/value.hpp"
#include "sim/core/catalog.hpp"

namespace stagecraft {

/// How the configurations of one `model_type` of Hugging Face's transformers are read: one file in
/// models/configurations/.
struct ConfigurationFamily {
  std::string_view name;  ///< The `model_type`.
  std::string_view summary, source;
  /// The fields of the builder `transformer`, each at the place of the fact that it follows from.
  config::Value (*read)(const config::Value& configuration, config::Problems&);
};

namespace model_configurations {
Catalog<ConfigurationFamily> catalog();
}

/// The model that the tree of a config.json describes, as fields of a builder. What is not known is a problem, never a
/// guess.
config::Value read_configuration(const config::Value& configuration, config::Problems&);

}  // namespace stagecraft
