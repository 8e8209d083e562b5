// Reads spans.csv and memory.csv of a run back into columns, and puts spans into lanes without overlap, for the HTML
// page and for pictures of earlier runs.

#include "sim/output/html_data.hpp"

#include <algorithm>
#include <functional>
#include <queue>
#include <set>
#include <tuple>
#include <unordered_map>

#include <fmt/core.h>

#include "sim/core/diagnostic.hpp"
#include "sim/core/from_chars.hpp"
#include "sim/core/parallel.hpp"
#include "sim/core/text.hpp"

namespace stagecraft {
namespace {

constexpr const char* kLaneKinds[] = {"compute", "send", "receive", "all_reduce", "copy"};
constexpr int kDecimals = 3;  // of a nanosecond

/// The rows of a CSV file (RFC 4180), and what its columns are called.
class Rows {
 public:
  Rows(std::string_view text, std::string file) : left_(text), file_(std::move(file)) {
    next();
    names_ = cells_;
    names_.resize(count_);
  }

  bool next() {
    if (left_.empty()) return false;
    line_ = next_line_;
    count_ = 0;
    do cell();
    while (more_);
    if (!names_.empty() && count_ != names_.size())
      refuse(fmt::format("{}, but {}", pluralize(static_cast<std::int64_t>(count_), "cell"),
                         pluralize(std::ssize(names_), "column")));
    return true;
  }

  std::size_t column(std::string_view name) const {
    const auto at = std::find(names_.begin(), names_.end(), name);
    if (at == names_.end()) refuse(fmt::format("there is no column '{}'", name));
    return at - names_.begin();
  }

  const std::string& text(std::size_t column) const { return cells_[column]; }

  template <class Number>
  Number number(std::size_t column) const {
    const std::string& cell = cells_[column];
    Number value{};
    const auto [end, error] = from_chars(cell.data(), cell.data() + cell.size(), value);
    if (error != std::errc{} || end != cell.data() + cell.size())
      refuse(fmt::format("'{}' is not a number for {}", cell, names_[column]));
    return value;
  }

  double bytes(std::size_t column) const {
    constexpr double kMost = 1e30;  // Sums of it, and the page's JSON, have no infinity.
    const auto value = number<double>(column);
    if (!(value >= 0 && value <= kMost))
      refuse(fmt::format("'{}' is not a size for {}", cells_[column], names_[column]));
    return value;
  }

  /// "12.345" nanoseconds are 12345 picoseconds.
  std::int64_t picoseconds(std::size_t column) const {
    const std::string& cell = cells_[column];
    const std::size_t point = cell.size() - std::min(cell.size(), std::size_t{kDecimals + 1});
    std::string digits = cell;
    std::int64_t value = 0;
    if (cell[point] != '.') refuse(fmt::format("'{}' for {} has not {} decimals", cell, names_[column], kDecimals));
    digits.erase(point, 1);
    const auto [end, error] = from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error == std::errc::result_out_of_range) refuse("the run is longer than 100 days, which a page cannot show");
    if (error != std::errc{} || end != digits.data() + digits.size() || value < 0)
      refuse(fmt::format("'{}' is not a time for {}", cell, names_[column]));
    return value;
  }

  std::int64_t device(std::size_t column, const std::map<std::string, std::int64_t>& devices) const {
    const auto at = devices.find(cells_[column]);
    if (at == devices.end()) refuse(fmt::format("results.json knows no device '{}'", cells_[column]));
    return at->second;
  }

  [[noreturn]] void refuse(const std::string& message) const {
    throw InputError(
        {{{file_, line_, 1}, {}, message, "give a folder that this version of run --out wrote", "not-a-run"}});
  }

 private:
  void cell() {
    if (count_ == cells_.size()) cells_.emplace_back();
    std::string& text = cells_[count_++];
    if (left_.starts_with('"')) {
      text.clear();
      for (left_.remove_prefix(1);; left_.remove_prefix(1)) {
        if (left_.empty()) refuse("a quoted cell has no end");
        if (left_.front() == '\n') ++next_line_;
        if (left_.front() != '"')
          text += left_.front();
        else if (left_.starts_with("\"\""))
          text += '"', left_.remove_prefix(1);
        else
          break;
      }
      left_.remove_prefix(1);
    } else {
      text = left_.substr(0, left_.find_first_of(",\n"));
      left_.remove_prefix(text.size());
    }
    more_ = left_.starts_with(',');
    next_line_ += left_.starts_with('\n');
    if (!left_.empty()) left_.remove_prefix(1);
  }

