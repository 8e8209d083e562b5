// Messages between ops: their position, their errors, and what PyTorch accepts.

#include "sim/schedule_file/comms.hpp"

#include <doctest/doctest.h>

#include "sim/schedule_file/check_file.hpp"
#include "tests/support/checked.hpp"
#include "tests/support/schedules.hpp"

namespace stagecraft::comms_test {
using test::schedule_from;

namespace {

// 1F1B, p = 2, m = 2: small enough to write every message by hand.
const std::string kFirst = "0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1";
const std::string kLast = "1RECV_F0,1F0,1RECV_F1,1B0,1SEND_B0,1F1,1B1,1SEND_B1";

CheckedFile checked(const std::string& text, const FileCheckOptions& options = {}) {
  return check_file(text, "x.csv", options);
}

void refuses(const std::string& text, const char* code, int level, int rank, int column, const char* op,
             const FileCheckOptions& options = {}) {
  CAPTURE(text);
  const CheckedFile f = checked(text, options);
  REQUIRE_FALSE(f.good());
  const ScheduleProblem& p = f.cells.empty() ? f.problems.front() : f.cells.front().problem;
  CAPTURE(to_text(p));
  CHECK(p.code == code);
  CHECK(p.level == level);
  CHECK(p.rank == rank);
  CHECK(p.column == column);
  CHECK(p.op == op);
}

std::string with(std::string text, const std::string& old, const std::string& fresh) {
  const std::size_t at = text.find(old);
  REQUIRE(at != std::string::npos);
  return text.replace(at, old.size(), fresh);
}

}  // namespace

TEST_CASE("messages of a small pipeline equal those by hand") {
  const Plan plan = chain_plan(2, 2, 2);
  const Schedule order = schedule_from({"0F0 0F1 0B0 0B1", "1F0 1B0 1F1 1B1"});
  CHECK(to_csv(add_comms(order, plan, CommsPlacement::Lowered)) == kFirst + "\n" + kLast + "\n");
  CHECK(to_csv(add_comms(order, plan, CommsPlacement::JustInTime)) ==
        kFirst + "\n1RECV_F0,1F0,1B0,1SEND_B0,1RECV_F1,1F1,1B1,1SEND_B1\n");
  CHECK(to_csv(add_comms(order, plan, CommsPlacement::Prefetch)) ==
        "0F0,0SEND_F0,0RECV_B0,0F1,0SEND_F1,0RECV_B1,0B0,0B1\n1RECV_F0,1F0,1RECV_F1,1B0,1SEND_B0,1F1,1B1,1SEND_B1\n");
  CHECK(to_csv(lower_for_torch(order, plan, TorchVersion::V2_8)) ==
        "0UNSHARD," + kFirst + "\n1UNSHARD," + kLast + "\n");
  CHECK(to_csv(lower_for_torch(order, plan, TorchVersion::V2_11)) ==
        "0UNSHARD," + kFirst + ",0REDUCE_GRAD,0RESHARD\n1UNSHARD," + kLast + ",1REDUCE_GRAD,1RESHARD\n");
}

TEST_CASE("stages on one rank need no message, and overlapping ops send after both") {
  Plan plan = chain_plan(2, 1, 1);
  CHECK(to_csv(add_comms(schedule_from({"0F0 1F0 1B0 0B0"}), plan, CommsPlacement::Lowered)) == "0F0,1F0,1B0,0B0\n");
  plan = chain_plan(2, 2, 2);
  const Schedule order = schedule_from({"0F0 0F1+ 0B0 0B1", "1F0 1B0 1F1 1B1"});
  CHECK(to_csv(add_comms(order, plan, CommsPlacement::Lowered)) ==
        "0F0,0SEND_F0,0RECV_B0,(0F1;0B0)OVERLAP_F_B,0SEND_F1,0RECV_B1,0B1\n"
        "1RECV_F0,1F0,1B0,1SEND_B0,1RECV_F1,1F1,1B1,1SEND_B1\n");
}

TEST_CASE("at most three stages of a rank are gathered, the next to be used") {
  const Plan plan = chain_plan(5, 1, 1);
  const std::string text =
      to_csv(lower_for_torch(schedule_from({"0F0 1F0 2F0 3F0 4F0 4B0 3B0 2B0 1B0 0B0"}), plan, TorchVersion::V2_11));
  CHECK(text ==
        "0UNSHARD,1UNSHARD,2UNSHARD,0F0,0RESHARD,3UNSHARD,1F0,1RESHARD,4UNSHARD,2F0,3F0,4F0,4B0,4REDUCE_GRAD,4RESHARD,"
        "1UNSHARD,3B0,3REDUCE_GRAD,3RESHARD,0UNSHARD,2B0,2REDUCE_GRAD,2RESHARD,1B0,1REDUCE_GRAD,1RESHARD,0B0,"
        "0REDUCE_GRAD,0RESHARD\n");
  CHECK(checked(text, {.torch = TorchVersion::V2_11}).good());
}

TEST_CASE("an order that can never run is refused when it is lowered") {
  CHECK_THROWS_AS(
      add_comms(schedule_from({"0F0 0B0 0F1 0B1", "1F1 1B1 1F0 1B0"}), chain_plan(2, 2, 2), CommsPlacement::Lowered),
      Infeasible);
  CHECK_THROWS_AS(
      add_comms(schedule_from({"0F0", "1F0", "2F0"}), test::dag_plan(3, 1, {{0, 1}, {0, 2}}), CommsPlacement::Lowered),
      InputError);
}

TEST_CASE("level 5: each broken rule has its code and place") {
  const std::string good = kFirst + "\n" + kLast + "\n";
  REQUIRE(checked(good).good());
  refuses(with(good, ",0SEND_F1", ""), "unmatched-receive", 5, 1, 2, "1RECV_F1");
  refuses(with(good, ",1RECV_F1", ""), "unmatched-send", 5, 0, 3, "0SEND_F1");
  refuses(with(with(good, ",1RECV_F1", ""), ",0SEND_F1", ""), "missing-message", 5, 1, 4, "1F1");
  refuses(with(good, "0F1,0SEND_F1", "0SEND_F1,0F1"), "send-before-op", 5, 0, 2, "0SEND_F1");
  refuses(with(good, "0RECV_B1,0B1", "0B1,0RECV_B1"), "receive-after-use", 5, 0, 7, "0RECV_B1");
  refuses(with(good, "1SEND_B1", "1SEND_B1,1SEND_B1"), "duplicate", 5, 1, 8, "1SEND_B1");
  refuses(with(good, "1SEND_B1", "1SEND_B1,1SEND_F1"), "no-peer", 5, 1, 8, "1SEND_F1");
  refuses(with(good, "0F0,", "0F0,0RECV_F0,"), "no-peer", 5, 0, 1, "0RECV_F0");
  refuses(with(good, "0F0,", "0F0,1SEND_B0,"), "wrong-rank", 5, 0, 1, "1SEND_B0");
  refuses(with(good, "1SEND_B1", "1SEND_B1,1SEND_B2"), "out-of-range", 5, 1, 8, "1SEND_B2");
  refuses(with(good, "1SEND_B1", "1SEND_B1,2SEND_B0"), "out-of-range", 5, 1, 8, "2SEND_B0");
  refuses("0F0,0SEND_F0,1F0,1B0,0B0\n", "co-located", 5, 0, 1, "0SEND_F0");
}

TEST_CASE("level 5: the n-th receive from a rank gets its n-th send") {
  const std::string good = "0F0,0F1,0SEND_F0,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1\n" + kLast + "\n";
  CHECK(checked(good).good());
  refuses(with(good, "0SEND_F0,0SEND_F1", "0SEND_F1,0SEND_F0"), "channel-order", 5, 1, 0, "1RECV_F0");
  // Two ranks, four stages in a V: rank 0 sends an activation and a gradient to rank 1. Apart in their own channels.
  const std::string v =
      "0F0,0SEND_F0,3RECV_F0,3F0,3B0,0F1,0SEND_F1,3SEND_B0,3RECV_F1,3F1,3B1,3SEND_B1,0RECV_B0,0B0,0RECV_B1,0B1\n"
      "1RECV_F0,1F0,2F0,2SEND_F0,2RECV_B0,1RECV_F1,1F1,2F1,2SEND_F1,2B0,1B0,1SEND_B0,2RECV_B1,2B1,1B1,1SEND_B1\n";
  FileCheckOptions options;
  CHECK(checked(v, options).good());
  options.rendezvous = RendezvousOptions{.streams = CommStreams::Single};
  refuses(v, "channel-order", 5, 1, 4, "2RECV_B0", options);
}

TEST_CASE("level 8: weights are gathered once before use, and reduced once after the last backward") {
  const std::string good =
      "0UNSHARD," + kFirst + ",0REDUCE_GRAD,0RESHARD\n1UNSHARD," + kLast + ",1REDUCE_GRAD,1RESHARD\n";
  REQUIRE(checked(good, {.torch = TorchVersion::V2_11}).good());
  REQUIRE(checked(good).good());
  refuses(with(good, "0UNSHARD,0F0", "0F0,0UNSHARD"), "sharded", 8, 0, 0, "0F0");
  refuses(with(good, "0F0,", "0F0,0UNSHARD,"), "unshard-twice", 8, 0, 2, "0UNSHARD");
  refuses(with(good, "0RESHARD", "0RESHARD,0RESHARD"), "reshard-twice", 8, 0, 11, "0RESHARD");
  refuses(with(good, ",0RESHARD", ""), "never-resharded", 8, 0, -1, "0RESHARD");
  refuses(with(good, ",1REDUCE_GRAD", ""), "never-reduced", 8, 1, -1, "1REDUCE_GRAD");
  refuses(with(good, "1B1,1SEND_B1,1REDUCE_GRAD", "1REDUCE_GRAD,1B1,1SEND_B1"), "reduce-early", 8, 1, 7,
          "1REDUCE_GRAD");
  refuses(with(good, "0REDUCE_GRAD", "0REDUCE_GRAD,0REDUCE_GRAD"), "reduce-twice", 8, 0, 10, "0REDUCE_GRAD");
  refuses(with(good, "0UNSHARD", "0UNSHARD,1UNSHARD"), "wrong-rank", 8, 0, 1, "1UNSHARD");
  refuses(with(good, "0UNSHARD", "0UNSHARD,7UNSHARD"), "out-of-range", 8, 0, 1, "7UNSHARD");
  // 2.8 never reshards at the end and knows no REDUCE_GRAD; 2.11 without it would not scale the gradients.
  const std::string old = "0UNSHARD," + kFirst + "\n1UNSHARD," + kLast + "\n";
  CHECK(checked(old, {.torch = TorchVersion::V2_8}).good());
  CHECK(checked(old).good());
  refuses(old, "never-resharded", 8, 0, -1, "0RESHARD", {.torch = TorchVersion::V2_11});
  refuses(kFirst + "\n" + kLast + "\n", "never-reduced", 8, 0, -1, "0REDUCE_GRAD", {.torch = TorchVersion::V2_11});
}

TEST_CASE("what a version of PyTorch cannot express is refused with its reason") {
  const FileCheckOptions v28{.torch = TorchVersion::V2_8}, v211{.torch = TorchVersion::V2_11};
  refuses("0F0,0R0,0B0\n", "torch", 1, 0, 1, "0R0", v211);
  refuses("0UNSHARD,0F0,0B0,0REDUCE_GRAD\n", "torch", 1, 0, 3, "0REDUCE_GRAD", v28);
  const std::string overlap = "0F0,(0F1;0B0)OVERLAP_F_B,0B1\n";
  CHECK(checked(overlap, v211).good());
  refuses(overlap, "torch", 1, 0, 1, "(0F1;0B0)OVERLAP_F_B", v28);
  refuses("0F0,3F1,3B1,0B0\n1F0,2F1,2B1,1B0\n", "torch", 1, -1, -1, "", v211);
  FileCheckOptions slices = v211;
  slices.slices = 2;
  refuses("0F0,0F1,0B1,0B0\n", "torch", 1, -1, -1, "", slices);
  CHECK_THROWS_AS(torch_version("2.9"), InputError);

  const auto why = [](const std::vector<std::string>& rows, const Plan& plan) {
    const auto problems = why_not_torch(actions_of(schedule_from(rows)), plan, 1, TorchVersion::V2_8);
    return problems.empty() ? std::string() : to_text(problems.front());
  };
  CHECK(why({"0F0 0B0", "1F0 1B0"}, chain_plan(2, 2, 1)).empty());
  CHECK(why({"0F0 0R0 0B0"}, chain_plan(1, 1, 1)).find("recomputation") != std::string::npos);
  CHECK(why({"0F0 0B0 0U0"}, chain_plan(1, 1, 1)).find("update") != std::string::npos);
  CHECK(why({"0F0 0F1+ 0B0 0B1"}, chain_plan(1, 1, 2)).find("OVERLAP") != std::string::npos);
  CHECK(why({"0F0 0B0", "1F0 1B0", "2F0 2B0"}, test::dag_plan(3, 1, {{0, 1}, {0, 2}})).find("neighbors") !=
        std::string::npos);
  Plan replicas = chain_plan(1, 1, 2);
  replicas.stages[StageId{0}].place_on({DeviceId{0}, DeviceId{1}});
  CHECK(why({"0F0 0B0", "0F0 0B0"}, replicas).find("replicas") != std::string::npos);
}

TEST_CASE("a lowered file has no empty cells, a compute-only one may") {
  CHECK(checked("0F0,,0B0\n").good());
  refuses("0UNSHARD,,0F0,0B0\n", "empty-cell", 1, 0, 1, "");
  refuses("0UNSHARD,0F0,0B0,\n", "empty-cell", 1, 0, 3, "");
  CHECK(checked("0F0,0B0,0REDUCE_GRAD\n\n").good());  // A rank without work.
}

}  // namespace stagecraft::comms_test
