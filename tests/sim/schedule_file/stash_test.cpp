// Memory along the order of one rank, computed by hand.

#include "sim/schedule_file/checks.hpp"

#include <doctest/doctest.h>

#include "sim/schedule_file/check_file.hpp"
#include "tests/support/schedules.hpp"

namespace stagecraft::stash_test {
namespace {

StashPeak peak(const char* row, const StashModel& model, int micro_batches = 2) {
  return stash_peaks(actions_of(test::schedule_from({row})), chain_plan(1, 1, micro_batches), model).front();
}

}  // namespace

TEST_CASE("a stash lives from F to B, or in shares until I and until W") {
  CHECK(peak("0F0 0F1 0B0 0B1", {}).size == 2);
  CHECK(peak("0F0 0F1 0B0 0B1", {}).index == 1);
  CHECK(peak("0F0 0B0 0F1 0B1", {.each_stash = 3, .resident = 10}).size == 13);
  CHECK(peak("0F0 0I0 0F1 0I1 0W0 0W1", {}).size == 2);
  CHECK(peak("0F0 0I0 0F1 0I1 0W0 0W1", {.freed_at_input = 0.75}).size == 1.25);
  CHECK(peak("0F0 0I0 0F1 0I1 0W0 0W1", {.freed_at_input = 1}).size == 1);
  CHECK(peak("0F0 0F1 0B0 0B1", {.stash = {5}}).size == 10);
}

TEST_CASE("ops that run as one allocate before any of them frees") {
  CHECK(peak("0F0 0F1+ 0B0 0B1", {}).size == 2);
  CHECK(peak("0F0 0B0 0F1 0B1", {}).size == 1);
}

TEST_CASE("a stage that recomputes keeps its share, and R brings the rest back") {
  CHECK(peak("0F0 0F1 0R0 0B0 0R1 0B1", {.each_stash = 8, .kept_for_recompute = 0.25}).size == 10);
  CHECK(peak("0F0 0F1 0R0 0B0 0R1 0B1", {.each_stash = 8}).size == 8);
}

TEST_CASE("messages take memory from RECV to their use, and from the op to SEND") {
  const std::string text = "0F0,0SEND_F0,0RECV_B0,0B0\n1RECV_F0,1F0,1B0,1SEND_B0\n";
  FileCheckOptions options;
  options.memory = {.each_stash = 1, .message = 10};
  const CheckedFile f = check_file(text, "x.csv", options);
  const auto peaks = stash_peaks(f.csv.actions, f.plan, options.memory);
  CHECK(peaks[0].size == 11);  // 0F0 and its output, later the gradient and the stash.
  CHECK(peaks[1].size == 11);  // The input and the stash; the output of 1B0 comes when the input is gone.
}

TEST_CASE("level 7: the first action that does not fit is named, with the excess") {
  FileCheckOptions options;
  options.memory.capacity = 3;
  const std::string text = "0F0,,0F1,0F2,0F3,0B0,0B1,0B2,0B3\n1F0,1B0,1F1,1B1,1F2,1B2,1F3,1B3\n";
  const CheckedFile f = check_file(text, "x.csv", options);
  REQUIRE(f.problems.size() == 1);
  CHECK(to_text(f.problems.front()) == "memory: rank 0, column 4, 0F3: 4 are needed here and 3 are there, 1 too many");
  CHECK(f.problems.front().level == 7);
  CHECK(cannot_be_done(f.problems.front()));
  options.memory.capacity = 4;
  CHECK(check_file(text, "x.csv", options).good());
  options.memory = {.each_stash = 0.2, .capacity = 0.4};
  CHECK(check_file(text, "x.csv", options).problems.front().message ==
        "0.6 are needed here and 0.4 are there, 0.2 too many");
}

}  // namespace stagecraft::stash_test
