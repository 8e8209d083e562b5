// Streams of messages that can deadlock.

#include "sim/schedule_file/checks.hpp"

#include <doctest/doctest.h>

#include "sim/schedule_file/check_file.hpp"
#include "tests/support/schedules.hpp"

namespace stagecraft::rendezvous_test {
namespace {

std::vector<ScheduleProblem> run(const ActionTable& table, const Plan& plan, RendezvousOptions options) {
  REQUIRE(check_comms(table, plan, CommStreams::Direction).empty());
  return check_rendezvous(table, plan, options);
}

Schedule one_f_one_b(const Plan& plan) {
  Schedule schedule = test::build("1f1b", plan);
  for (auto& row : schedule.ranks) std::erase_if(row, [](const Op& op) { return op.kind == OpKind::Update; });
  return schedule;
}

}  // namespace

TEST_CASE("1F1B: a gradient and an activation cross, and neither side receives them") {
  const Plan plan = chain_plan(2, 2, 2);
  const ActionTable table = add_comms(one_f_one_b(plan), plan, CommsPlacement::JustInTime);
  // Rank 0: ... SEND_F1 then RECV_B0; rank 1: ... SEND_B0 then RECV_F1.
  for (const CommStreams streams : {CommStreams::Single, CommStreams::Pair}) {
    const auto problems = run(table, plan, {.streams = streams});
    REQUIRE(problems.size() == 1);
    CHECK(problems.front().code == "deadlock");
    CHECK(problems.front().level == 6);
    CHECK(problems.front().message ==
          "rank 0: 0SEND_F1 waits for rank 1 to receive; rank 1: 1SEND_B0 waits for rank 0 to receive");
    CHECK(problems.front().op == "0SEND_F1");
    CHECK(problems.front().column == 3);
    CHECK(run(table, plan, {.streams = streams, .grouped = true}).empty());
    CHECK(run(table, plan, {.streams = streams, .message = 1, .eager_below = 2}).empty());
    CHECK_FALSE(run(table, plan, {.streams = streams, .message = 2, .eager_below = 2}).empty());
  }
  CHECK(run(table, plan, {.streams = CommStreams::Direction}).empty());
}

TEST_CASE("a declared batch is one message group, whether neighbors are grouped or not") {
  const Plan plan = chain_plan(2, 2, 2);
  ActionTable table = add_comms(one_f_one_b(plan), plan, CommsPlacement::JustInTime);
  for (auto& row : table.ranks)
    for (std::size_t i = 0; i + 1 < row.size(); ++i) row[i].fused = row[i].is_message() && row[i + 1].is_message();
  CHECK(run(table, plan, {.streams = CommStreams::Single}).empty());
}

TEST_CASE("schedules that torch lowers never block, with any streams") {
  for (int p = 1; p <= 5; ++p)
    for (int m = 1; m <= 7; ++m) {
      const Plan plan = chain_plan(p, p, m);
      const ActionTable table = add_comms(one_f_one_b(plan), plan, CommsPlacement::Lowered);
      for (const CommStreams streams : {CommStreams::Single, CommStreams::Pair, CommStreams::Direction}) {
        CAPTURE(p);
        CAPTURE(m);
        CHECK(run(table, plan, {.streams = streams}).empty());
      }
    }
}

TEST_CASE("a batch waits for the ops of all it sends") {
  // Grouped, RECV_F1 starts only with SEND_B0, whose op needs nothing: fine. RECV_B0 with SEND_F1 as well.
  const Plan plan = chain_plan(2, 2, 1);
  ActionTable table = add_comms(test::schedule_from({"0F0 0B0", "1F0 1B0"}), plan, CommsPlacement::JustInTime);
  CHECK(run(table, plan, {.grouped = true}).empty());
  // Posted together, the send of 1B0 and the receive for 1F0 wait for 1B0, which waits for 1F0.
  table.ranks[1] = {{ActionKind::ReceiveForward, true, StageId{1}, 0},
                    {ActionKind::SendBackward, false, StageId{1}, 0},
                    {ActionKind::Forward, false, StageId{1}, 0},
                    {ActionKind::Backward, false, StageId{1}, 0}};
  const auto problems = check_rendezvous(table, plan, {});
  REQUIRE(problems.size() == 1);
  CHECK(problems.front().message == "rank 1: 1F0 waits for what it receives; rank 1: 1SEND_B0 waits for its op");
}

TEST_CASE("the messages in the file are simulated, in its columns") {
  FileCheckOptions options;
  options.rendezvous = RendezvousOptions{};
  const std::string text =
      "0UNSHARD,0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1\n"
      "1UNSHARD,1RECV_F0,1F0,1B0,1SEND_B0,1RECV_F1,1F1,1B1,1SEND_B1\n";
  const CheckedFile f = check_file(text, "x.csv", options);
  REQUIRE(f.problems.size() == 1);
  CHECK(f.problems.front().code == "deadlock");
  CHECK(f.problems.front().rank == 0);
  CHECK(f.problems.front().column == 4);
  options.rendezvous->grouped = true;
  CHECK(check_file(text, "x.csv", options).good());
  const CheckedFile bare = check_file("0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n", "x.csv", options);
  CHECK(bare.good());
}

}  // namespace stagecraft::rendezvous_test
