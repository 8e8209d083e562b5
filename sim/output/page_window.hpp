#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "sim/core/json.hpp"

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

}  // namespace stagecraft
