#pragma once

#include <string>
#include <vector>

#include "sim/core/diagnostic.hpp"
#include "sim/interchange/imports/training_setup.hpp"

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

/// Judges a scenario, or the framework's own configuration with what the options say in addition, by the rules of a
/// training framework: megatron, torchtitan, deepspeed or bridge. Throws the rules that it breaks, each with its name
/// and formula.
CheckedInput check_by_framework(const std::string& framework, const std::string& file,
                                const std::vector<std::string>& sets, const SetupOptions&);

/// One workflow command of GitHub Actions for each problem, "::error file=a.yaml,line=3,col=7::...", each with a line
/// break. GitHub shows them next to the lines of the files.
std::string github_annotations(const std::vector<Diagnostic>&);

/// The problems as a log in SARIF 2.1.0 (OASIS), which GitHub, GitLab and editors read. A rule is the code of a
/// problem.
std::string sarif(const std::vector<Diagnostic>&);

}  // namespace stagecraft
