// Tables, pictures and statistics of a sweep compare rows on as many devices, and say which they leave out.

#include "sim/sweep/comparable_rows.hpp"

#include <doctest/doctest.h>

#include <fmt/core.h>

#include "sim/output/picture.hpp"
#include "sim/output/text.hpp"
#include "sim/sweep/seed_statistics.hpp"
#include "sim/sweep/sweep_picture.hpp"

namespace stagecraft::comparable_rows_test {
namespace {

using Strings = std::vector<std::string>;

void add_row(SweepTable& table, std::string settings, double period, double memory, double devices) {
  SweepRow& row = table.rows.emplace_back();
  row.number = static_cast<int>(table.rows.size());
  row.settings = std::move(settings);
  row.status = "ok";
  row.figures.assign(metrics().size(), 1);
  row.figures[metric("period_s")] = period;
  row.figures[metric("peak_memory_bytes")] = memory * 1024;
  row.figures[metric("devices")] = devices;
  row.figures[metric("mfu")] = period / 100;
}

/// Three schedules on two numbers of micro-batches, with two seeds. `v_devices`: the devices of rows of zb-v, which are
/// shorter than the others.
SweepTable schedules_table(double v_devices) {
  SweepTable table;
  table.title = "t";
  for (const auto& [schedule, period] : {std::pair("1f1b", 40), std::pair("zb-h1", 30), std::pair("zb-v", 20)})
    for (const int micro_batches : {8, 16})
      for (const int seed : {1, 2})
        add_row(table,
                fmt::format(R"({{"run.schedule": "{}", "run.micro_batches": {}, "run.seed": {}}})", schedule,
                            micro_batches, seed),
                period + micro_batches / 8 + 0.1 * seed, 5, std::string_view(schedule) == "zb-v" ? v_devices : 4);
  return table;
}

/// Two schedules on two and four nodes of two devices; zb-v takes half of them.
SweepTable nodes_table() {
  SweepTable table;
  table.title = "t";
  for (const int nodes : {2, 4})
    for (const auto& [schedule, share] : {std::pair("1f1b", 1.0), std::pair("zb-h1", 1.0), std::pair("zb-v", 0.5)})
      add_row(table, fmt::format(R"({{"cluster.override.nodes": {}, "run.schedule": "{}"}})", nodes, schedule),
              (share < 1            ? 20.0
               : schedule[0] == '1' ? 80.0
                                    : 60.0) /
                  nodes,
              nodes == 2 ? 9 : 5, 2 * nodes * share);
  return table;
}

/// What the picture says, in order.
Strings words_of(const SweepTable& table, const SweepView& view) {
  Strings words;
  for (const PictureItem& item : sweep_picture(table, view, kScreenPicture).items)
    if (const auto* label = std::get_if<Label>(&item)) words.push_back((label->bold ? "*" : "") + label->text);
  return words;
}

bool has(const Strings& words, const std::string& part) {
  return std::any_of(words.begin(), words.end(), [&](const std::string& w) { return w.find(part) != w.npos; });
}

int marks_of(const SweepTable& table, const SweepView& view) {
  const Picture picture = sweep_picture(table, view, kScreenPicture);
  return static_cast<int>(std::count_if(picture.items.begin(), picture.items.end(),
                                        [](const PictureItem& i) { return std::holds_alternative<Mark>(i); }));
}

using Kind = SweepView::Kind;
const std::string kLeftOut = "4 of 12 points are left out: they ran on 2 devices, and the others on 4.";

}  // namespace

TEST_CASE("lines, maps and fronts leave out a schedule on half of the devices, and say so") {
  const SweepTable alike = schedules_table(4), half = schedules_table(2);
  for (const SweepView& view : {SweepView{}, SweepView{.kind = Kind::Map}, SweepView{.kind = Kind::Front}}) {
    CAPTURE(static_cast<int>(view.kind));
    CHECK(has(words_of(half, view), kLeftOut));
    CHECK(!has(words_of(alike, view), "left out"));
  }
  const SweepView lines{.x = "micro_batches", .by = "schedule"};
  CHECK(has(words_of(alike, lines), "zb-v"));
  CHECK(!has(words_of(half, lines), "zb-v"));
  const SweepView map{.kind = Kind::Map, .x = "micro_batches", .by = "schedule"};
  CHECK(has(words_of(alike, map), "*21.1"));  // The best is bold.
  CHECK(has(words_of(half, map), "*31.1"));
  CHECK(!has(words_of(half, map), "21.1"));
  const Strings front = words_of(half, {.kind = Kind::Front});
  CHECK(has(front, "zb-h1"));
  CHECK(!has(front, "zb-v"));
}

TEST_CASE("a mark that is the best of several schedules is not that of other devices") {
  const auto lowest = [](const SweepTable& table) {
    const Strings words = words_of(table, {.kind = Kind::Map, .x = "micro_batches", .by = "seed"});
    REQUIRE(has(words, "Best of schedule."));
    return words;
  };
  CHECK(has(lowest(schedules_table(4)), "21.1"));
  CHECK(!has(lowest(schedules_table(2)), "21.1"));
  CHECK(has(lowest(schedules_table(2)), "31.1"));
}

TEST_CASE("metrics that mean the same on any number of devices are compared on any") {
  const Strings words = words_of(schedules_table(2), {.metric = "mfu", .x = "micro_batches", .by = "schedule"});
  CHECK(has(words, "zb-v"));
  CHECK(!has(words, "left out"));
}

TEST_CASE("a sweep over the number of devices is drawn, each number compared with itself") {
  const SweepTable table = nodes_table();
  const std::string left_out =
      "2 of 6 points are left out: they ran on 2 or 4 devices, and the others at the same cluster.override.nodes on 4 "
      "or 8.";
  const SweepView lines{.x = "nodes", .by = "schedule"};
  CHECK(marks_of(table, lines) == 4 + 2);  // Two in the legend.
  CHECK(has(words_of(table, lines), left_out));
  const Strings map = words_of(table, {.kind = Kind::Map, .x = "nodes", .by = "schedule"});
  for (const char* value : {"*30", "40", "*15", "20", "\u2013"}) CHECK_MESSAGE(has(map, value), value);
  CHECK(!has(map, "*20"));
  const Strings front = words_of(table, {.kind = Kind::Front});
  CHECK(has(front, "2 \u00b7 zb-h1"));  // Rows on four nodes are faster and smaller.
  CHECK(has(front, "4 \u00b7 zb-h1"));
  CHECK(has(front, "not beaten in both on as many devices"));
  CHECK(has(front, left_out));
}

TEST_CASE("a path about devices that each schedule has for itself is no reason to compare them") {
  SweepTable table;
  add_row(table, R"({"run.schedule": "gpipe", "plan.stages": 2})", 5, 1, 2);
  add_row(table, R"({"run.schedule": "1f1b", "plan.stages": 4})", 6, 1, 4);
  CHECK(devices_note(table) ==
        "1 of 2 points is marked: it ran on 2 devices, and the others on 4; compare rows with equal numbers of "
        "devices, or divide the throughput by them");
  table.rows.clear();  // Weak scaling.
  for (const int nodes : {1, 2, 4})
    add_row(table, fmt::format(R"({{"run.global_batch": {}, "cluster.override.nodes": {}}})", 8 * nodes, nodes), 5, 1,
            nodes);
  CHECK(devices_note(table).empty());
  CHECK(marks_of(table, {.x = "nodes", .by = "nodes"}) >= 3);
}

TEST_CASE("statistics over seeds leave out a run on other devices, but not of metrics that mean the same there") {
  SweepTable table;
  for (const int seed : {1, 2, 3})
    add_row(table, fmt::format(R"({{"run.seed": {}}})", seed), 10.0 * seed, 1, seed < 3 ? 4 : 2);
  const Json metrics = seed_statistics_json(table).front().at("metrics");
  CHECK(metrics.at("period_s").at("count").number() == 2);
  CHECK(metrics.at("period_s").at("mean").number() == 15);
  CHECK(metrics.at("mfu").at("count").number() == 3);
  CHECK(seed_statistics_text(table, TextLayout{.width = 1000})
            .find("base: 1 of 3 points is left out: it ran on 2 devices, and the others on 4\n") != std::string::npos);
}

}  // namespace stagecraft::comparable_rows_test
