#pragma once

#include <string>
#include <vector>

namespace stagecraft {

/// One point of a sweep, as the page shows it.
struct SweepPoint {
  int number = 0;
  std::string settings;                              ///< JSON: a map from path to value.
  std::string status = {}, code = {}, message = {};  ///< `status` is empty when it has not run.
  std::string key = {};                              ///< What its folder below SweepPage::folder is called.
  bool kept = false;                                 ///< Whether report.html is there.
  std::vector<double> figures = {};                  ///< In the order of SweepPage::figures; NaN: not known.
};

/// Everything on the page of a sweep.
struct SweepPage {
  std::string title, name, backend, version;
  std::string base;    ///< The scenario that the points vary.
  bool found = true;   ///< Whether there is a file or a name like that; else it is as the sweep file says it.
  std::string folder;  ///< Where `run --out` puts the run of a point: beside the page, as the page calls it.
  std::string out;     ///< The same as the working folder calls it.
  std::vector<std::string> figures;  ///< "period_s": with the unit at the end.
  std::vector<SweepPoint> points;
};

/// One page that needs nothing else: every point in a table and in pictures.
std::string sweep_html(const SweepPage&);

}  // namespace stagecraft
