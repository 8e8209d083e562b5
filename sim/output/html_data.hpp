#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "sim/core/json.hpp"
#include "sim/output/html.hpp"

namespace stagecraft {

/// The part of a run whose spans a page draws: some devices until a time, so that a run of any size has a page. All
/// numbers of the page are of the whole run.
struct PageWindow {
  std::vector<std::int64_t> stands_for;  ///< By device: how many equal ones it stands for, 0: not drawn. Empty: all.
  std::size_t most_spans = SIZE_MAX;     ///< The drawn time ends where the drawn devices would start more spans.

  bool draws(std::int64_t device) const { return stands_for.empty() || stands_for[device] > 0; }
};

/// All devices where the `spans` of a run are few enough; else one replica of each pipeline rank of its results.
PageWindow page_window(const Json& results, const std::map<std::string, std::int64_t>& devices, std::size_t spans,
                       std::size_t most_spans);

/// What a page knows of every span of a run, drawn or not. Times are picoseconds.
class SpanTotals {
 public:
  /// `length`: the end of the run, or more.
  explicit SpanTotals(std::int64_t length = 0) : expected_length_(length) {}

  /// `kind`: of a computation, or all_reduce for any collective; empty: a message, which is no work.
  void add(const std::string& kind, std::int64_t device, std::int64_t iteration, std::int64_t start, std::int64_t end);

  std::size_t spans() const { return spans_; }
  std::int64_t length() const { return length_; }
  /// The end of each iteration in its order.
  JsonArray iteration_ends() const;
  /// Kinds of work and their shares of device time in equal parts of the run, a digit for each kind of each part.
  Json overview() const;

 private:
  std::int64_t expected_length_, length_ = 0;
  std::size_t spans_ = 0;
  std::map<std::int64_t, std::int64_t> ends_;
  std::map<std::int64_t, bool> computes_;            ///< Devices that compute.
  std::map<std::string, std::vector<double>> work_;  ///< By kind: device time in each part of the run.
};

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
