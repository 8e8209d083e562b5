#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "sim/output/html.hpp"
#include "sim/output/page_window.hpp"

namespace stagecraft {

/// Instructions that differ only in micro-batch, iteration, version and time.
struct HtmlOp {
  std::string text;  ///< "2F", "0>1:0F": the instruction without its micro-batch.
  std::string kind;
  std::int64_t stage = 0, bytes = 0;
  std::string after = {};  ///< What follows the micro-batch: ".AR" of the collective "2F3.AR", "/1" of a bucket.
};

/// Spans of one device that follow each other without overlap.
struct HtmlLane {
  std::int64_t device = 0;
  std::string kind;  ///< compute, send, receive or all_reduce.
  std::int64_t spans = 0;
};

/// spans.csv as columns, lane after lane, in order of time in each. Times are picoseconds, the last digit of the file.
struct HtmlSpans {
  std::vector<HtmlOp> ops;
  std::vector<HtmlLane> lanes;
  /// Since the end of the span before in the lane, and how long it takes: small numbers make a small page.
  std::vector<std::int64_t> gap, length;
  std::vector<std::int64_t> op, micro, iteration, version;
  std::vector<std::int64_t> critical;  ///< Numbers of the spans on the critical path.
  SpanTotals totals;                   ///< They count spans that are not drawn, too.
  std::int64_t until = 0;              ///< The end of the drawn time, which is that of the run where all is drawn.
};

/// memory.csv of one device.
struct HtmlMemory {
  std::int64_t device = 0;
  double resident = 0, peak = 0;  ///< `peak` is of the whole run.
  std::vector<std::int64_t> gap;  ///< Picoseconds since the sample before.
  std::vector<double> stash, messages;
};

/// The spans of a window. `devices` gives each name its number, and `length` is the end of the run. InputError names
/// the file and the line where it cannot be read.
HtmlSpans read_spans(std::string_view csv, const std::string& file, const std::map<std::string, std::int64_t>& devices,
                     const PageWindow& = {}, std::int64_t length = 0);
/// The memory of the devices of a window, until a time.
std::vector<HtmlMemory> read_memory(std::string_view csv, const std::string& file,
                                    const std::map<std::string, std::int64_t>& devices, const PageWindow& = {},
                                    std::int64_t until = INT64_MAX);

}  // namespace stagecraft