  std::string_view left_;
  std::string file_;
  std::vector<std::string> names_, cells_;  ///< Cells keep their memory from line to line.
  std::size_t count_ = 0;                   ///< Cells of this line.
  int line_ = 1, next_line_ = 1;
  bool more_ = false;
};

struct Span {
  std::int64_t start, end, op, micro, iteration, version, device;
  int lane_kind;
  bool critical;
};

int lane_kind(const std::string& kind) {
  const auto at = std::find(std::begin(kLaneKinds) + 1, std::end(kLaneKinds), kind);
  if (at != std::end(kLaneKinds)) return static_cast<int>(at - std::begin(kLaneKinds));
  const auto is_kind = [&](CollectiveKind k) { return kind == name(k); };
  const bool collective = std::any_of(std::begin(kCollectiveKinds), std::end(kCollectiveKinds), is_kind);
  if (kind == "offload" || kind == "fetch") return 4;
  return collective ? 3 : 0;  // All collectives share the lane of the all-reduces.
}

/// The spans of the drawn devices. The totals of `result` count every span.
std::vector<Span> parse(Rows& rows, const std::map<std::string, std::int64_t>& devices, const PageWindow& window,
                        HtmlSpans& result) {
  const auto name = rows.column("instruction"), kind = rows.column("kind"), device = rows.column("device"),
             stage = rows.column("stage"), micro = rows.column("micro_batch"), iteration = rows.column("iteration"),
             version = rows.column("version"), bytes = rows.column("bytes"), start = rows.column("start_ns"),
             end = rows.column("end_ns"), critical = rows.column("critical");
  std::vector<Span> spans;
  std::unordered_map<std::string, std::int64_t> op_numbers;
  static const std::string kAnyCollective = "all_reduce", kNoWork;
  while (rows.next()) {
    const std::string &whole = rows.text(name), &number = rows.text(micro);
    const std::int64_t from = rows.picoseconds(start), until_time = rows.picoseconds(end),
                       on = rows.device(device, devices);
    const int lane = lane_kind(rows.text(kind));
    if (until_time < from) rows.refuse(whole + " ends before it starts");
    const bool is_late = rows.text(kind) == "late";
    result.totals.add(is_late     ? kNoWork
                      : lane == 0 ? rows.text(kind)
                      : lane == 3 ? kAnyCollective
                                  : kNoWork,
                      on, rows.number<std::int64_t>(iteration), from, until_time);
    if (!window.draws(on) || is_late) continue;
    const std::size_t until = std::min(whole.find_last_of("./"), whole.size());
    if (!std::string_view(whole).substr(0, until).ends_with(number))
      rows.refuse(fmt::format("'{}' has another micro-batch than {}", whole, number));
    HtmlOp op{whole.substr(0, until - number.size()), rows.text(kind), rows.number<std::int64_t>(stage),
              rows.number<std::int64_t>(bytes), whole.substr(until)};
    const auto [at, fresh] =
        op_numbers.try_emplace(fmt::format("{}{} {} {} {}", op.text, op.after, op.kind, op.stage, op.bytes),
                               static_cast<std::int64_t>(result.ops.size()));
    spans.push_back({from, until_time, at->second, rows.number<std::int64_t>(micro),
                     rows.number<std::int64_t>(iteration), rows.number<std::int64_t>(version), on, lane,
                     rows.text(critical) == "1"});
    if (fresh) result.ops.push_back(std::move(op));
  }
  return spans;
}

/// Each to the first lane of its device and kind that is free at its start. `spans` are in order of device, kind and
/// start.
std::vector<std::vector<const Span*>> lanes_of(const std::vector<Span>& spans) {
  using Busy = std::pair<std::int64_t, std::size_t>;  // until when, and which lane
  std::vector<std::vector<const Span*>> lanes;
  std::priority_queue<Busy, std::vector<Busy>, std::greater<>> busy;
  std::set<std::size_t> free;
  const Span* before = nullptr;
  for (const Span& s : spans) {
    if (before && (before->device != s.device || before->lane_kind != s.lane_kind)) busy = {}, free.clear();
    before = &s;
    for (; !busy.empty() && busy.top().first <= s.start; busy.pop()) free.insert(busy.top().second);
    if (free.empty()) {
      free.insert(lanes.size());
      lanes.emplace_back();
    }
    const std::size_t lane = *free.begin();
    free.erase(free.begin());
    lanes[lane].push_back(&s);
    busy.emplace(s.end, lane);
  }
  return lanes;
}

/// Drops the spans that start after the time at which the window is full, and returns that time.
std::int64_t cut(std::vector<Span>& spans, const PageWindow& window, std::int64_t length) {
  if (spans.size() <= window.most_spans) return length;
  std::vector<std::int64_t> starts;
  for (const Span& s : spans) starts.push_back(s.start);
  const auto last = starts.begin() + static_cast<std::ptrdiff_t>(window.most_spans);
  std::nth_element(starts.begin(), last, starts.end());
  const std::int64_t until = *last;
  std::erase_if(spans, [&](const Span& s) { return s.start >= until; });
  return until;
}

}  // namespace

