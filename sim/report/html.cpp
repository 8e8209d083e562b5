#include "sim/report/html.hpp"

#include <cmath>
#include <map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "sim/core/diagnostic.hpp"
#include "sim/report/html_assets.hpp"
#include "sim/report/html_data.hpp"
#include "sim/report/html_page.hpp"

namespace stagecraft {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kExact = 0x1p53;
/// As many a browser was seen to draw without trouble, from a page of 60 MB.
constexpr std::size_t kMostSpans = 1'000'000;

/// Whole numbers without a point.
Json sizes(const std::vector<double>& values) {
  Json list = Json::array();
  for (const double v : values) {
    if (v == std::floor(v) && std::abs(v) < kExact)
      list.push_back(static_cast<std::int64_t>(v));
    else
      list.push_back(v);
  }
  return list;
}

Json spans_json(const HtmlSpans& s) {
  return {{"gap", s.gap},     {"length", s.length},       {"op", s.op},
          {"micro", s.micro}, {"iteration", s.iteration}, {"version", s.version}};
}

Json results_of(const KeptRun& run) {
  Json results = Json::parse(run.results, nullptr, false);
  if (!results.is_object() || results.value("schema", Json()) != "results/1")
    throw InputError({{{run.name + "/results.json", 0, 0},
                       {},
                       "these are not the results of a run",
                       "give the folder that stagecraft run --out wrote",
                       "not-results"}});
  return results;
}

Json run_json(const KeptRun& run, std::size_t& left) {
  Json json{{"name", run.name}, {"results", results_of(run)}, {"scenario", run.scenario}};
  std::map<std::string, std::int64_t> devices;
  for (const Json& d : json["results"].at("devices")) {
    json["devices"].push_back(d.at("name"));
    devices.emplace(d.at("name").get<std::string>(), static_cast<std::int64_t>(devices.size()));
  }
  const HtmlSpans spans = read_spans(run.spans, run.name + "/spans.csv", devices);
  if (const Json& said = json["results"].at("instructions"); said != spans.gap.size())
    throw InputError(
        {{{run.name + "/spans.csv", 0, 0},
          {},
          fmt::format("there are {} instructions here, but {} in results.json", spans.gap.size(), said.dump()),
          "run the scenario again, into an empty folder",
          "not-a-run"}});
  if (spans.gap.size() > left)
    throw Infeasible("page-size", fmt::format("a page with more than {} instructions would be too large", kMostSpans),
                     "fewer runs, or --set run.iterations=2");
  left -= spans.gap.size();
  json["ops"] = Json::array();
  for (const HtmlOp& op : spans.ops)
    json["ops"].push_back({{"text", op.text}, {"kind", op.kind}, {"stage", op.stage}, {"bytes", op.bytes}});
  json["lanes"] = Json::array();
  for (const HtmlLane& lane : spans.lanes)
    json["lanes"].push_back({{"device", lane.device}, {"kind", lane.kind}, {"spans", lane.spans}});
  json["spans"] = spans_json(spans);
  json["critical"] = spans.critical;
  json["memory"] = Json::array();
  for (const HtmlMemory& m : read_memory(run.memory, run.name + "/memory.csv", devices))
    json["memory"].push_back({{"device", m.device},
                              {"resident", m.resident},
                              {"gap", m.gap},
                              {"stash", sizes(m.stash)},
                              {"messages", sizes(m.messages)}});
  return json;
}

}  // namespace

std::string html_page(std::span<const KeptRun> runs, const std::string& title) {
  Json data{{"schema", "page/1"}, {"runs", Json::array()}};
  std::size_t left = kMostSpans;
  for (const KeptRun& run : runs) try {
      data["runs"].push_back(run_json(run, left));
    } catch (const Json::exception& e) {
      throw InputError(fmt::format("{}/results.json lacks what the page shows: {}", run.name, e.what()),
                       "run the scenario again");
    }
  return html_page(html::runs, title, data.dump(-1, ' ', false, Json::error_handler_t::replace));
}

}  // namespace stagecraft
