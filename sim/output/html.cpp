// The HTML page of one run or several: packs spans and memory samples into short digits, in parts that the browser
// reads while the page is drawn.

#include "sim/output/html.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "sim/core/diagnostic.hpp"
#include "sim/core/json.hpp"
#include "sim/core/text.hpp"
#include "sim/output/html_data.hpp"
#include "sim/output/html_page.hpp"
#include "sim/output/json_files.hpp"
#include "sim/program/program.hpp"
#include "sim/result/metrics.hpp"

namespace stagecraft {
namespace {

/// The spans and the memory of some devices, which the page reads while it loads.
struct HtmlPart {
  int lanes = 0, curves = 0;  ///< How many lanes and curves the part has, numbered on from the previous part.
  std::string json;           ///< {"spans": digits, "memory": [{"samples": digits, "states": [stash, messages, ...]}]}
};

/// Samples of a part: few enough that the first devices are drawn while the rest is loading.
constexpr std::int64_t kPart = 8192;
constexpr double kExact = 0x1p53;

void put(std::string& out, std::uint64_t number) {
  constexpr const char* kBase64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  do {
    const std::uint64_t digit = number % 32;
    number /= 32;
    out += kBase64[number > 0 ? digit + 32 : digit];
  } while (number > 0);
}

/// Zigzag code of a difference, which may wrap around.
std::uint64_t folded(std::uint64_t difference) {
  return (difference << 1) ^ (difference >> 63 ? ~std::uint64_t{0} : 0);
}

class SpanWriter {
 public:
  explicit SpanWriter(const HtmlSpans& spans)
      : s_(spans), is_critical_(spans.gap.size(), 0), expected_(spans.ops.size()) {
    for (const std::int64_t n : s_.critical) is_critical_[n] = 1;
  }

  void write(std::string& out, std::size_t n) {
    Expected& expected = expected_[s_.op[n]];
    const Expected is{s_.length[n], whole(s_.micro[n]), whole(s_.iteration[n]), whole(s_.version[n])};
    const bool differs = is != expected;
    put(out, 4 * whole(s_.op[n]) + 2 * is_critical_[n] + (differs ? 1 : 0));
    put(out, whole(s_.gap[n]));
    if (differs) {
      put(out, whole(is.length));
      put(out, folded(is.micro - expected.micro));
      put(out, folded(is.iteration - expected.iteration));
      put(out, folded(is.version - expected.version));
    }
    expected = is;
    ++expected.micro;
  }

 private:
  struct Expected {
    std::int64_t length = 0;
    std::uint64_t micro = 0, iteration = 0, version = 0;
    bool operator==(const Expected&) const = default;
  };
  static std::uint64_t whole(std::int64_t number) { return static_cast<std::uint64_t>(number); }

