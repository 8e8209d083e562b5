#include "sim/schedule_file/checks.hpp"

#include <doctest/doctest.h>

#include <set>

#include "sim/schedule_file/check_file.hpp"

namespace stagecraft::lint_test {
namespace {

std::vector<ScheduleProblem> warnings(const char* text) {
  const CheckedFile f = check_file(text, "x.csv", {.lint = true});
  REQUIRE(f.good());
  return f.warnings;
}
std::set<std::string> codes(const char* text) {
  std::set<std::string> result;
  for (const ScheduleProblem& p : warnings(text)) {
    CHECK(p.level == 10);
    result.insert(p.code);
  }
  return result;
}
using Codes = std::set<std::string>;

}  // namespace

TEST_CASE("a schedule of one rank has no warning") { CHECK(codes("0F0,0B0,0F1,0B1\n") == Codes{}); }

TEST_CASE("the timestep-locked runtime warns of an op after the column of its input") {
  CHECK(codes("0F0,0F1,,0B0,,0B1\n,1F0,1B0,1F1,1B1\n") == Codes{"exposed"});
  const auto tight = warnings("0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n");
  REQUIRE(tight.size() == 2);
  CHECK(tight[0].code == "timestep");
  CHECK(tight[0].op == "0B1");
  CHECK(tight[0].message ==
        "its input is made in column 3 of rank 1; the timestep-locked runtime needs idle cells at 2 such ops");
}

TEST_CASE("a split backward that fills no bubble is a warning") {
  CHECK(codes("0F0,0I0,0W0,0F1,0I1,0W1\n") == Codes{"split-backward", "idle-weight"});
}

TEST_CASE("a W that runs while its rank would wait is no warning") {
  // Rank 0 has 0B0 at 3 and 0B1 waits for 1I1 at 5: 0W0 runs at 4.
  CHECK(codes("0F0,0F1,,0I0,0W0,0I1,0W1\n,1F0,1I0,1F1,1I1,1W0,1W1\n").count("idle-weight") == 0);
}

TEST_CASE("cells of OVERLAP_F_B that are not a forward and a backward are a warning") {
  CHECK(codes("0F0,(0F1;0B0)OVERLAP_F_B,(0B1;0F2)OVERLAP_F_B,0B2\n") == Codes{});
  const auto result = warnings("0F0,(0F1;0F2)OVERLAP_F_B,(0B0;0B1)OVERLAP_F_B,0B2\n");
  REQUIRE(result.size() == 1);
  CHECK(to_text(result[0]) ==
        "overlap: rank 0, column 1, 0F2: OVERLAP_F_B is for a forward and a backward; PyTorch runs its ops here one "
        "after the other; and 1 more like this");
}

TEST_CASE("messages without UNSHARD are a warning") {
  CHECK(codes("0F0,0SEND_F0,0RECV_B0,0B0\n1RECV_F0,1F0,1B0,1SEND_B0\n") == Codes{"exposed", "unsharded"});
  CHECK(codes("0UNSHARD,0F0,0SEND_F0,0RECV_B0,0B0\n1UNSHARD,1RECV_F0,1F0,1B0,1SEND_B0\n") == Codes{"exposed"});
}

}  // namespace stagecraft::lint_test
