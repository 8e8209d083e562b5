#pragma once

#include <string>
#include <vector>

#include "sim/core/diagnostic.hpp"

namespace stagecraft {

/// One workflow command of GitHub Actions for each problem, "::error file=a.yaml,line=3,col=7::...", each with a line
/// break. GitHub shows them next to the lines of the files.
std::string github_annotations(const std::vector<Diagnostic>&);

/// The problems as a log in SARIF 2.1.0 (OASIS), which GitHub, GitLab and editors read. A rule is the code of a
/// problem.
std::string sarif(const std::vector<Diagnostic>&);

}  // namespace stagecraft
