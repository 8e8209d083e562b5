#pragma once

#include <string_view>

#include "sim/config/fields.hpp"
#include "sim/core/catalog.hpp"
#include "sim/model/model_graph.hpp"

namespace stagecraft {

/// One way to make a model: one file in models/builders/.
struct ModelBuilder {
  std::string_view name, summary, source;
  const config::MapSpec* fields;              ///< Its parameters in `model:`.
  ModelGraph (*build)(const config::Value&);  ///< Gets the checked map.
};

namespace model_builders {
Catalog<ModelBuilder> catalog();
}

}  // namespace stagecraft
