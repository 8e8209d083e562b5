#include <doctest/doctest.h>

#include "sim/schedule/schedule.hpp"

namespace stagecraft::text_test {

TEST_CASE("an op is stage, letter and micro-batch, and reads back") {
  const struct {
    const char* text;
    OpKind kind;
    int stage, micro;
  } cases[] = {
      {"0F1", OpKind::Forward, 0, 1},
      {"12B0", OpKind::Backward, 12, 0},
      {"1I3", OpKind::InputGradient, 1, 3},
      {"1W30", OpKind::WeightGradient, 1, 30},
      {"7R2", OpKind::Recompute, 7, 2},
      {"0U2", OpKind::Update, 0, 2},
      {"2147483647F2147483647", OpKind::Forward, 2147483647, 2147483647},
  };
  for (const auto& c : cases) {
    const auto op = parse_op(c.text);
    REQUIRE_MESSAGE(op.has_value(), c.text);
    CHECK(*op == Op{c.kind, false, StageId{c.stage}, c.micro});
    CHECK(to_text(*op) == c.text);
  }
}

TEST_CASE("the whole text must match, and numbers have one spelling") {
  for (const char* text : {"",      "F",     "0",     "0F",      "F0",       "0F3.2",         "00F1",         "0F01",
                           "-1F0",  "0F-1",  "+1F0",  "0F+1",    " 0F1",     "0F1 ",          "0 F1",         "0f1",
                           "0X1",   "0F1x",  "0F1;",  "(0F1)",   "0F1,0F2",  "0FF1",          "0F0x1",        "1.0F1",
                           "0F1e3", "0F1\r", "0F1\n", "\"0F1\"", "0SEND_F1", "99999999999F0", "0F99999999999"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_op(text).has_value());
  }
}

TEST_CASE("every kind of op has its own letter") {
  std::string letters;
  for (int k = 0; k <= static_cast<int>(OpKind::Update); ++k) letters += letter(static_cast<OpKind>(k));
  CHECK(letters == "FBIWRU");
}

TEST_CASE("the grid shows ops that run as one in brackets") {
  Schedule schedule;
  schedule.ranks.resize(2);
  schedule.ranks[RankId{0}] = {{OpKind::Forward, true, StageId{0}, 3},
                               {OpKind::Backward, false, StageId{7}, 5},
                               {OpKind::Update, false, StageId{0}, 0}};
  CHECK(to_grid(schedule) == "device 0  |  (0F3  7B5)   0U0\ndevice 1  |\n");
  CHECK(schedule.op_count() == 3);
  CHECK(Schedule{}.op_count() == 0);
  CHECK(to_grid(Schedule{}).empty());
}

TEST_CASE("the gap of an order is printed without an exponent") {
  const auto text_of = [](double time) {
    return to_text(ScheduleSearch{Seconds{time}, Seconds{1}, true, "work", "search"}, [](Seconds) { return "t"; });
  };
  CHECK(text_of(1) == "period t, as short as any order can be (work)");
  CHECK(text_of(1.14) == "period t, at most 14 % too long: no order is shorter than t (work)");
  CHECK(text_of(1.994) == "period t, at most 99 % too long: no order is shorter than t (work)");
  CHECK(text_of(1.996) == "period t, at most 100 % too long: no order is shorter than t (work)");
  CHECK(text_of(3.6) == "period t, at most 260 % too long: no order is shorter than t (work)");
  CHECK(text_of(1 + 1e-8) == "period t, at most 0.0001 % too long: no order is shorter than t (work)");
}

}  // namespace stagecraft::text_test
