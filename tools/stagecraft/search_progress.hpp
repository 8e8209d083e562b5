#pragma once

#include <chrono>

#include "sim/search/choices.hpp"

namespace stagecraft {

/// How far a search is, on stderr: one line on a terminal, which the next replaces; elsewhere a line every five
/// seconds. Nothing where STAGECRAFT_QUIET is set or the user asked for silence.
class SearchProgressLine {
 public:
  explicit SearchProgressLine(bool quiet);
  ~SearchProgressLine();
  SearchProgressLine(const SearchProgressLine&) = delete;
  SearchProgressLine& operator=(const SearchProgressLine&) = delete;

  void show(const SearchProgress&);

 private:
  bool terminal_, quiet_;
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

/// "shortest period: 120 simulated, 13.38 ms so far, 310/s, at most 900 to go (3 s)".
std::string progress_text(const SearchProgress&);

}  // namespace stagecraft
