// A picture says the same as SVG and as PDF, a PDF file is well-formed, and axes have round ticks.

#include "sim/output/picture.hpp"

#include <doctest/doctest.h>
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "sim/core/diagnostic.hpp"
#include "sim/core/random.hpp"
#include "sim/output/chart.hpp"
#include "sim/output/fonts.hpp"
#include "sim/output/timeline_picture.hpp"
#include "tests/support/ideal.hpp"
#include "tests/support/random_cases.hpp"

namespace stagecraft::picture_test {
namespace {

std::size_t count(std::string_view text, std::string_view word) {
  std::size_t matches = 0;
  for (auto at = text.find(word); at != text.npos; at = text.find(word, at + word.size())) ++matches;
  return matches;
}

Picture every_item() {
  return {"A (title) with \\ and </svg>",
          200,
          100,
          {Box{10, 20, 30, 40, "#ff8000", "tip & more"}, Polyline{{{0, 0}, {50, 25}, {100, 0}}, "#000000", 0.5, {3, 2}},
           Mark{{5, 5}, 2, "#3a78bd"}, Mark{{15, 5}, 2, "#3a78bd", MarkShape::Square},
           Mark{{25, 5}, 2, "#3a78bd", MarkShape::Triangle}, Mark{{35, 5}, 2, "#3a78bd", MarkShape::Diamond},
           Label{{100, 50}, "(f\\b) \u00d74 <&>", 10, Anchor::Middle},
           Label{{10, 90}, "up", 10, Anchor::End, "#18202a", true, true}}};
}

/// The objects of a PDF file by the offsets of its table; checks the table on the way (PDF Reference 1.4, 3.4).
std::vector<std::string> pdf_objects(const std::string& file) {
  const auto number_after = [&](std::string_view word, std::size_t from) {
    const std::size_t at = file.find(word, from);
    REQUIRE(at != file.npos);
    return std::stoul(file.substr(at + word.size()));
  };
  REQUIRE(file.starts_with("%PDF-1.4\n"));
  REQUIRE(file.ends_with("%%EOF\n"));
  const std::size_t table = number_after("startxref\n", 0);
  REQUIRE(file.substr(table, 7) == "xref\n0 ");
  const std::size_t entries = number_after("xref\n0 ", table);
  CHECK(number_after("/Size ", table) == entries);
  std::size_t at = file.find('\n', table + 5) + 1;
  std::vector<std::string> objects;
  for (std::size_t n = 0; n < entries; ++n, at += 20) {
    const std::string entry = file.substr(at, 20);
    REQUIRE(entry.size() == 20);
    CHECK(entry.substr(10, 1) == " ");
    CHECK(entry.substr(16) == std::string(n == 0 ? "f" : "n").insert(0, " ").append(" \n"));
    if (n == 0) continue;
    const std::size_t offset = std::stoul(entry.substr(0, 10));
    const std::string head = fmt::format("{} 0 obj\n", n);
    REQUIRE(file.substr(offset, head.size()) == head);
    const std::size_t end = file.find("\nendobj\n", offset);
    REQUIRE(end != file.npos);
    objects.push_back(file.substr(offset + head.size(), end - offset - head.size()));
  }
  CHECK(file.substr(at, 8) == "trailer\n");
  return objects;
}

/// The content of the one page, whose length has to be as written.
std::string pdf_content(const std::string& file) {
  const std::vector<std::string> objects = pdf_objects(file);
  const std::string& stream = objects.at(3);
  const std::size_t start = stream.find("stream\n") + 7, end = stream.rfind("endstream");
  CHECK(std::stoul(stream.substr(stream.find("/Length ") + 8)) == end - start);
  return stream.substr(start, end - start);
}

}  // namespace

TEST_CASE("a PDF file has its objects at the offsets of its table, and its stream is as long as it says") {
  const PdfFile pdf = to_pdf(every_item());
  const std::vector<std::string> objects = pdf_objects(pdf.bytes);
  REQUIRE(objects.size() == (pdf.embeds_fonts ? 11 : 7));
  CHECK(objects[2].find("/MediaBox [0 0 200 100]") != std::string::npos);
  for (const std::size_t font : {4, 5}) {
    CHECK(objects[font].find(" /Encoding /WinAnsiEncoding /FirstChar 32 /LastChar 255 /Widths [") != std::string::npos);
    CHECK((objects[font].find("/BaseFont /Helvetica") == std::string::npos) == pdf.embeds_fonts);
  }
  CHECK(objects[6].find("/Title (A \\(title\\) with \\\\ and </svg>)") != std::string::npos);
  const std::string content = pdf_content(pdf.bytes);
  // y counts upward: the box from 20 to 60 below the top begins 40 above the bottom of 100.
  CHECK(content.find("1 0.502 0 rg 10 40 30 40 re f\n") != std::string::npos);
  CHECK(content.find("[3 2] 0 d 0 100 m 50 75 l 100 100 l S\n") != std::string::npos);
  CHECK(content.find("(\\(f\\\\b\\) \xD7"
                     "4 <&>) Tj") != std::string::npos);
  CHECK(count(content, " c f\n") == 1);
  CHECK(count(content, "h f\n") == 3);
  CHECK(count(content, "BT ") == count(content, " ET\n"));
  CHECK(pdf.replaced == 0);
}

TEST_CASE("a PDF file embeds the characters that it has, with the widths of its font") {
  const Picture picture{"", 100, 100, {Label{{50, 50}, "Hi \u00e9", 10, Anchor::Start}}};
  const PdfFile pdf = to_pdf(picture);
  if (!pdf.embeds_fonts) return;  // This build found no font.
  const std::vector<std::string> objects = pdf_objects(pdf.bytes);
  CHECK(objects[7].find("/FontFile2 9 0 R") != std::string::npos);
  const std::string& file = objects[8];
  const std::size_t begin = file.find("stream\n") + 7, end = file.rfind("\nendstream");
  CHECK(std::stoul(file.substr(file.find("/Length1 ") + 9)) == end - begin);
  const FontSubset font = font_subset(file.substr(begin, end - begin), U"Hi \u00e9");  // The file is a font again.
  CHECK(font.metrics.widths.at(U'H') > font.metrics.widths.at(U'i'));
  CHECK(objects[4].find(fmt::format("/Widths [{} 0 0", font.metrics.widths.at(U' '))) != std::string::npos);
  CHECK(font_subset(file.substr(begin, end - begin), U"x").metrics.widths.at(U'x') ==
        font_subset(file.substr(begin, end - begin), U"y").metrics.widths.at(U'y'));  // It has neither.
  // Text is as wide as in Helvetica, in which pictures are laid out.
  int natural = 0;
  for (const char32_t c : U"Hi \u00e9")
    if (c != 0) natural += font.metrics.widths.at(c);
  const double scale = 100 * text_width("Hi \u00e9", 1000) / natural;
  CHECK(pdf_content(pdf.bytes).find(fmt::format("{:g} Tz", std::round(100 * scale) / 100)) != std::string::npos);
}

TEST_CASE("what is no font is refused") {
  for (const std::string& file : {std::string(), std::string("no font"), std::string(200, '\xff')})
    CHECK_THROWS_AS(font_subset(file, U"a"), InputError);
}

TEST_CASE("text is centered and turned by its width in Helvetica") {
  // Adobe's metrics of Helvetica, thousandths: H 722, e 556, l 222, v 500, t 278, i 222, c 500, a 556.
  CHECK(text_width("Helvetica", 1000) == doctest::Approx(722 + 556 + 222 + 500 + 556 + 278 + 222 + 500 + 556));
  CHECK(text_width("W", 10, true) == doctest::Approx(9.44));
  CHECK(text_width("\u00e9\u00d7", 1000) == doctest::Approx(556 + 584));
  Picture picture{"",
                  100,
                  100,
                  {Label{{50, 50}, "Helvetica", 10, Anchor::Middle},
                   Label{{50, 50}, "II", 10, Anchor::End, "#000000", false, true}}};
  const std::string content = pdf_content(to_pdf(picture).bytes);
  CHECK(content.find(fmt::format("1 0 0 1 {:g} 50 Tm (Helvetica)", std::round(100 * (50 - 41.12 / 2)) / 100)) !=
        std::string::npos);
  // An end anchor of text that reads upward lies below: 2 * 2.78 points.
  CHECK(content.find("0 1 -1 0 50 44.44 Tm (II)") != std::string::npos);
}

TEST_CASE("characters that the fonts of PDF lack are counted and printed as question marks") {
  const Picture picture{"", 100, 100, {Label{{0, 10}, "\u65e5\u672c \u00fc\u2013\u202e.\xff", 10}}};
  const PdfFile pdf = to_pdf(picture);
  CHECK(pdf.replaced == 4);
  CHECK(pdf_content(pdf.bytes).find("(?? \xFC\x96?.?) Tj") != std::string::npos);
}

TEST_CASE("SVG and PDF have the same items, and names are no markup") {
  const std::string svg = to_svg(every_item()), content = pdf_content(to_pdf(every_item()).bytes);
  CHECK(count(svg, "<rect ") == count(content, " re f\n") + 1);  // and the background
  CHECK(count(svg, "<polyline ") == count(content, " S\n"));
  CHECK(count(svg, "<polygon ") == count(content, "h f\n"));
  CHECK(count(svg, "<text ") == count(content, " Tj "));
  CHECK(svg.find("<title>A (title) with \\ and &lt;/svg&gt;</title>") != std::string::npos);
  CHECK(svg.find("<title>tip &amp; more</title></rect>") != std::string::npos);
  CHECK(count(svg, "</svg>") == 1);
  CHECK(svg.find("(f\\b) \u00d74 &lt;&amp;&gt;</text>") != std::string::npos);
}

TEST_CASE("ticks are 1, 2 or 5 times a power of ten, inside the range and not more than asked for") {
  test::Draw draw{Rng(5, "ticks")};
  for (int trial = 0; trial < 500; ++trial) {
    const double unit = std::pow(10, draw(-9, 9)), low = unit * draw(-1000, 1000),
                 high = low + unit * draw(1, 9999) / 10;
    const int max_ticks = draw(2, 12);
    const std::vector<double> ticks = round_ticks(low, high, max_ticks);
    CAPTURE(low);
    CAPTURE(high);
    CHECK(std::ssize(ticks) <= max_ticks);
    for (const double tick : ticks) CHECK((tick >= low - 1e-9 * (high - low) && tick <= high + 1e-9 * (high - low)));
    if (ticks.size() < 2) continue;
    const double step = ticks[1] - ticks[0], power = std::pow(10, std::floor(std::log10(step * (1 + 1e-9))));
    const double first = step / power;
    CHECK((std::abs(first - 1) < 1e-6 || std::abs(first - 2) < 1e-6 || std::abs(first - 5) < 1e-6));
  }
  CHECK(round_ticks(0, 10, 6) == std::vector<double>{0, 2, 4, 6, 8, 10});
  CHECK(round_ticks(1, 1, 6).empty());
  CHECK(tick_text(0.30000000000000004, 0.1) == "0.3");
  CHECK(tick_text(-0.0, 1) == "0");
  CHECK(tick_text(2.5, 0.5) == "2.5");
}

TEST_CASE("text that is too wide keeps its start and end, and no character is cut") {
  CHECK(fitted_text("short", 10, 100) == "short");
  for (const std::string text :
       {"pod0.node12.gpu3.and.more", "\u00fc\u00fc\u00fc\u00fc\u00fc\u00fc\u00fc\u00fc\u00fc\u00fc"})
    for (double width = 20; width < text_width(text, 10); width += 1.7) {
      const std::string fitted = fitted_text(text, 10, width);
      CHECK(text_width(fitted, 10) <= width);
      CHECK(fitted.find("...") != std::string::npos);
      CHECK(fitted.find("\xbc\xbc") == std::string::npos);
    }
}

TEST_CASE("a timeline has a box for each op that takes time, a legend, and one row for equal devices") {
  const Plan plan = test::dag_plan(2, 1, {{0, 1}}, 4);
  const Program program = test::program_of("1f1b", plan, uniform_costs(plan, test::times(1, 2)));
  const Cluster cluster = test::star(2, 1, 0);
  const Timeline timeline = test::run_ideal(program, cluster);
  const std::string svg = to_svg(timeline_picture(program, timeline, cluster, "title", kColumnPicture));
  std::size_t ops = 0, forwards = 0;
  for (const InstructionId n : program.instructions.ids())
    forwards += program.at(n).kind == InstructionKind::Forward,
        ops += program.at(n).is_compute() && timeline.end[n] > timeline.start[n];
  REQUIRE(forwards > 0);
  CHECK(count(svg, "<title>0F") + count(svg, "<title>1F") == forwards);
  CHECK(count(svg, "</rect>") >= ops);
  for (const char* once : {">forward<", ">backward<", ">title</text>"}) CHECK(count(svg, once) == 1);
  CHECK(svg.find(R"(width="239.76pt")") != std::string::npos);
  CHECK(svg.find("\u00d7") == std::string::npos);
}

TEST_CASE("a chart has round ticks, a legend, the limit, and no item outside of it") {
  Chart chart{.title = "Two lines",
              .x = {"bandwidth", {"1 GB/s", "2 GB/s", "4 GB/s"}},
              .y = {"throughput, samples/s"},
              .series = {}};
  chart.series.push_back({"1f1b", SeriesStyle::Joined, {{0, 10}, {1, 20}, {2, 37}}});
  chart.series.push_back({"gpipe", SeriesStyle::Joined, {{0, 12}, {2, 30}}, {"low", "high"}});
  chart.limit = 40;
  chart.limit_text = "limit";
  for (const PictureSize& size : {kColumnPicture, kPagePicture, kScreenPicture}) {
    const Picture picture = chart_picture(chart, size);
    CHECK(picture.width == size.width);
    const std::string svg = to_svg(picture);
    for (const char* once :
         {">1f1b<", ">gpipe<", ">limit<", ">2 GB/s<", ">40<", ">20<", ">high<", ">throughput, samples/s<"})
      CHECK_MESSAGE(count(svg, once) == 1, once);
    for (const PictureItem& item : picture.items)
      if (const Label* label = std::get_if<Label>(&item); label && !label->upward) {
        const double width = text_width(label->text, label->size, label->bold);
        const double left = label->baseline.x - (label->anchor == Anchor::Start    ? 0
                                                 : label->anchor == Anchor::Middle ? width / 2
                                                                                   : width);
        CHECK_MESSAGE((left >= 0 && left + width <= picture.width && label->baseline.y < picture.height), label->text);
      }
  }
}

TEST_CASE("the text of a limit covers no mark and no note, also in a narrow chart with points next to the limit") {
  for (const PicturePoint point : {PicturePoint{2, 39}, PicturePoint{0, 39}, PicturePoint{1, 39.5}}) {
    Chart chart{.title = "", .x = {"x", {}}, .y = {"y"}, .series = {}};
    chart.series.push_back({"", SeriesStyle::Dots, {{0, 5}, point, {2, 8}}, {"first", "next to the limit", "last"}});
    chart.limit = 40;
    chart.limit_text = "memory of a device, 40 GiB";
    const Picture picture = chart_picture(chart, kColumnPicture);
    std::vector<Box> texts;
    std::vector<PicturePoint> marks;
    for (const PictureItem& item : picture.items) {
      if (const Mark* mark = std::get_if<Mark>(&item)) marks.push_back(mark->center);
      const Label* label = std::get_if<Label>(&item);
      if (label && (label->text == chart.limit_text || label->text == "next to the limit"))
        texts.push_back({label->baseline.x,
                         label->baseline.y - 0.8 * label->size,
                         text_width(label->text, label->size),
                         label->size,
                         {},
                         {}});
    }
    REQUIRE(!texts.empty());
    const Box& a = texts.front();
    for (const PicturePoint& mark : marks)
      CHECK(!(mark.x > a.left && mark.x < a.left + a.width && mark.y > a.top && mark.y < a.top + a.height));
    for (std::size_t k = 1; k < texts.size(); ++k)
      CHECK((texts[k].left >= a.left + a.width || texts[k].left + texts[k].width <= a.left ||
             texts[k].top >= a.top + a.height || texts[k].top + texts[k].height <= a.top));
  }
}

TEST_CASE("text is broken at spaces, and cut only where a word or the last line is too long") {
  const std::string title = "GPT-3 6.7B, pipeline and data parallelism on an oversubscribed fat tree";
  const double width = text_width("pipeline and data parallelism", 8);
  const std::vector<std::string> lines = wrapped_text(title, 8, width, 4);
  REQUIRE(lines.size() > 2);
  std::string joined;
  for (const std::string& line : lines) {
    CHECK(text_width(line, 8) <= width);
    joined += (joined.empty() ? "" : " ") + line;
  }
  CHECK(joined == title);
  CHECK(wrapped_text(title, 8, width, 1).front().find("...") != std::string::npos);
  CHECK(wrapped_text("Hippopotomonstrosesquippedaliophobia", 8, 50, 3).size() == 1);
}

TEST_CASE("a title takes the place of the picture's own, and an empty one takes no room") {
  const Chart chart{
      .title = "Own", .x = {"n", {}}, .y = {"s"}, .series = {{"", SeriesStyle::Joined, {{0, 1}, {1, 2}}}}};
  PictureSize size = kColumnPicture;
  const double height = chart_picture(chart, size).height;
  size.title = "Another";
  CHECK(count(to_svg(chart_picture(chart, size)), "Own") == 0);
  CHECK(chart_picture(chart, size).height == doctest::Approx(height));
  size.title = "";
  CHECK(chart_picture(chart, size).height < height);
}

TEST_CASE("the last tick of an axis is not below the data") {
  for (const double largest : {3.87, 0.31, 7.2, 11.0, 96.0, 2.0}) {
    const Chart chart{.title = "",
                      .x = {"n", {"a", "b"}},
                      .y = {"s"},
                      .series = {{"", SeriesStyle::Joined, {{0, 1e-3}, {1, largest}}}}};
    double last = 0;
    for (const PictureItem& item : chart_picture(chart, kColumnPicture).items)
      if (const Label* label = std::get_if<Label>(&item); label && label->anchor == Anchor::End)
        last = std::max(last, std::stod(label->text));
    CHECK(last >= largest);
  }
}

}  // namespace stagecraft::picture_test
