#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "sim/config/value.hpp"
#include "sim/core/ids.hpp"

namespace stagecraft {

/// Layers that are written out one by one and name those in front of them.
class LayerNames {
 public:
  void add(const std::string& name, LayerId id);
  /// Those that the `inputs` of a layer, which comes next, mean; left out: the one added last. A name that is not there
  /// yet is a problem at its place.
  std::vector<LayerId> inputs_of(const config::Value& layer, const std::string& path, config::Problems&) const;

 private:
  std::vector<LayerId> last_;
  std::vector<std::string> names_;
  std::unordered_map<std::string, LayerId> known_;
};

}  // namespace stagecraft
