#pragma once

#include <algorithm>
#include <cstdlib>
#include <string_view>

namespace stagecraft::test {

/// Whether every case of a large set is tested: the environment variable STAGECRAFT_TRIALS is "full".
inline bool all_trials() {
  const char* trials = std::getenv("STAGECRAFT_TRIALS");
  return trials && std::string_view(trials) == "full";
}

/// `n` when every case is tested, else a tenth of them, or `fewer`.
inline int trials(int n) { return all_trials() ? n : std::max(1, n / 10); }
inline int trials(int n, int fewer) { return all_trials() ? n : fewer; }

}  // namespace stagecraft::test
