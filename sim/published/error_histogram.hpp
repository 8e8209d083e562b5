#pragma once

#include <span>
#include <string>

namespace stagecraft {

/// An error of a prediction as a share, and whether it is as small as it should be.
struct JudgedError {
  double error = 0;
  bool met = true;
};

/// The legend of a histogram: what an error that is met is, and one that is not.
struct ErrorKinds {
  const char *met, *missed;
};

/// A histogram of errors in the colors of the page of reproduced results: bins of 2.5 % from -40 to +40 %, of which the
/// first and the last also hold what lies beyond. `error` says what an error is.
std::string error_histogram(std::span<const JudgedError>, const ErrorKinds&, const char* error);

}  // namespace stagecraft
