// Lines and tables that fit in a width.

#include "sim/output/text_layout.hpp"

#include <doctest/doctest.h>

#include "sim/core/diagnostic.hpp"
#include "sim/output/table.hpp"

namespace stagecraft::text_layout_test {
namespace {

/// Three columns of 6, 10 and 10 characters, gaps included.
Table three_columns() {
  Table table{{{.heading = "name", .width = 6, .align = TextAlign::Left, .widens = true, .gap = 0, .rows = InRows::All},
               {.heading = "first", .width = 8, .drop_order = 1},
               {.key = number_column("seconds", "s", "A time."), .heading = "second", .width = 8, .drop_order = 2}},
              {{{"a", "1", TableCell(0.5, "500 ms")}}, {{"b", "22", TableCell(2.0, "2 s")}}}};
  return table;
}

}  // namespace

TEST_CASE("a line is broken at spaces and continues where its last column begins") {
  CHECK(wrap_lines("  bubble   34.8 %   of an iteration", 26) == "  bubble   34.8 %   of an\n           iteration");
  CHECK(wrap_lines("one two three four\nfive", 11) == "one two\n  three\n  four\nfive");
  CHECK(wrap_lines("one two three four", 0) == "one two three four");
  CHECK(wrap_lines("one two three four", 18) == "one two three four");
}

TEST_CASE("a number stays with its unit, and a long word stays whole") {
  CHECK(wrap_lines("it takes 500 ms", 12) == "it takes\n  500 ms");
  CHECK(wrap_lines("see /a/very/long/path/name here", 10) == "see\n  /a/very/long/path/name\n  here");
}

TEST_CASE("characters count, not bytes, and terminal sequences have no width") {
  CHECK(display_width("5 ± 1 %") == 7);
  CHECK(display_width("\033[1mbold\033[0m") == 4);
  CHECK(shorten("±±±±", 3) == "±±…");
  CHECK(shorten("abc", 3) == "abc");
}

TEST_CASE("columns with the highest drop order have no room first, and a line names them") {
  const Table table = three_columns();
  CHECK(to_text(table, {.width = 26}) == to_text(table));
  CHECK(to_text(table, {.width = 25}) ==
        "name       first\n"
        "a              1\n"
        "b             22\n"
        "columns not shown: second\n"
        "  (--wide, or --columns)\n");
}

TEST_CASE("a long word is shortened where no column can be dropped") {
  Table table = three_columns();
  table.columns.pop_back();
  table.columns.pop_back();
  for (TableRow& row : table.rows) row.cells.resize(1);
  table.rows[0].cells[0] = "a-name-of-thirty-characters-xx";
  CHECK(to_text(table, {.width = 20}) == "name\na-name-of-thirty-ch…\nb\n");
}

TEST_CASE("the user chooses columns by heading or by their name in files") {
  const Table chosen = select_columns(three_columns(), {"seconds", "Name"});
  CHECK(to_text(chosen) == "    secondname\n    500 msa\n       2 sb\n");
  CHECK(to_csv(chosen) == "seconds,name\n0.5,a\n2,b\n");
  CHECK_THROWS_AS(select_columns(three_columns(), {"third"}), InputError);
}

TEST_CASE("Markdown has a rule below the headings, and a failure in the first column without a result") {
  Table table = three_columns();
  table.rows[1].failure = "- a | b";
  CHECK(to_markdown(table) ==
        "| name | first | second |\n| --- | ---: | ---: |\n| a | 1 | 500 ms |\n| b | - a \\| b |  |\n");
}

TEST_CASE("a table with columns of equal weight is printed in parts") {
  const std::vector<Table> parts = split_columns(three_columns(), 1, {.width = 20});
  REQUIRE(parts.size() == 2);
  CHECK(to_text(parts[0]) == "name       first\na              1\nb             22\n");
  CHECK(to_text(parts[1]) == "name      second\na         500 ms\nb            2 s\n");
  CHECK(split_columns(three_columns(), 1, {}).size() == 1);
}

}  // namespace stagecraft::text_layout_test
