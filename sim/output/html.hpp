#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace stagecraft {

/// A run as `run --out` stores it: its name on the page, and its files as text.
struct KeptRun {
  std::string name;
  std::string results, spans, memory, scenario;  ///< results.json, spans.csv, memory.csv (may be empty), scenario.yaml.
};

/// Infeasible when the runs of one page have more than a million instructions together, which no browser draws.
void check_page_size(std::size_t instructions);

/// One self-contained page: the runs below each other on one time axis, their numbers side by side. Everything on it
/// comes from these files. InputError names a file that is not what it should be.
std::string html_page(std::span<const KeptRun>, const std::string& title);

}  // namespace stagecraft
