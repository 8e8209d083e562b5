// Ops of devices that share one memory, whose times follow by hand: each goes on at the pace it has alone, unless its
// part of the memory's bandwidth (max-min) is less. tests/differential compares random ones with SimGrid.

#include <doctest/doctest.h>

#include <vector>

#include "backends/backend.hpp"
#include "sim/cluster/conditions.hpp"
#include "sim/core/diagnostic.hpp"
#include "tests/support/clusters.hpp"
#include "tests/support/program_builder.hpp"

namespace stagecraft::backends {
extern const BackendDef fluid;
}

using namespace stagecraft;
using test::ProgramBuilder;

namespace {

constexpr double kMemory = 4e12;  // Bytes read and written in a second.

/// Messages at a quarter of what copies could have of the memory, if alone.
Cluster parts(int count) {
  Cluster cluster = test::bare_cluster(count);
  std::vector<int> devices;
  for (int d = 0; d < count; ++d) devices.push_back(d);
  test::connect(cluster, devices, kMemory / 8, 0, Duplex::Unshared);
  test::connect(cluster, devices, kMemory / 2, 0, Duplex::Half);
  for (int from = 0; from < count; ++from)
    for (int to = 0; to < count; ++to)
      if (from != to)
        cluster.routes.push_back({DeviceId{from}, DeviceId{to}, {{LinkId{0}, from < to}, {LinkId{1}, from < to}}});
  for (Device& d : cluster.devices) d.memory = LinkId{1};
  return cluster;
}

/// Seconds that an op takes alone, and the share of the memory's bandwidth that it then asks for.
struct Op {
  double seconds, share;
};

/// Device d runs row d in order.
Program program_of(const std::vector<std::vector<Op>>& rows) {
  ProgramBuilder builder(static_cast<int>(rows.size()));
  IdVector<InstructionId, double> traffic;
  for (std::size_t d = 0; d < rows.size(); ++d)
    for (const Op& op : rows[d]) {
      builder.compute(static_cast<int>(d), op.seconds);
      traffic.push_back(op.seconds * op.share * kMemory);
    }
  Program program = builder.build();
  program.traffic = traffic;
  return program;
}

std::vector<double> ends(const std::vector<std::vector<Op>>& rows) {
  const Timeline t = backends::fluid.run(program_of(rows), parts(static_cast<int>(rows.size())), {});
  return {t.end.begin(), t.end.end()};
}

void check(const std::vector<double>& seen, const std::vector<double>& expected) {
  REQUIRE(seen.size() == expected.size());
  for (std::size_t i = 0; i < seen.size(); ++i) CHECK(seen[i] == doctest::Approx(expected[i]).epsilon(1e-9));
}

}  // namespace

TEST_CASE("alone an op takes the time it is said to take, whatever it reads and writes") {
  check(ends({{{1, 0}, {1, 0.3}, {1, 1}}}), {1, 2, 3});
}

TEST_CASE("two that could each use all of the memory run at half speed") { check(ends({{{1, 1}}, {{1, 1}}}), {2, 2}); }

TEST_CASE("one bound by memory and one by arithmetic do not slow each other") {
  check(ends({{{1, 0.8}}, {{1, 0.2}}}), {1, 1});
  check(ends({{{1, 1}}, {{1, 0}}}), {1, 1});
}

TEST_CASE("who asks for less than an even share gets it, the others share the rest") {
  // 0.25, and 0.375 for each of the two that want all. At 1 s the first is done: half each for 0.625 of the work.
  check(ends({{{1, 0.25}}, {{1, 1}}, {{1, 1}}}), {1, 2.25, 2.25});
}

TEST_CASE("rates are recomputed at every start and end") {
  // From 0.5 s on both want all: the first has half its work before it and needs 1 s, the second has then half of its
  // own and takes all for 0.5 s.
  check(ends({{{1, 1}}, {{0.5, 0}, {1, 1}}}), {1.5, 0.5, 2});
}

TEST_CASE("messages are copies in the same memory: each byte is read and written") {
  ProgramBuilder builder(3);
  builder.send(0, 1, static_cast<std::uint64_t>(kMemory / 8));  // 1 s alone, a quarter of the memory.
  builder.compute(2, 1);
  Program program = builder.build();
  program.traffic = {0, 0, kMemory};  // The op gets three quarters of it for 1 s, then all.
  const Timeline t = backends::fluid.run(program, parts(3), {});
  CHECK(t.end[InstructionId{0}] == doctest::Approx(1).epsilon(1e-9));
  CHECK(t.end[InstructionId{2}] == doctest::Approx(1.25).epsilon(1e-9));
}

TEST_CASE("ops of devices with a memory of their own do not meet") {
  Cluster cluster = parts(2);
  for (Device& d : cluster.devices) d.memory = LinkId{};
  const Timeline t = backends::fluid.run(program_of({{{1, 1}}, {{1, 1}}}), cluster, {});
  CHECK(t.end[InstructionId{0}] == 1);
  CHECK(t.end[InstructionId{1}] == 1);
}

TEST_CASE("jitter stretches an op and slows its pace; a change of speed is refused in words") {
  Cluster cluster = parts(2);
  cluster.jitter = {0.5, 7};
  const Program program = program_of({{{1, 0.4}}, {{1, 0.4}}});
  const Timeline t = backends::fluid.run(program, cluster, {});
  const Conditions conditions(cluster);
  for (int d = 0; d < 2; ++d)  // Slower ops ask for less, so none waits.
    CHECK(t.end[InstructionId{d}] == doctest::Approx(conditions.compute(DeviceId{d}, d, 0, 1).end).epsilon(1e-9));
  Change slower;
  slower.devices = {DeviceId{1}};
  slower.rate = 0.5;
  cluster.changes.push_back(slower);
  try {
    backends::fluid.run(program, cluster, {});
    FAIL("not refused");
  } catch (const InputError& e) {
    CHECK(e.problems().front().message ==
          "'d1' shares its memory with others, and devices that do cannot change their speed");
  }
}
