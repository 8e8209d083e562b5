// Chooses which spans of a large run its page draws, and sums up what all of them are, for the overview of the page.

#include "sim/output/html_data.hpp"

#include <algorithm>
#include <cmath>

#include "sim/core/text.hpp"

namespace stagecraft {
namespace {

constexpr int kOverviewParts = 480;

}  // namespace

PageWindow page_window(const Json& results, const std::map<std::string, std::int64_t>& devices, std::size_t spans,
                       std::size_t most_spans) {
  if (spans <= most_spans) return {};
  PageWindow window{.stands_for = std::vector<std::int64_t>(devices.size(), 1), .most_spans = most_spans};
  const Json* ranks = results.find("ranks");
  if (!ranks || ranks->items().empty()) return window;
  const Json* members = results.find("devices_per_group");
  const std::int64_t group = std::max<std::int64_t>(1, members ? static_cast<std::int64_t>(members->number()) : 1);
  std::fill(window.stands_for.begin(), window.stands_for.end(), 0);
  for (const Json& rank : ranks->items()) {
    const auto device = devices.find(spreadsheet_text(rank.at("first_device").text()));
    if (device == devices.end()) continue;
    window.stands_for[device->second] =
        std::max<std::int64_t>(1, static_cast<std::int64_t>(rank.at("devices").number()) / group);
  }
  return window;
}

void SpanTotals::add(const std::string& kind, std::int64_t device, std::int64_t iteration, std::int64_t start,
                     std::int64_t end) {
  ++spans_;
  length_ = std::max(length_, end);
  std::int64_t& last = ends_[iteration];
  last = std::max(last, end);
  if (kind.empty() || expected_length_ <= 0) return;
  if (kind != "all_reduce") computes_[device] = true;
  std::vector<double>& parts = work_.try_emplace(kind, kOverviewParts, 0.0).first->second;
  const double part = static_cast<double>(expected_length_) / kOverviewParts;
  const auto number = [&](std::int64_t time) {
    return std::clamp(static_cast<int>(static_cast<double>(time) / part), 0, kOverviewParts - 1);
  };
  for (int p = number(start); p <= number(end); ++p)
    parts[p] += std::max(
        0.0, std::min(static_cast<double>(end), (p + 1) * part) - std::max(static_cast<double>(start), p * part));
}

JsonArray SpanTotals::iteration_ends() const {
  JsonArray ends;
  for (const auto& iteration : ends_) ends.push_back(iteration.second);
  return ends;
}

Json SpanTotals::overview() const {
  constexpr const char* kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const double whole = static_cast<double>(expected_length_) / kOverviewParts *
                       static_cast<double>(std::max<std::size_t>(1, computes_.size()));
  JsonArray kinds;
  std::string digits;
  for (const auto& kind : work_) kinds.push_back(kind.first);
  for (int p = 0; p < kOverviewParts; ++p) {
    double sum = 0;
    for (const auto& kind : work_) sum += kind.second[p];
    const double scale = 63 / std::max(whole, sum);  // Collectives may run next to computation.
    for (const auto& kind : work_)
      digits += kDigits[std::clamp(static_cast<int>(std::lround(kind.second[p] * scale)), 0, 63)];
  }
  return JsonObject{{"kinds", std::move(kinds)}, {"shares", std::move(digits)}};
}

}  // namespace stagecraft
