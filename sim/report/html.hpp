#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace stagecraft {

/// A run as `run --out` keeps it: what the page calls it, and its files as text.
struct KeptRun {
  std::string name;
  std::string results, spans, memory, scenario;  ///< results.json, spans.csv, memory.csv (may be empty), scenario.yaml.
};

/// Infeasible when the runs on one page have so many instructions together that no browser would draw it: above a
/// million.
void check_page_size(std::size_t instructions);

/// One page that needs nothing else: the runs above each other on one time axis, their numbers side by side. Everything
/// on it stands in these files. InputError names the file that is not what it should be.
std::string html_page(std::span<const KeptRun>, const std::string& title);

}  // namespace stagecraft
