#pragma once

#include <string>
#include <vector>

#include "sim/config/value.hpp"

namespace stagecraft {

/// Problems of a step with their path from the top of the scenario. Those that name no place get the place of what
/// --set changed in `part`, or of `part` where it changed nothing.
std::vector<Diagnostic> with_locations(std::vector<Diagnostic> problems, const std::string& key,
                                       const config::Value& part);

/// Does one step of the road for the part of the scenario called `key`, and says in which part its problems are.
template <class Make>
auto with_error_context(const config::Value& tree, const std::string& key, Make&& make) {
  const config::Value& part = tree.at(key);
  try {
    return make(part);
  } catch (const InputError& e) {
    throw InputError(with_locations(e.problems(), key, part));
  } catch (const Infeasible& e) {
    throw Infeasible(with_locations({e.problem()}, key, part).front());
  }
}

/// A plan that needs more devices than there are is a matter of two places: this names the second.
Infeasible add_related_location(const Infeasible& e, const config::Value& plan, const config::Value& cluster);

}  // namespace stagecraft
