#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace stagecraft {

namespace html {

/// A page of tools/report: its HTML with placeholders {{like_this}}, its style, and all its scripts in one.
struct Source {
  std::string_view page, style, script;
};

/// The pages of runs, of a sweep, of a search and of reproduced results, and the playground. CMake writes their text.
extern const Source runs, sweep, search, reproduced, playground;

}  // namespace html

/// A page with its data, which is JSON in UTF-8, and a policy that lets nothing else run or be fetched. The script runs
/// before the `parts`, which are JSON as well, have arrived. `picture` is SVG with its names escaped. `more_policy`
/// adds directives that permit more.
std::string html_page(const html::Source&, const std::string& title, std::string_view json,
                      std::span<const std::string> parts = {}, const std::string& picture = {},
                      const std::string& more_policy = {});
/// A page whose content is HTML with its names escaped, under the same policy as html_page().
std::string html_content_page(const html::Source&, const std::string& title, const std::string& content);

/// One point of a sweep, as the page shows it.
struct SweepPoint {
  int number = 0;
  std::string settings;                              ///< A JSON object from path to value.
  std::string status = {}, code = {}, message = {};  ///< `status` is empty when it has not run.
  std::string key = {};                              ///< Name of its folder below SweepPage::folder.
  bool has_report = false;                           ///< Whether its report.html exists.
  std::vector<double> figures = {};                  ///< Ordered as SweepPage::figures; NaN where not known.
};

/// Everything on the page of a sweep.
struct SweepPage {
  std::string title, name, backend, version;
  std::string base;      ///< The scenario that the points vary.
  bool has_base = true;  ///< Whether there is such a file or name; otherwise `base` is as the sweep file writes it.
  std::string folder;    ///< Where `run --out` puts the run of a point, relative to the page.
  std::string out;       ///< `folder` relative to the working folder.
  std::vector<std::string> figures;  ///< Names of metrics().
  /// Names that the sweep file gives values: by path, and then by the value as JSON.
  std::map<std::string, std::map<std::string, std::string>> labels = {};
  std::vector<std::string> device_paths = {};  ///< Paths of settings that are varied to run on other devices.
  std::vector<SweepPoint> points;
};

/// One self-contained page: every point in a table and in plots.
std::string sweep_html(const SweepPage&);

}  // namespace stagecraft
