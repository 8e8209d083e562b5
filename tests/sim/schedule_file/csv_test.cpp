#include "sim/schedule_file/csv.hpp"

#include <doctest/doctest.h>

#include "tests/support/checked.hpp"
#include "tests/support/schedules.hpp"

namespace stagecraft::csv_test {
using Rows = std::vector<std::string>;
using test::build;
using test::rows_of;

namespace {

CsvSchedule read(std::string_view text) { return parse_schedule_csv(text, "order.csv"); }
std::string error_of(std::string_view text) {
  return test::input_error_of([&] { read(text); });
}
std::vector<Diagnostic> problems_of(std::string_view text) {
  try {
    read(text);
  } catch (const InputError& error) {
    return error.problems();
  }
  return {};
}

}  // namespace

TEST_CASE("rows are ranks, cells are ops, columns are remembered") {
  const CsvSchedule csv = read("0F0,,0F1,0B0,0B1\n,1F0,1B0,1F1,1B1\n");
  CHECK(rows_of(csv.schedule) == Rows{"0F0 0F1 0B0 0B1", "1F0 1B0 1F1 1B1"});
  CHECK(csv.columns == std::vector<std::vector<int>>{{0, 2, 3, 4}, {1, 2, 3, 4}});
  CHECK(csv.stages == 2);
  CHECK(csv.micro_batches == 2);
}

TEST_CASE("line ends of any system, blanks around cells and blank lines at the end are read") {
  const Schedule expected = read("0F0,0B0\n1F0,1B0\n").schedule;
  for (const char* text : {"0F0,0B0\r\n1F0,1B0\r\n", "0F0,0B0\r\n1F0,1B0", " 0F0 ,\t0B0\n1F0,  1B0  \n",
                           "0F0,0B0\n1F0,1B0", "0F0,0B0,,\r\n1F0,1B0,,\r\n", "0F0,0B0\n1F0,1B0\n\n \r\n\n"}) {
    CAPTURE(text);
    CHECK(read(text).schedule == expected);
  }
  CHECK(rows_of(read("0F0,0B0\n\n1F0,1B0\n").schedule) == Rows{"0F0 0B0", "", "1F0 1B0"});
}

TEST_CASE("a byte order mark and quotes of spreadsheets and Python's csv are read") {
  const Schedule expected = read("0F0,(0F1;0B0)OVERLAP_F_B,,0B1\n1F0,1B0,1F1,1B1\n").schedule;
  for (const char* text : {"\xEF\xBB\xBF"
                           "0F0,(0F1;0B0)OVERLAP_F_B,,0B1\r\n1F0,1B0,1F1,1B1\r\n",
                           "\"0F0\",\"(0F1;0B0)OVERLAP_F_B\",\"\",\"0B1\"\n1F0 , \"1B0\" ,\" 1F1 \",1B1\n",
                           "\xEF\xBB\xBF\"0F0\",(0F1;0B0)OVERLAP_F_B,,0B1\n\"1F0\",1B0,1F1,1B1\n\n"}) {
    CAPTURE(text);
    CHECK(read(text).schedule == expected);
  }
  for (const char* text : {"\"0F0", "0F0\"", "\"\"0F0\"\"", "'0F0'",
                           "0F0,\xEF\xBB\xBF"
                           "0B0"}) {
    CAPTURE(text);
    CHECK(problems_of(text).size() == 1);
  }
  CHECK(problems_of("\"0F0,0B0\"").size() == 2);  // One cell to Python, and no op.
  CHECK(error_of("\xEF\xBB\xBF\n").find("no op") != std::string::npos);
}

TEST_CASE("all five kinds of op are read, but no update") {
  CHECK(rows_of(read("0F0,0R0,0I0,0W0,1F0,1B0").schedule) == Rows{"0F0 0R0 0I0 0W0 1F0 1B0"});
  CHECK(error_of("0F0,0B0,0U0").find("'0U0' is an update") != std::string::npos);
}

TEST_CASE("ops that overlap run as one") {
  const CsvSchedule csv = read("0F0,(0F1;1B0)OVERLAP_F_B, ( 0F2 ; 1B1 ; 0B0 )OVERLAP_F_B ,0B1\n");
  CHECK(rows_of(csv.schedule) == Rows{"0F0 0F1+ 1B0 0F2+ 1B1+ 0B0 0B1"});
  CHECK(csv.columns == std::vector<std::vector<int>>{{0, 1, 1, 2, 2, 2, 3}});
  for (const char* text :
       {"(0F1;1B0)", "(0F1)OVERLAP_F_B", "(0F1;)OVERLAP_F_B", "(;)OVERLAP_F_B", "()OVERLAP_F_B", "0F1;1B0)OVERLAP_F_B",
        "(0F1;1B0)OVERLAP_F_Bx", "(0F1;1B0)OVERLAP", "((0F1;1B0)OVERLAP_F_B"}) {
    CAPTURE(text);
    CHECK(problems_of(text).size() == 1);
  }
}

TEST_CASE("every cell that does not match in full is named with its place") {
  const auto problems = problems_of("0F0,0F3.2,0B0\n1F0 , 00F1,,-1F0\n0F,0F1x\n");
  REQUIRE(problems.size() == 5);
  const struct {
    int line, column;
    const char *path, *word;
  } expected[] = {{1, 5, "rank 0, column 1", "'0F3.2'"},
                  {2, 6, "rank 1, column 1", "'00F1'"},
                  {2, 13, "rank 1, column 3", "'-1F0'"},
                  {3, 1, "rank 2, column 0", "'0F'"},
                  {3, 4, "rank 2, column 1", "'0F1x'"}};
  for (std::size_t i = 0; i < problems.size(); ++i) {
    CHECK(problems[i].code == "syntax");
    CHECK(problems[i].where == Where{"order.csv", expected[i].line, expected[i].column});
    CHECK(problems[i].path == expected[i].path);
    CHECK(problems[i].message.find(expected[i].word) != std::string::npos);
  }
}

TEST_CASE("communication is refused and told what to do instead") {
  for (const char* cell : {"0SEND_F0", "1RECV_F0", "0UNSHARD", "0RESHARD", "0REDUCE_GRAD", "1SEND_B3", "0RECV_B0"}) {
    CAPTURE(cell);
    CHECK(error_of(cell).find("compute-only") != std::string::npos);
  }
}

TEST_CASE("a file without an op is no schedule") {
  for (const char* text : {"", "\n", ",,\n,\n", "  \r\n"}) CHECK(error_of(text).find("no op") != std::string::npos);
}

TEST_CASE("stage and micro-batch numbers that would take all memory are refused") {
  CHECK(problems_of("1048575F16777215").empty());
  const std::pair<const char*, const char*> large[] = {
      {"1048576F0", "stage 1048576 is too large: the last is 1048575"},
      {"0F16777216", "micro-batch 16777216 is too large: the last is 16777215"},
      {"99999999999B1", "stage 99999999999 is too large"},
      {"(0F1;0B99999999999)OVERLAP_F_B", "micro-batch 99999999999 is too large"},
      {"1048576UNSHARD", "stage 1048576 is too large"},
      {"1048576SEND_F1", "stage 1048576 is too large"}};
  for (const auto& [text, words] : large) {
    const auto problems = problems_of(text);
    REQUIRE(problems.size() == 1);
    CHECK_MESSAGE(problems.front().message.find(words) != std::string::npos, problems.front().message);
    CHECK(problems.front().help == "count stages and micro-batches from 0");
  }
  for (const char* text : {"099999999999F0", "0X99999999999", "99999999999", "F99999999999", "0F1x99999999999"})
    CHECK_MESSAGE(problems_of(text).front().message.find("is not an op") != std::string::npos, text);
}

TEST_CASE("a schedule reads back as it was written") {
  for (const char* name : {"gpipe", "1f1b", "inference", "graph"}) {
    Schedule schedule = build(name, chain_plan(4, 4, 6));
    for (auto& row : schedule.ranks) std::erase_if(row, [](const Op& op) { return op.kind == OpKind::Update; });
    CHECK(read(to_csv(schedule)).schedule == schedule);
  }
  const std::string text = "0F0,(0F1;1B0)OVERLAP_F_B\n0I0,0W0,(0F2;1B1;0B1)OVERLAP_F_B,1R0\n";
  CHECK(to_csv(read(text).schedule) == text);
}

TEST_CASE("rows imply a plan: a chain on the ranks that run it") {
  std::vector<ScheduleProblem> problems;
  const Plan plan = implied_plan(read("0F0,3F0,3B0,0B0\n1F0,2F0,2B0,1B0\n"), problems);
  CHECK(problems.empty());
  CHECK(plan.mini_batch == 1);
  CHECK(plan.edges.size() == 3);
  REQUIRE(plan.stage_count() == 4);
  const int rank_of[] = {0, 1, 1, 0};
  for (std::size_t s = 0; s < 4; ++s) {
    CHECK(plan.stages[StageId{s}].leaders == std::vector<DeviceId>{DeviceId{rank_of[s]}});
    CHECK(plan.stages[StageId{s}].micros.empty());
  }
}

TEST_CASE("stages with other micro-batches start a new chain") {
  std::vector<ScheduleProblem> problems;
  const Plan plan = implied_plan(read("0F0,3F1,3B1,0B0\n2F1,1F0,1B0,2B1\n"), problems);
  CHECK(problems.empty());
  REQUIRE(plan.edges.size() == 2);
  CHECK(plan.edges[0].from == StageId{0});
  CHECK(plan.edges[1].from == StageId{2});
  CHECK(plan.stages[StageId{0}].micros == std::vector<int>{0});
  CHECK(plan.stages[StageId{3}].micros == std::vector<int>{1});
  CHECK(plan.micro_batches_run(StageId{3}) == 1);
}

TEST_CASE("a cell that makes a plan impossible is named with its place") {
  const auto problems_in = [](std::string_view text) {
    std::vector<ScheduleProblem> problems;
    implied_plan(read(text), problems);
    return problems;
  };
  const auto twice = problems_in("0F0,0B0\n,1F0,,0F1\n");
  REQUIRE_FALSE(twice.empty());
  CHECK(twice.front().code == "wrong-rank");
  CHECK(twice.front().rank == 1);
  CHECK(twice.front().column == 3);
  CHECK(twice.front().op == "0F1");
  const auto gap = problems_in("0F0,0B0\n2F0,2B0\n");
  REQUIRE(gap.size() == 1);
  CHECK(gap.front().code == "missing");
  CHECK(gap.front().message.find("stage 1") != std::string::npos);
  const auto only = problems_in("0F0,0B0\n1B0\n");
  REQUIRE(only.size() == 1);
  CHECK(only.front().code == "missing");
  CHECK(only.front().rank == 1);
  CHECK(only.front().op == "1F0");
  const auto dropped = problems_in("0F0,0F1,0B0,0B1\n1F0,1B0,1B1\n");
  REQUIRE_FALSE(dropped.empty());
  CHECK(dropped.front().code == "missing");
  CHECK(dropped.front().op == "1F1");
  const auto partly = problems_in("0F0,0F1,0B0,0B1\n1F0,1B0\n");
  REQUIRE(partly.size() == 1);
  CHECK(partly.front().code == "chain");
  const auto never = problems_in("0F0,0F2,0B0,0B2\n1F0,1F2,1B0,1B2\n");
  REQUIRE(never.size() == 1);
  CHECK(never.front().code == "missing");
  CHECK(never.front().message.find("micro-batch 1") != std::string::npos);
  const auto uneven = problems_in("0F0,0B0,2F1,2B1\n1F0,1B0\n");
  REQUIRE(uneven.size() == 1);
  CHECK(uneven.front().code == "chain");
  CHECK(uneven.front().message.find("stages 2 to 2") != std::string::npos);
}

TEST_CASE("both kinds of file read back as written") {
  const std::string text =
      "0UNSHARD,0F0,0SEND_F0,(0F1;0B0)OVERLAP_F_B,0RECV_B1,0REDUCE_GRAD,0RESHARD\n1RECV_F0,1F0,1I0,1SEND_B0,1W0,1R1\n";
  std::vector<CellProblem> problems;
  const CsvFile csv = read_csv(text, "x.csv", {}, problems);
  CHECK(problems.empty());
  CHECK(csv.communicates);
  CHECK(to_csv(csv.actions) == text);
  CHECK(rows_of(compute_of(csv).schedule) == Rows{"0F0 0F1+ 0B0", "1F0 1I0 1W0 1R1"});
  CHECK(compute_of(csv).columns == std::vector<std::vector<int>>{{1, 3, 3}, {1, 2, 4, 5}});
}

TEST_CASE("cells that torch's reader accepts or misreads are refused") {
  std::vector<CellProblem> problems;
  for (const char* text : {"0F3.2", "0F3x", "0SEND_F1x", "0UNSHARD1", "0SEND_F", "SEND_F0", "0SEND_X0", "0BW1",
                           "(0SEND_F0;0F1)OVERLAP_F_B", "0f1", "0 F1"}) {
    CAPTURE(text);
    problems.clear();
    read_csv(text, "x.csv", {}, problems);
    REQUIRE(problems.size() == 1);
    CHECK(problems.front().problem.code == "syntax");
    CHECK(problems.front().problem.level == 1);
    CHECK(problems.front().problem.op == text);
  }
}

TEST_CASE("reading stops after a thousand cells that are wrong, so a damaged file takes little memory") {
  for (const char* end : {",", "\n"}) {
    std::string text;
    for (int n = 0; n < 5000; ++n) text += std::string("x") + end;
    std::vector<CellProblem> problems;
    read_csv(text, "x.csv", {}, problems);
    REQUIRE(problems.size() == 1001);
    CHECK(problems[999].problem.message == "'x' is not an op");
    CHECK(problems.back().problem.message == "reading stopped here, after too many cells that are wrong");
  }
}

}  // namespace stagecraft::csv_test
