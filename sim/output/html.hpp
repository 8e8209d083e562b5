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

/// Spans that the runs of a page draw together: it is below 6 MB then, and is whole two seconds after it is opened.
inline constexpr std::size_t kMostPageSpans = 250'000;

/// One self-contained page: the runs below each other on one time axis, their numbers side by side. Everything on it
/// comes from these files. Of large runs it draws one replica and the first part of the time; its numbers and its
/// overview are always of the whole run. InputError names a file that is not what it should be.
std::string html_page(std::span<const KeptRun>, const std::string& title, std::size_t most_spans = kMostPageSpans);

}  // namespace stagecraft
