// Fills the HTML pages of tools/report with data, style and script under a Content-Security-Policy that permits nothing
// else, and gathers the data of the page of a sweep.

#include "sim/output/html_page.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/core.h>

#include "sim/core/json.hpp"
#include "sim/core/sha256.hpp"
#include "sim/core/text.hpp"
#include "sim/result/metrics.hpp"

namespace stagecraft {
namespace {

/// Text between script tags: no name can end it, begin a comment, or reverse the direction of writing.
std::string json_block(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (const char c : replace_unprintable(text)) {
    if (c == '<')
      out += "\\u003c";
    else
      out += c;
  }
  return out;
}

/// What a Content-Security-Policy calls a script or style.
std::string fingerprint(std::string_view text) {
  constexpr const char* kBase64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const std::string hex = sha256(text) + "00";  // 256 bits and two more, in 43 digits of six bits
  std::string out;
  for (std::size_t i = 0; i + 3 <= hex.size(); i += 3) {
    const auto bits = std::stoul(hex.substr(i, 3), nullptr, 16);
    out += kBase64[bits >> 6];
    out += kBase64[bits & 63];
  }
  return "'sha256-" + out.substr(0, 43) + "='";
}

std::string policy(const html::Source& source) {
  return fmt::format("default-src 'none'; base-uri 'none'; form-action 'none'; style-src {}; script-src {}",
                     fingerprint(source.style), fingerprint(source.script));
}

/// The page with what its places {{name}} stand for.
std::string filled(std::string_view page, const std::map<std::string_view, std::string>& places) {
  std::string out;
  for (auto open = page.find("{{"); open != page.npos; open = page.find("{{")) {
    const auto close = page.find("}}", open);
    out += page.substr(0, open);
    out += places.at(page.substr(open + 2, close - open - 2));
    page.remove_prefix(close + 2);
  }
  return out += page;
}

}  // namespace

std::string html_page(const html::Source& source, const std::string& title, std::string_view json,
                      std::span<const std::string> parts, const std::string& picture, const std::string& more_policy) {
  std::string blocks;
  for (std::size_t k = 0; k < parts.size(); ++k)
    blocks += fmt::format("<script type=\"application/json\" id=\"part{}\">{}</script>\n", k, json_block(parts[k]));
  return filled(source.page, {{"policy", policy(source) + more_policy},
                              {"title", xml_escape(title)},
                              {"style", std::string(source.style)},
                              {"data", json_block(json)},
                              {"parts", std::move(blocks)},
                              {"picture", picture},
                              {"script", std::string(source.script)}});
}

std::string html_content_page(const html::Source& source, const std::string& title, const std::string& content) {
  return filled(source.page, {{"policy", policy(source)},
                              {"title", xml_escape(title)},
                              {"style", std::string(source.style)},
                              {"content", content},
                              {"script", std::string(source.script)}});
}

namespace {

/// Each different value once, in the order in which they come, and the number of one for each point: -1 where there is
/// none. A page of many points that vary little stays small.
struct DistinctValues {
  JsonArray values;
  std::vector<int> value_of;
  std::map<std::string, int> index;

  explicit DistinctValues(std::size_t points) : value_of(points, -1) {}

  void put(std::size_t point, const Json& value) {
    const auto [at, fresh] = index.try_emplace(value.dump(), static_cast<int>(values.size()));
    if (fresh) values.push_back(value);
    value_of[point] = at->second;
  }
};

Json axes_json(const SweepPage& page) {
  const std::vector<SweepPoint>& points = page.points;
  std::vector<std::pair<std::string, DistinctValues>> axes;
  for (std::size_t i = 0; i < points.size(); ++i) {
    const Json settings = Json::parse(points[i].settings).value();
    for (const JsonMember& setting : settings.members()) {
      auto axis = std::find_if(axes.begin(), axes.end(), [&](const auto& a) { return a.first == setting.key; });
      if (axis == axes.end()) axis = axes.insert(axis, {setting.key, DistinctValues(points.size())});
      axis->second.put(i, setting.value);
    }
  }
  JsonArray json;
  for (const auto& axis : axes) {
    json.push_back(JsonObject{{"path", axis.first}, {"values", axis.second.values}, {"of", axis.second.value_of}});
    if (const auto labels = page.labels.find(axis.first); labels != page.labels.end())
      for (const Json& value : axis.second.values) {
        const auto label = labels->second.find(value.dump());
        json.back()["labels"].push_back(label == labels->second.end() ? Json() : Json(label->second));
      }
    const auto& paths = page.device_paths;
    if (std::find(paths.begin(), paths.end(), axis.first) != paths.end()) json.back()["sets_devices"] = true;
  }
  return json;
}

Json ends_json(const std::vector<SweepPoint>& points) {
  DistinctValues ends(points.size());
  for (std::size_t i = 0; i < points.size(); ++i) {
    const SweepPoint& p = points[i];
    if (!p.status.empty()) ends.put(i, JsonObject{{"status", p.status}, {"code", p.code}, {"message", p.message}});
  }
  return JsonObject{{"values", ends.values}, {"of", ends.value_of}};
}

Json figures_json(const SweepPage& page) {
  JsonArray json;
  for (std::size_t f = 0; f < page.figures.size(); ++f) {
    JsonArray values;
    for (const SweepPoint& p : page.points) {
      const bool has_value = p.status == "ok" && f < p.figures.size() && std::isfinite(p.figures[f]);
      values.push_back(has_value ? Json(p.figures[f]) : Json());
    }
    json.push_back(page_json(metrics()[metric(page.figures[f])]));
    json.back()["values"] = std::move(values);
  }
  return json;
}

}  // namespace

std::string sweep_html(const SweepPage& page) {
  Json json = JsonObject{{"schema", "sweep-page/1"}, {"title", page.title},     {"name", page.name},
                         {"backend", page.backend},  {"version", page.version}, {"base", page.base},
                         {"found", page.has_base},   {"folder", page.folder},   {"out", page.out},
                         {"number", JsonArray()},    {"key", JsonArray()},      {"kept", JsonArray()}};
  for (std::size_t i = 0; i < page.points.size(); ++i) {
    json["number"].push_back(page.points[i].number);
    json["key"].push_back(page.points[i].key);
    if (page.points[i].has_report) json["kept"].push_back(i);
  }
  json["axes"] = axes_json(page);
  json["ends"] = ends_json(page.points);
  json["figures"] = figures_json(page);
  return html_page(html::sweep, page.title, json.dump());
}

}  // namespace stagecraft
