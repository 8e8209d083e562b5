#include "sim/weights/policy.hpp"

namespace stagecraft {

const config::MapSpec& weights_fields() {
  static const config::MapSpec spec{
      .title = "Which version of the weights each op uses.",
      .fields = {config::choice("fidelity", {"paper", "as_released"})
                     .fallback("paper")
                     .doc("What the paper says, or what its published code does; the same where they agree, and where "
                          "what the code does is no choice of weights.")},
  };
  return spec;
}

WeightsRule rule_of(const WeightsDef& def, const config::Value& map) {
  const bool released = map.at("fidelity").text == "as_released";
  WeightsRule rule = released && def.as_released ? *def.as_released : def.paper;
  if (def.read) def.read(map, rule);
  return rule;
}

}  // namespace stagecraft
