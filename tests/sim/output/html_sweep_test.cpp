// The page of a sweep has the settings and results of its points, and no name can become markup.

#include "sim/output/html_page.hpp"

#include <doctest/doctest.h>

#include <limits>
#include <nlohmann/json.hpp>

namespace stagecraft::html_sweep_test {
using ParsedJson = nlohmann::json;

namespace {

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

SweepPage three_points() {
  SweepPage page{.title = "a </title><b> & \"c\"",
                 .name = "s",
                 .backend = "ideal",
                 .version = "1",
                 .base = "b.yaml",
                 .has_base = true,
                 .folder = "s-ideal",
                 .out = "out/s-ideal",
                 .figures = {"period_s", "final_loss"},
                 .points = {}};
  page.points = {
      {.number = 1, .settings = R"({"n": 8, "s": "1f1b"})", .status = "ok", .key = "k1", .figures = {0.5, kUnknown}},
      {.number = 2, .settings = R"({"n": 4, "s": {"name": "</script>"}})", .status = "crash", .message = "\xff<!--"},
      {.number = 4, .settings = R"({"n": 8})", .key = "k4", .has_report = true},
  };
  return page;
}

ParsedJson data_of(const std::string& page) {
  const std::string begin = "id=\"data\">", end = "</script>";
  const auto from = page.find(begin) + begin.size();
  return ParsedJson::parse(page.substr(from, page.find(end, from) - from));
}

}  // namespace

TEST_CASE("settings are columns of different values, empty where the base holds") {
  const ParsedJson data = data_of(sweep_html(three_points()));
  CHECK(data["schema"] == "sweep-page/1");
  CHECK(data["number"] == ParsedJson({1, 2, 4}));
  REQUIRE(data["axes"].size() == 2);
  CHECK(data["axes"][0] == ParsedJson({{"path", "n"}, {"values", {8, 4}}, {"of", {0, 1, 0}}}));
  CHECK(data["axes"][1]["values"][1]["name"] == "</script>");
  CHECK(data["axes"][1]["of"] == ParsedJson({0, 1, -1}));
}

TEST_CASE("metrics are numbers where a point has them, and the outcome of the others is stated once") {
  const ParsedJson data = data_of(sweep_html(three_points()));
  CHECK(data["figures"][0]["name"] == "period_s");
  CHECK(data["figures"][0]["title"] == "iteration time");
  CHECK(data["figures"][0]["values"] == ParsedJson({0.5, nullptr, nullptr}));
  CHECK(data["figures"][1]["values"] == ParsedJson({nullptr, nullptr, nullptr}));
  CHECK(data["ends"]["of"] == ParsedJson({0, 1, -1}));
  CHECK(data["ends"]["values"][1] == ParsedJson({{"status", "crash"}, {"code", ""}, {"message", "\uFFFD<!--"}}));
  CHECK(data["kept"] == ParsedJson({2}));
}

TEST_CASE("no name can end the data or the title") {
  const std::string page = sweep_html(three_points());
  CHECK(page.find("<b>") == page.npos);
  CHECK(page.find("<title>a &lt;/title&gt;&lt;b&gt; &amp; &quot;c&quot;</title>") != page.npos);
  const auto data = page.find("id=\"data\">");
  CHECK(page.find("<!--", data) == page.npos);
  CHECK(page.find("{{") == page.npos);
}

}  // namespace stagecraft::html_sweep_test