HtmlSpans read_spans(std::string_view csv, const std::string& file, const std::map<std::string, std::int64_t>& devices,
                     const PageWindow& window, std::int64_t length) {
  Rows rows(csv, file);
  HtmlSpans result{.totals = SpanTotals(length)};
  std::vector<Span> spans = parse(rows, devices, window, result);
  if (spans.empty()) rows.refuse("there are no instructions");
  result.until = cut(spans, window, result.totals.length());
  std::stable_sort(spans.begin(), spans.end(), [](const Span& a, const Span& b) {
    return std::tie(a.device, a.lane_kind, a.start, a.end) < std::tie(b.device, b.lane_kind, b.start, b.end);
  });
  for (const auto& lane : lanes_of(spans)) {
    result.lanes.push_back(
        {lane.front()->device, kLaneKinds[lane.front()->lane_kind], static_cast<std::int64_t>(lane.size())});
    std::int64_t before = 0;
    for (const Span* s : lane) {
      if (s->critical) result.critical.push_back(static_cast<std::int64_t>(result.gap.size()));
      result.gap.push_back(s->start - before);
      result.length.push_back(s->end - s->start);
      result.op.push_back(s->op);
      result.micro.push_back(s->micro);
      result.iteration.push_back(s->iteration);
      result.version.push_back(s->version);
      before = s->end;
    }
  }
  return result;
}

std::vector<HtmlMemory> read_memory(std::string_view csv, const std::string& file,
                                    const std::map<std::string, std::int64_t>& devices, const PageWindow& window,
                                    std::int64_t until) {
  if (csv.empty()) return {};
  Rows rows(csv, file);
  const auto device = rows.column("device"), time = rows.column("time_ns"), resident = rows.column("resident_bytes"),
             stash = rows.column("stash_bytes"), received = rows.column("received_bytes"),
             outgoing = rows.column("outgoing_bytes");
  std::vector<HtmlMemory> curves;
  std::int64_t before = 0, last = 0;  // The times of the last sample that is kept, and of the last one.
  while (rows.next()) {
    const std::int64_t d = rows.device(device, devices), now = rows.picoseconds(time);
    if (!window.draws(d)) continue;
    if (curves.empty() || curves.back().device != d) {
      curves.push_back({.device = d, .resident = rows.bytes(resident), .gap = {}, .stash = {}, .messages = {}});
      before = last = 0;
    }
    if (now < last) rows.refuse("time goes back");
    HtmlMemory& curve = curves.back();
    const double stashed = rows.bytes(stash), messages = rows.bytes(received) + rows.bytes(outgoing);
    curve.peak = std::max({curve.peak, curve.resident, curve.resident + stashed + messages});
    last = now;
    if (now > until) continue;
    curve.gap.push_back(now - before);
    curve.stash.push_back(stashed);
    curve.messages.push_back(messages);
    before = now;
  }
  return curves;
}

}  // namespace stagecraft
