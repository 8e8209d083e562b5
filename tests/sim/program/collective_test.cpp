#include <doctest/doctest.h>

#include "sim/program/check.hpp"
#include "sim/program/program.hpp"
#include "tests/support/program_builder.hpp"

namespace stagecraft::collective_test {

TEST_CASE("a collective is written with the letters of its kind") {
  const struct {
    CollectiveKind kind;
    const char* text;
  } cases[] = {{CollectiveKind::AllReduce, "0AR0"},
               {CollectiveKind::ReduceScatter, "0RS0"},
               {CollectiveKind::AllGather, "0AG0"},
               {CollectiveKind::AllToAll, "0A2A0"},
               {CollectiveKind::Broadcast, "0BC0"}};
  for (const auto& c : cases) {
    test::ProgramBuilder builder(2);
    const auto members = builder.collective(c.kind, collective_algorithms::ring, {0, 1}, 8);
    const Program program = builder.build();
    CHECK_NOTHROW(check_program(program));
    CHECK(to_text(program, members[0]) == c.text);
  }
}

TEST_CASE("a program has the phases of each shape, and their routes in a row") {
  test::ProgramBuilder builder(4);
  builder.collective(CollectiveKind::AllGather, collective_algorithms::hierarchical, {3, 1, 0, 2}, 80, {},
                     {0, 0, 1, 1});
  const Program program = builder.build();
  const auto phases = program.phases_of(program.collectives[0]);
  REQUIRE(phases.size() == 2);
  CHECK(phases[0].bytes == 20);  // Half of what two devices of different nodes have, then half of all.
  CHECK(phases[1].bytes == 40);
  const std::vector<std::pair<int, int>> expected = {{3, 0}, {0, 3}, {1, 2}, {2, 1}, {3, 1}, {1, 3}, {0, 2}, {2, 0}};
  REQUIRE(program.routes.size() == expected.size());
  for (std::size_t r = 0; r < expected.size(); ++r)
    CHECK(program.routes[r] == RouteEnds{DeviceId{expected[r].first}, DeviceId{expected[r].second}});
}

}  // namespace stagecraft::collective_test
