#include "sim/report/html.hpp"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "sim/core/diagnostic.hpp"
#include "sim/core/json.hpp"
#include "sim/report/html_data.hpp"
#include "sim/report/html_page.hpp"
#include "sim/report/html_parts.hpp"

namespace stagecraft {
namespace {

/// Browsers were seen to draw this number of spans without trouble, from a page of 15 MB.
constexpr std::size_t kMostSpans = 1'000'000;

Json results_of(const KeptRun& run) {
  std::optional<Json> results = Json::parse(run.results);
  const Json* schema = results ? results->find("schema") : nullptr;
  if (!schema || *schema != "results/1")
    throw InputError({{{run.name + "/results.json", 0, 0},
                       {},
                       "these are not the results of a run",
                       "give the folder that stagecraft run --out wrote",
                       "not-results"}});
  return *std::move(results);
}

/// The end of the run, and of each iteration in their order.
void add_ends(Json& json, const HtmlSpans& spans) {
  std::map<std::int64_t, std::int64_t> ends;
  std::int64_t length = 0;
  std::size_t n = 0;
  for (const HtmlLane& lane : spans.lanes) {
    std::int64_t time = 0;
    for (const std::size_t end_of_lane = n + lane.spans; n < end_of_lane; ++n) {
      time += spans.gap[n] + spans.length[n];
      std::int64_t& end = ends[spans.iteration[n]];
      end = std::max(end, time);
      length = std::max(length, time);
    }
  }
  json["length"] = length;
  json["iteration_ends"] = JsonArray();
  for (const auto& iteration : ends) json["iteration_ends"].push_back(iteration.second);
}

/// The part of memory.csv that the page needs at once.
Json memory_head(const HtmlMemory& m) {
  double peak = m.resident;
  for (std::size_t i = 0; i < m.gap.size(); ++i) peak = std::max(peak, m.resident + m.stash[i] + m.messages[i]);
  return JsonObject{{"device", m.device}, {"resident", m.resident}, {"peak", peak}, {"samples", m.gap.size()}};
}

HtmlSpans spans_of(const KeptRun& run, const Json& results, const std::map<std::string, std::int64_t>& devices,
                   std::size_t& all) {
  HtmlSpans spans = read_spans(run.spans, run.name + "/spans.csv", devices);
  if (const Json& said = results.at("instructions"); said != Json(spans.gap.size()))
    throw InputError(
        {{{run.name + "/spans.csv", 0, 0},
          {},
          fmt::format("there are {} instructions here, but {} in results.json", spans.gap.size(), said.dump()),
          "run the scenario again, into an empty folder",
          "not-a-run"}});
  all += spans.gap.size();
  check_page_size(all);
  return spans;
}

/// What the page needs at once. The rest is appended to `parts`.
Json run_json(const KeptRun& run, std::size_t& all, std::vector<std::string>& parts) {
  Json json = JsonObject{{"name", run.name}, {"results", results_of(run)}, {"scenario", run.scenario}};
  std::map<std::string, std::int64_t> devices;
  JsonArray names;
  for (const Json& d : json["results"].at("devices").items()) {
    names.push_back(d.at("name"));
    devices.emplace(d.at("name").text(), std::ssize(devices));
  }
  if (!names.empty()) json["devices"] = std::move(names);
  const HtmlSpans spans = spans_of(run, json["results"], devices, all);
  std::vector<HtmlMemory> memory = read_memory(run.memory, run.name + "/memory.csv", devices);
  std::stable_sort(memory.begin(), memory.end(),
                   [](const HtmlMemory& a, const HtmlMemory& b) { return a.device < b.device; });
  add_ends(json, spans);
  json["ops"] = JsonArray();
  for (const HtmlOp& op : spans.ops)
    json["ops"].push_back(JsonObject{{"text", op.text}, {"kind", op.kind}, {"stage", op.stage}, {"bytes", op.bytes}});
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

void check_page_size(std::size_t instructions) {
  if (instructions > kMostSpans)
    throw Infeasible(
        "page-size",
        fmt::format("a page of {} instructions is too large: at most {} are drawn", instructions, kMostSpans),
        "fewer runs, or --set run.iterations=2");
}

std::string html_page(std::span<const KeptRun> runs, const std::string& title) {
  JsonArray shown;
  std::size_t all = 0;
  std::vector<std::string> parts;
  for (const KeptRun& run : runs) try {
      shown.push_back(run_json(run, all, parts));
    } catch (const JsonError& e) {
      throw InputError(fmt::format("{}/results.json lacks what the page shows: {}", run.name, e.what()),
                       "run the scenario again");
    }
  const Json data = JsonObject{{"schema", "page/1"}, {"runs", std::move(shown)}};
  return html_page(html::runs, title, data.dump(), parts);
}

}  // namespace stagecraft
