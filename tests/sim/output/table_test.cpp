// Text, CSV and JSON have the same rows.

#include "sim/output/table.hpp"

#include <doctest/doctest.h>

#include <limits>

namespace stagecraft::table_test {
namespace {

struct Run {
  std::string name, why_not;
  Seconds time;
  int count = 0;
  double share = 0;
};

const std::vector<Run> kRuns{
    {"first", "", {0.25}, 3, 0.5}, {"a longer name", "", {1.5}, 12, 1}, {"third", "no, not \"here\"", {}, 0, 0}};

FileColumn any_column(std::string name) { return nested_column(config::any(std::move(name)), "Anything."); }

Table table_of(const std::vector<Run>& runs) {
  const TableColumns<Run> columns{
      {{.key = word_column("name", "A word."),
        .heading = "run",
        .width = 4,
        .align = TextAlign::Left,
        .widens = true,
        .rows = InRows::All},
       &Run::name},
      {{.key = yes_column("ran", "Whether it ran."), .files = InFiles::Json, .rows = InRows::All},
       [](const Run& r) { return r.why_not.empty(); }},
      {{.key = number_column("time_s", "s", "A number."), .heading = "time", .width = 8}, &Run::time},
      {{.key = whole_column("count", "A count."), .heading = "n", .width = 1}, &Run::count},
      {{.key = number_column("share", "", "A number.")}, &Run::share},
      {{.heading = "in words"}, [](const Run& r) { return r.count > 5 ? "many" : "few"; }},
      {{.key = word_column("reason", "A word."), .rows = InRows::Failed, .quoted = true}, &Run::why_not},
  };
  return make_table<Run>(columns, runs, [](const Run& r) { return r.why_not.empty() ? "" : "- " + r.why_not; });
}

}  // namespace

TEST_CASE("text aligns columns, and a row without results says why") {
  CHECK(to_text(table_of(kRuns)) ==
        "  run                time  n  in words\n"
        "  first            250 ms  3  few\n"
        "  a longer name     1.5 s  12  many\n"
        "  third          - no, not \"here\"\n");
}

TEST_CASE("a note follows the last column of its row") {
  Table table = table_of({kRuns.front()});
  table.rows.front().note = ", which is little";
  CHECK(rows_text(table) == "  first    250 ms  3  few, which is little\n");
}

TEST_CASE("CSV has base units, and nothing where a row has no results") {
  CHECK(to_csv(table_of(kRuns)) ==
        "name,time_s,count,share,reason\n"
        "first,0.25,3,0.5,\n"
        "a longer name,1.5,12,1,\n"
        "third,,,,\"no, not \"\"here\"\"\"\n");
}

TEST_CASE("JSON has typed values, and no members where a row has no results") {
  CHECK(Json(to_json(table_of(kRuns))).dump() ==
        R"([{"name":"first","ran":true,"time_s":0.25,"count":3,"share":0.5},)"
        R"({"name":"a longer name","ran":true,"time_s":1.5,"count":12,"share":1.0},)"
        R"({"name":"third","ran":false,"reason":"no, not \"here\""}])");
}

TEST_CASE("null is a member of JSON and an empty cell of CSV; an absent value is neither") {
  Table table{{{.key = any_column("null")},
               {.key = any_column("absent")},
               {.key = any_column("list")},
               {.key = any_column("yes")},
               {.key = any_column("nan")}},
              {{{Json(), TableCell(), Json(JsonArray{1, 2}), true, std::numeric_limits<double>::quiet_NaN()}}}};
  CHECK(to_csv(table) == "null,absent,list,yes,nan\n,,\"[1,2]\",1,nan\n");
  CHECK(Json(to_json(table)).dump() == R"([{"null":null,"list":[1,2],"yes":true,"nan":null}])");
}

}  // namespace stagecraft::table_test
