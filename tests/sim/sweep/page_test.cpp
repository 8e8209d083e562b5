// The page of a sweep has the settings and results of its points, and no name can become markup.

#include <doctest/doctest.h>

#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>

#include "sim/result/metrics.hpp"
#include "sim/sweep/table.hpp"
#include "tests/sim/sweep/files.hpp"

namespace stagecraft::page_test {
using ParsedJson = nlohmann::json;

namespace {

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

/// A point without a figure but, in the first one, its period.
SweepRow point(int number, const char* settings, const char* status, const char* hash, const char* message = "") {
  SweepRow row{.number = number,
               .label = {},
               .settings = settings,
               .status = status,
               .code = {},
               .message = message,
               .hash = hash,
               .figures = std::vector<double>(metrics().size(), kUnknown)};
  if (row.status == "ok") row.figures[metric("period_s")] = 0.5;
  return row;
}

SweepTable three_points() {
  return {.title = "a </title><b> & \"c\"",
          .backend = "ideal",
          .name = "s",
          .version = "1",
          .text = "base: b.yaml\n",
          .rows = {point(1, R"({"n": 8, "s": "1f1b"})", "ok", "0123456789abcdef"),
                   point(2, R"({"n": 4, "s": {"name": "</script>"}})", "crash", "", "\xff<!--"),
                   point(4, R"({"n": 8})", "", "fedcba9876543210")}};
}

std::string page_of_three(const std::string& file = "out/page.html") { return sweep_html(three_points(), {}, file); }

ParsedJson data_of(const std::string& page) {
  const std::string begin = "id=\"data\">", end = "</script>";
  const auto from = page.find(begin) + begin.size();
  return ParsedJson::parse(page.substr(from, page.find(end, from) - from));
}

}  // namespace

TEST_CASE("settings are columns of different values, empty where the base holds") {
  const ParsedJson data = data_of(page_of_three());
  CHECK(data["schema"] == "sweep-page/1");
  CHECK(data["number"] == ParsedJson({1, 2, 4}));
  REQUIRE(data["axes"].size() == 2);
  CHECK(data["axes"][0] == ParsedJson({{"path", "n"}, {"values", {8, 4}}, {"of", {0, 1, 0}}}));
  CHECK(data["axes"][1]["values"][1]["name"] == "</script>");
  CHECK(data["axes"][1]["of"] == ParsedJson({0, 1, -1}));
}

TEST_CASE("metrics are numbers where a point has them, and the outcome of the others is stated once") {
  const ParsedJson data = data_of(page_of_three());
  const ParsedJson &period = data["figures"][metric("period_s")], &loss = data["figures"][metric("final_loss")];
  CHECK(period["name"] == "period_s");
  CHECK(period["title"] == "iteration time");
  CHECK(period["values"] == ParsedJson({0.5, nullptr, nullptr}));
  CHECK(loss["values"] == ParsedJson({nullptr, nullptr, nullptr}));
  CHECK(data["ends"]["of"] == ParsedJson({0, 1, -1}));
  CHECK(data["ends"]["values"][1] == ParsedJson({{"status", "crash"}, {"code", ""}, {"message", "\uFFFD<!--"}}));
}

TEST_CASE("a point whose run has a page links to it, and the scenario is named as the sweep names it") {
  const test::Folder folder;
  std::filesystem::create_directories(folder / "s-ideal/fedcba987654");
  test::write_file(folder / "s-ideal/fedcba987654/report.html", "");
  const ParsedJson data = data_of(page_of_three(folder / "page.html"));
  CHECK(data["kept"] == ParsedJson({2}));
  CHECK(data["key"] == ParsedJson({"0123456789ab", "", "fedcba987654"}));
  CHECK(data["out"] == folder / "s-ideal");
  CHECK(data["base"] == "b.yaml");
  CHECK(data["found"] == false);
}

TEST_CASE("no name can end the data or the title") {
  const std::string page = page_of_three();
  CHECK(page.find("<b>") == page.npos);
  CHECK(page.find("<title>a &lt;/title&gt;&lt;b&gt; &amp; &quot;c&quot;</title>") != page.npos);
  const auto data = page.find("id=\"data\">");
  CHECK(page.find("<!--", data) == page.npos);
  CHECK(page.find("{{") == page.npos);
}

}  // namespace stagecraft::page_test
