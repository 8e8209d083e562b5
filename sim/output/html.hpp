#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "sim/core/json.hpp"

namespace stagecraft {

/// A run as `run --out` stores it: its name on the page, and its files as text.
struct KeptRun {
  std::string name;
  std::string results, spans, memory, scenario;  ///< results.json, spans.csv, memory.csv (may be empty), scenario.yaml.
};

/// Spans that the runs of a page draw together. With this many, a page is below 6 MB and is drawn within two seconds.
inline constexpr std::size_t kMostPageSpans = 250'000;

/// What the scripts of html_page() need at once. JSON of the spans and curves, which may come later, is appended to
/// `parts`. InputError names a file that is not what it should be.
Json page_data(std::span<const KeptRun>, std::vector<std::string>& parts, std::size_t most_spans = kMostPageSpans);

/// One self-contained page: the runs below each other on one time axis, their numbers side by side. Everything on it
/// comes from these files. Of large runs it draws one replica and the first part of the time; its numbers and its
/// overview are always of the whole run. InputError as above.
std::string html_page(std::span<const KeptRun>, const std::string& title, std::size_t most_spans = kMostPageSpans);

}  // namespace stagecraft
