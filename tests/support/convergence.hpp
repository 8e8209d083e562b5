#pragma once

#include <functional>
#include <string>
#include <vector>

#include "sim/experiment/convergence.hpp"

namespace stagecraft::test {

/// A convergence question with the scenario that it is about.
struct ConvergenceQuestion : ConvergenceOptions {
  std::string file;
  std::vector<std::string> sets;
};

inline Convergence converge(
    const ConvergenceQuestion& q, const std::function<void()>& before_each = [] {}) {
  return stagecraft::converge(load_experiment(q.file, q.sets), q, before_each);
}

}  // namespace stagecraft::test