  const HtmlSpans& s_;
  std::vector<std::uint8_t> is_critical_;
  std::vector<Expected> expected_;
};

/// Whole numbers without a point.
Json size_json(double bytes) {
  return bytes == std::floor(bytes) && std::abs(bytes) < kExact ? Json(static_cast<std::int64_t>(bytes)) : Json(bytes);
}

Json memory_json(const HtmlMemory& memory) {
  JsonArray states;
  std::map<std::pair<double, double>, std::size_t> numbers;
  std::string samples;
  for (std::size_t i = 0; i < memory.gap.size(); ++i) {
    const auto [at, fresh] = numbers.try_emplace({memory.stash[i], memory.messages[i]}, numbers.size());
    if (fresh) {
      states.push_back(size_json(memory.stash[i]));
      states.push_back(size_json(memory.messages[i]));
    }
    put(samples, static_cast<std::uint64_t>(memory.gap[i]));
    put(samples, at->second);
  }
  return JsonObject{{"samples", std::move(samples)}, {"states", std::move(states)}};
}

/// Digits: base 32, low first, A-Z a-f; as g-z 0-9 + / when another follows. A span is
///   4 op + 2 (is critical) + (is not as expected), then its gap, then where it is not as expected
///   its length and, less what is expected, micro-batch, iteration and version (2 n, or -2 n - 1 below zero).
/// Expected is what the span before with this op had, and the next micro-batch; zeros before the first.
/// A sample of memory is its gap and the number of its state.
std::vector<HtmlPart> html_parts(const HtmlSpans& spans, std::span<const HtmlMemory> by_device) {
  std::vector<HtmlPart> parts;
  SpanWriter writer(spans);
  std::size_t lane = 0, curve = 0, n = 0;
  while (lane < spans.lanes.size() || curve < by_device.size()) {
    HtmlPart part;
    std::string digits;
    JsonArray memory;
    for (std::int64_t size = 0; size < kPart && (lane < spans.lanes.size() || curve < by_device.size());) {
      const std::int64_t device = curve == by_device.size() || (lane < spans.lanes.size() &&
                                                                spans.lanes[lane].device <= by_device[curve].device)
                                      ? spans.lanes[lane].device
                                      : by_device[curve].device;
      for (; lane < spans.lanes.size() && spans.lanes[lane].device == device; ++lane, ++part.lanes) {
        size += spans.lanes[lane].spans;
        for (const std::size_t end = n + spans.lanes[lane].spans; n < end; ++n) writer.write(digits, n);
      }
      for (; curve < by_device.size() && by_device[curve].device == device; ++curve, ++part.curves) {
        size += static_cast<std::int64_t>(by_device[curve].gap.size());
        memory.push_back(memory_json(by_device[curve]));
      }
    }
    part.json = Json(JsonObject{{"spans", std::move(digits)}, {"memory", std::move(memory)}}).dump();
    parts.push_back(std::move(part));
  }
  return parts;
}

/// The stages of each device, by its number: what it computes, updates included.
void add_stages(Json& json, const HtmlSpans& spans, std::size_t devices) {
  std::vector<std::set<std::int64_t>> stages(devices);
  std::size_t n = 0;
  for (const HtmlLane& lane : spans.lanes)
    for (const std::size_t end = n + lane.spans; n < end; ++n)
      if (lane.kind == "compute") stages[lane.device].insert(spans.ops[spans.op[n]].stage);
  json["stages"] = JsonArray();
  for (const std::set<std::int64_t>& of_device : stages) {
    JsonArray list;
    for (const std::int64_t stage : of_device) list.push_back(stage);
    json["stages"].push_back(std::move(list));
  }
}

/// The part of memory.csv that the page needs at once.
Json memory_head(const HtmlMemory& m) {
  return JsonObject{{"device", m.device}, {"resident", m.resident}, {"peak", m.peak}, {"samples", m.gap.size()}};
}

/// The part of a run that is drawn, where that is not all: until when, and the devices that each device stands for.
Json drawn_json(const HtmlSpans& spans, const PageWindow& window) {
  JsonArray devices;
  for (const std::int64_t count : window.stands_for) devices.push_back(count);
  return JsonObject{{"until", spans.until}, {"stands_for", std::move(devices)}};
}

HtmlSpans spans_of(const KeptRun& run, const Json& results, const std::map<std::string, std::int64_t>& devices,
                   const PageWindow& window) {
  const auto length =
      static_cast<std::int64_t>(std::clamp(std::ceil(results.at("length_s").number() * 1e12), 0.0, 9e18));
  HtmlSpans spans = read_spans(run.spans, run.name + "/spans.csv", devices, window, length);
  if (const Json& said = results.at("instructions"); said != Json(spans.totals.spans()))
    throw InputError(
        {{{run.name + "/spans.csv", 0, 0},
          {},
          fmt::format("{} here, but {} in results.json",
                      pluralize(static_cast<std::int64_t>(spans.totals.spans()), "instruction"), said.dump()),
          "run the scenario again, into an empty folder",
          "not-a-run"}});
  return spans;
}

/// Drops all links but the busiest, which come first: a page shows 24 of them.
void keep_busiest_links(Json& results) {
  constexpr std::size_t kMostLinks = 2000;
  const Json* links = results.find("links");
  if (!links || links->items().size() <= kMostLinks) return;
  results["links"] = JsonArray(links->items().begin(), links->items().begin() + kMostLinks);
}

/// What the page needs at once. The rest, `most_spans` at most, is appended to `parts`.
Json run_json(const KeptRun& run, std::size_t most_spans, std::vector<std::string>& parts) {
  Json json = JsonObject{{"name", run.name},
                         {"results", read_results(run.results, run.name + "/results.json")},
                         {"scenario", run.scenario}};
  keep_busiest_links(json["results"]);
  std::map<std::string, std::int64_t> devices;
  JsonArray names;
  for (const Json& d : json["results"].at("devices").items()) {
    names.push_back(d.at("name"));
    devices.emplace(spreadsheet_text(d.at("name").text()), std::ssize(devices));  // As in the CSV files.
  }
  if (!names.empty()) json["devices"] = std::move(names);
  const std::size_t lines = std::count(run.spans.begin(), run.spans.end(), '\n');
  const PageWindow window = page_window(json["results"], devices, lines, most_spans);
  const HtmlSpans spans = spans_of(run, json["results"], devices, window);
  std::vector<HtmlMemory> memory = read_memory(run.memory, run.name + "/memory.csv", devices, window, spans.until);
  std::stable_sort(memory.begin(), memory.end(),
                   [](const HtmlMemory& a, const HtmlMemory& b) { return a.device < b.device; });
  json["length"] = spans.totals.length();
  json["iteration_ends"] = spans.totals.iteration_ends();
  json["overview"] = spans.totals.overview();
  if (!window.stands_for.empty()) json["drawn"] = drawn_json(spans, window);
  add_stages(json, spans, devices.size());
  json["ops"] = JsonArray();
  for (const HtmlOp& op : spans.ops)
    json["ops"].push_back(JsonObject{
        {"text", op.text}, {"after", op.after}, {"kind", op.kind}, {"stage", op.stage}, {"bytes", op.bytes}});
  json["lanes"] = JsonArray();
  for (const HtmlLane& lane : spans.lanes)
    json["lanes"].push_back(JsonObject{{"device", lane.device}, {"kind", lane.kind}, {"spans", lane.spans}});
  json["memory"] = JsonArray();
  for (const HtmlMemory& m : memory) json["memory"].push_back(memory_head(m));
  json["parts"] = JsonArray();
  for (HtmlPart& part : html_parts(spans, memory)) {
    json["parts"].push_back(JsonObject{{"lanes", part.lanes}, {"memory", part.curves}});
    parts.push_back(std::move(part.json));
  }
  return json;
}

}  // namespace

Json page_data(std::span<const KeptRun> runs, std::vector<std::string>& parts, std::size_t most_spans) {
  JsonArray shown;
  for (const KeptRun& run : runs) try {
      shown.push_back(run_json(run, most_spans / runs.size(), parts));
    } catch (const JsonError& e) {
      throw InputError(fmt::format("{}/results.json lacks what the page shows: {}", run.name, e.what()),
                       "run the scenario again");
    }
  JsonArray described;
  for (const Metric& m : metrics()) described.push_back(page_json(m));
  JsonArray kinds;
  for (InstructionKind kind{}; kind < InstructionKind::Send; kind = next_kind(kind))
    kinds.push_back(JsonObject{{"key", std::string(label(kind).key)}, {"name", std::string(label(kind).meaning)}});
  return JsonObject{
      {"schema", "page/1"}, {"metrics", std::move(described)}, {"kinds", std::move(kinds)}, {"runs", std::move(shown)}};
}

std::string html_page(std::span<const KeptRun> runs, const std::string& title, std::size_t most_spans) {
  std::vector<std::string> parts;
  const std::string data = page_data(runs, parts, most_spans).dump();
  return html_page(html::runs, title, data, parts);
}

}  // namespace stagecraft
