#pragma once

#include <string>
#include <vector>

#include "sim/core/diagnostic.hpp"

namespace stagecraft {

/// An input file without problems.
struct CheckedInput {
  std::string summary;               ///< One line: "scenario: 4 stages on 4 devices, ...".
  std::vector<std::string> notes;    ///< What looks like a slip.
  std::vector<Diagnostic> warnings;  ///< Likewise, with places.
};

/// Checks a scenario, a model, a cluster or any other YAML file that Stagecraft reads; a scenario up to its program.
/// `sets` are "path=value" and change scenarios only. Throws what is wrong: InputError or Infeasible.
CheckedInput check_input(const std::string& file, const std::vector<std::string>& sets);

/// Every problem of several inputs.
struct InputProblems {
  std::vector<Diagnostic> problems;
  int exit_code = 0;  ///< 2: an input is wrong; 3: an input is right but cannot be done.

  /// Notes what check_input() throws about `file`.
  void add(const InputError&);
  void add(const Infeasible&, const std::string& file);
};

}  // namespace stagecraft
