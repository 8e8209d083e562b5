// Each case breaks one rule and no other.

#include "sim/schedule/validate.hpp"

#include <doctest/doctest.h>

#include "tests/support/schedules.hpp"

namespace stagecraft::validate_test {
using test::schedule_from;

namespace {

struct Broken {
  const char* why;
  std::vector<std::string> rows;
  const char* code;
  int level, rank, column;
  const char *op, *words;
};

void check(const Broken& b, const Plan& plan, const ValidateOptions& options = {}) {
  CAPTURE(b.why);
  const auto problems = validate(schedule_from(b.rows), plan, options);
  REQUIRE(problems.size() == 1);
  const ScheduleProblem& p = problems.front();
  CHECK(p.code == b.code);
  CHECK(p.level == b.level);
  CHECK(p.rank == b.rank);
  CHECK(p.column == b.column);
  CHECK(p.op == b.op);
  CHECK_MESSAGE(p.message.find(b.words) != std::string::npos, p.message);
}

}  // namespace

TEST_CASE("a valid schedule has no problem") {
  const Plan plan = chain_plan(2, 2, 2);
  for (const auto& rows : std::vector<std::vector<std::string>>{{"0F0 0F1 0B0 0B1", "1F0 1B0 1F1 1B1"},
                                                                {"0F0 0F1 0B0 0B1 0U0", "1F0 1B0 1F1 1B1 1U0"},
                                                                {"0F1 0F0 0B1 0B0", "1F1 1F0 1B1 1B0"},
                                                                {"0F0 0F1 0I0 0I1 0W1 0W0", "1F0 1F1 1I0 1I1 1W0 1W1"},
                                                                {"0F0 0F1 0R0 0B0 0R1 0B1", "1F0 1R0 1B0 1F1 1B1"},
                                                                {"0F0 0F1 0B0 0B1", "1F0 1B0 1F1 1B1", "", ""}})
    CHECK(validate(schedule_from(rows), plan, {}).empty());
  CHECK(validate(schedule_from({"0F0 0F1", "1F0 1F1"}), plan, {.trains = false}).empty());
  CHECK(validate(schedule_from({"0F0 0B0 0U0 0F1 0B1 0U1"}), chain_plan(1, 1, 1), {.iterations = 2}).empty());
}

TEST_CASE("structure: each op is there once, on its rank, and its stage and micro-batch exist") {
  const Plan plan = chain_plan(2, 2, 2);
  const std::string first = "0F0 0F1 0B0 0B1", last = "1F0 1B0 1F1 1B1";
  const Broken cases[] = {
      {"F twice", {"0F0 0F1 0F0 0B0 0B1", last}, "duplicate", 2, 0, 2, "0F0", "0F0 runs twice"},
      {"B twice", {first, "1F0 1B0 1F1 1B1 1B1"}, "duplicate", 2, 1, 4, "1B1", "1B1 runs twice"},
      {"B and I", {first, "1F0 1B0 1I0 1F1 1B1"}, "duplicate", 2, 1, 2, "1I0", "part of 1B0"},
      {"B after I and W", {first, "1F0 1I0 1W0 1B0 1F1 1B1"}, "duplicate", 2, 1, 3, "1B0", "repeats"},
      {"R twice", {"0F0 0F1 0R0 0R0 0B0 0B1", last}, "duplicate", 2, 0, 3, "0R0", "0R0 runs twice"},
      {"no B", {first, "1F0 1B0 1F1"}, "missing", 2, 1, -1, "1B1", "1B1 never runs"},
      {"I without W", {first, "1F0 1I0 1F1 1B1"}, "missing", 2, 1, -1, "1W0", "1W0 never runs"},
      {"no such micro-batch", {"0F0 0F1 0F2 0B0 0B1", last}, "out-of-range", 2, 0, 2, "0F2", "no micro-batch 2"},
      {"no such stage", {first, "1F0 1B0 2F0 1F1 1B1"}, "out-of-range", 2, 1, 2, "2F0", "no stage 2"},
      {"another rank's stage", {first, "1F0 0B1 1B0 1F1 1B1"}, "wrong-rank", 2, 1, 1, "0B1", "does not run on rank 1"},
  };
  for (const Broken& b : cases) check(b, plan);
}

TEST_CASE("a missing forward or row is reported") {
  check({"no F", {"0F0 0F1", "1F0"}, "missing", 2, 1, -1, "1F1", "1F1 never runs"}, chain_plan(2, 2, 2),
        {.trains = false});
  check({"no row", {"0F0 0B0"}, "missing", 2, -1, -1, "", "2 devices, the schedule has 1"}, chain_plan(2, 2, 1));
}

TEST_CASE("ops of one device must come after the ops that they need") {
  const Plan plan = chain_plan(2, 2, 2);
  const std::string first = "0F0 0F1 0B0 0B1", last = "1F0 1B0 1F1 1B1";
  const Broken cases[] = {
      {"B before F", {first, "1F0 1B0 1B1 1F1"}, "local-order", 3, 1, 2, "1B1", "1B1 comes before 1F1"},
      {"I before F", {first, "1F0 1B0 1I1 1F1 1W1"}, "local-order", 3, 1, 2, "1I1", "1I1 comes before 1F1"},
      {"W before I", {first, "1F0 1B0 1F1 1W1 1I1"}, "local-order", 3, 1, 3, "1W1", "1W1 comes before 1I1"},
      {"R before F", {first, "1F0 1B0 1R1 1F1 1B1"}, "local-order", 3, 1, 2, "1R1", "1R1 comes before 1F1"},
      {"R after B", {first, "1F0 1B0 1R0 1F1 1B1"}, "local-order", 3, 1, 2, "1R0", "after the backward"},
      {"R after I", {first, "1F0 1I0 1R0 1W0 1F1 1B1"}, "local-order", 3, 1, 2, "1R0", "after the backward"},
      {"U too early", {first, "1F0 1B0 1U0 1F1 1B1"}, "local-order", 3, 1, 2, "1U0", "after 1 backwards instead of 2"},
      {"U before W",
       {first, "1F0 1B0 1F1 1I1 1U0 1W1"},
       "local-order",
       3,
       1,
       4,
       "1U0",
       "after 1 backwards instead of 2"},
      {"U of another number", {first + " 0U1", last}, "local-order", 3, 0, 4, "0U1", "after 2 backwards instead of 4"},
      {"U twice", {first + " 0U0 0U0", last}, "duplicate", 2, 0, 5, "0U0", "0U0 runs twice"},
  };
  for (const Broken& b : cases) check(b, plan);
}

TEST_CASE("an op that never runs is missing, and no other comes before it") {
  const Plan plan = chain_plan(1, 1, 2);
  // The input gradient of micro-batch 0 has the letter of a weight gradient.
  const auto problems = validate(schedule_from({"0F0 0F1 0W0 0W0 0I1 0W1"}), plan, {});
  REQUIRE(problems.size() == 2);
  CHECK(problems[0].code == "missing");
  CHECK(problems[0].op == "0I0");
  CHECK(problems[0].message == "0I0 never runs, and 0W0 needs it");
  CHECK(problems[1].message == "0W0 runs twice");
  check({"no I", {"0F0 0F1 0W0 0I1 0W1"}, "missing", 2, 0, -1, "0I0", "0I0 never runs"}, plan);
  check({"no F", {"0F1 0B0 0B1"}, "missing", 2, 0, -1, "0F0", "0F0 never runs"}, plan);
}

TEST_CASE("stages that run a part of the micro-batches run no others") {
  Plan plan = chain_plan(2, 2, 4);
  plan.edges.clear();
  plan.stages[StageId{0}].micros = {0, 1}, plan.stages[StageId{1}].micros = {2, 3};
  CHECK(validate(schedule_from({"0F0 0F1 0B0 0B1 0U0", "1F2 1F3 1B2 1B3 1U0"}), plan, {}).empty());
  check({"not its own", {"0F0 0F1 0F2 0B0 0B1", "1F2 1F3 1B2 1B3"}, "out-of-range", 2, 0, 2, "0F2", "no micro-batch 2"},
        plan);
  check({"later iteration",
         {"0F0 0F1 0B0 0B1 0F4 0F5 0B4", "1F2 1F3 1B2 1B3 1F6 1F7 1B6 1B7"},
         "missing",
         2,
         0,
         -1,
         "0B5",
         "0B5 never runs"},
        plan, {.iterations = 2});
}

TEST_CASE("each replica needs every op") {
  Plan plan = chain_plan(1, 1, 2);
  plan.stages[StageId{0}].micro_batch_size = 2;
  plan.stages[StageId{0}].place_on({DeviceId{0}, DeviceId{1}});
  plan.reductions = derive_reductions(plan);
  CHECK(validate(schedule_from({"0F0 0B0 0U0", "0F0 0B0 0U0"}), plan, {}).empty());
  check({"one replica short", {"0F0 0B0", "0F0"}, "missing", 2, 1, -1, "0B0", "0B0 never runs"}, plan);
}

TEST_CASE("slices of a micro-batch go forward in order and backward in reverse") {
  const Plan plan = chain_plan(1, 1, 4);  // Two micro-batches of two slices.
  const ValidateOptions two{.slices = 2};
  CHECK(validate(schedule_from({"0F0 0F1 0B1 0B0 0F2 0F3 0B3 0B2"}), plan, two).empty());
  CHECK(validate(schedule_from({"0F2 0F0 0F1 0F3 0B1 0B3 0B0 0I2 0W2"}), plan, two).empty());
  CHECK(validate(schedule_from({"0F0 0F1 0B0 0B1 0F2 0F3 0B2 0B3"}), plan, {}).empty());
  check({"F", {"0F1 0F0 0B1 0B0 0F2 0F3 0B3 0B2"}, "slice-order", 3, 0, 0, "0F1", "0F1 comes before 0F0"}, plan, two);
  check({"B", {"0F0 0F1 0B1 0B0 0F2 0F3 0B2 0B3"}, "slice-order", 3, 0, 6, "0B2", "0B2 comes before 0B3"}, plan, two);
}

TEST_CASE("ops that run as one start together, so none of them needs another") {
  const Plan plan = chain_plan(2, 2, 2);
  const std::string first = "0F0 0F1 0B0 0B1";
  for (const char* good : {"1F0 1F1+ 1B0 1B1", "1F0 1F1+ 1I0 1W0+ 1I1 1W1", "1F0 1R0+ 1F1 1I0+ 1R1 1B1 1W0"})
    CHECK_MESSAGE(validate(schedule_from({first, good}), plan, {}).empty(), good);
  const Broken cases[] = {
      {"F and B", {first, "1F0+ 1B0 1F1 1B1"}, "local-order", 3, 1, 1, "1B0", "1B0 needs 1F0"},
      {"F and I, others between", {first, "1F0 1F1+ 1B0+ 1I1 1W1"}, "local-order", 3, 1, 3, "1I1", "1I1 needs 1F1"},
      {"I and W", {first, "1F0 1I0+ 1W0 1F1 1B1"}, "local-order", 3, 1, 2, "1W0", "1W0 needs 1I0"},
      {"R and B", {first, "1F0 1R0+ 1B0 1F1 1B1"}, "local-order", 3, 1, 2, "1B0", "1B0 needs 1R0"},
  };
  for (const Broken& b : cases) check(b, plan);
  const Plan one = chain_plan(1, 1, 4);  // Two micro-batches of two slices.
  const ValidateOptions two{.slices = 2};
  CHECK(validate(schedule_from({"0F0+ 0F2 0F1+ 0F3 0I1 0I0+ 0W1 0W0 0B3 0B2"}), one, two).empty());
  CHECK(validate(schedule_from({"0F0+ 0F1 0B1+ 0B0 0F2 0F3 0B3 0B2"}), one, {}).empty());
  check({"F", {"0F0+ 0F1 0B1 0B0 0F2 0F3 0B3 0B2"}, "local-order", 3, 0, 1, "0F1", "0F1 needs 0F0"}, one, two);
  check({"B", {"0F0 0F1 0B1+ 0B0 0F2 0F3 0B3 0B2"}, "local-order", 3, 0, 3, "0B0", "0B0 needs 0B1"}, one, two);
  CHECK(validate(schedule_from({first, "1F0+ 1B0 1F1+ 1B1"}), plan, {.max_problems = 1}).size() == 1);
}

TEST_CASE("all problems are listed, up to the number asked for") {
  const Plan plan = chain_plan(2, 2, 8);
  CHECK(validate(schedule_from({"", ""}), plan, {}).size() == 20);
  CHECK(validate(schedule_from({"", ""}), plan, {.max_problems = 3}).size() == 3);
  CHECK(validate(schedule_from({"", ""}), plan, {.trains = false, .max_problems = 100}).size() == 16);
}

TEST_CASE("problems become one line each, and the right kind of exception") {
  CHECK(to_text(ScheduleProblem{"cycle", 4, 1, 3, "1B1", "it waits"}) == "cycle: rank 1, column 3, 1B1: it waits");
  CHECK(to_text(ScheduleProblem{"missing", 2, -1, -1, "", "gone"}) == "missing: gone");
  CHECK_NOTHROW(throw_if_any({}, "x"));
  CHECK_THROWS_AS(throw_if_any({{"duplicate", 2, 0, 0, "0F0", "x"}}, "x"), InputError);
  for (const int level : {1, 2, 3, 5, 8})
    CHECK_THROWS_AS(throw_if_any({{"x", level, 0, 0, "0F0", "x"}}, "x"), InputError);
  for (const int level : {4, 6, 7, 9}) CHECK_THROWS_AS(throw_if_any({{"x", level, 0, 0, "0F0", "x"}}, "x"), Infeasible);
}

}  // namespace stagecraft::validate_test
