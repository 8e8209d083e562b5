// Copies of stashes in a program: what they wait for, on which streams, and which memory they take and free.

#include <doctest/doctest.h>

#include "tests/support/listing.hpp"
#include "tests/support/road.hpp"

#include "sim/program/offload.hpp"

namespace stagecraft::offload_test {
namespace {

/// Devices with a host each, on a link of their own in both directions.
Cluster with_hosts(int devices, bool full_duplex) {
  Cluster cluster = test::delay_cluster(devices, 0);
  for (Device& d : cluster.devices) {
    d.host_memory = static_cast<int>(cluster.memories.size());
    cluster.memories.push_back({d.host, Bytes{1e6}});
    for (LinkId* link : {&d.down, &d.up}) {
      if (link == &d.up && !full_duplex) continue;
      *link = cluster.links.push_back({.name = "to host", .bandwidth = Bandwidth{1000}, .latency = {}});
    }
    if (!full_duplex) d.up = d.down;
  }
  return cluster;
}

/// GPipe on two stages with two micro-batches, at the times of a run alone.
struct Case {
  Plan plan = chain_plan(2, 2, 2);
  Program program;
  Timeline base;

  Case() {
    StageCost cost = test::times(1, 2);
    cost.memory.stash = Bytes{100};
    program = test::program_of("gpipe", plan, uniform_costs(plan, cost), test::pure_delays());
    for (const Instruction& i : program.instructions) {
      double start = 0;
      const InstructionId id = base.start.next_id();
      for (const InstructionId w : program.waits_for(id)) start = std::max(start, base.end[w]);
      if (i.kind == InstructionKind::Receive) start = std::max(start, base.end[program.transfer(i).send]);
      base.start.push_back(start);
      base.end.push_back(start + i.duration.value);
    }
  }

  Program offloaded(double share, bool full_duplex = true, int ahead = 1) const {
    const Program copies = with_offloaded_stashes(program, plan, with_hosts(2, full_duplex), base, ahead,
                                                  [share](const Instruction&) { return share; });
    check_program(copies);
    return copies;
  }
};

std::string line_of(const std::string& text, const std::string& start) {
  const std::size_t at = text.find("\n" + start);
  return at == text.npos ? "" : text.substr(at + 1, text.find('\n', at + 1) - at - 1);
}

}  // namespace

TEST_CASE("a stash goes down after its forward, and up when it is down and the op before the backward starts") {
  const std::string text = test::listing(Case().offloaded(0.5));
  CHECK(line_of(text, "0F0.D2H") == "0F0.D2H after 0F0");
  CHECK(line_of(text, "0F1.D2H") == "0F1.D2H after 0F1, 0F0.D2H");
  CHECK(line_of(text, "0B0.H2D") == "0B0.H2D after 0F1, 0F0.D2H");
  CHECK(line_of(text, "0B1.H2D") == "0B1.H2D after 0B0, 0F1.D2H, 0B0.H2D");
  CHECK(line_of(text, "0B1 ").ends_with("0B1.H2D"));
}

TEST_CASE("two places ahead, a stash is asked for one op sooner") {
  CHECK(line_of(test::listing(Case().offloaded(0.5, true, 2)), "0B1.H2D") == "0B1.H2D after 0F1, 0F1.D2H, 0B0.H2D");
}

TEST_CASE("where the directions share a link, one copy engine runs all copies in order") {
  const std::string text = test::listing(Case().offloaded(0.5, false));
  CHECK(line_of(text, "0B0.H2D") == "0B0.H2D after 0F1, 0F0.D2H");
  CHECK(line_of(text, "0F1.D2H") == "0F1.D2H after 0F1, 0B0.H2D");
}

TEST_CASE("the part that moves is on the device until it is down, and from its way up on; else on the host") {
  const std::string text = test::buffers_text(Case().offloaded(0.3), 0);
  CHECK(text.find("stash 0F0..0B0 70\n") != text.npos);
  CHECK(text.find("boundary 0F0..0F0.D2H 30\n") != text.npos);
  CHECK(text.find("boundary 0B0.H2D..0B0 30\n") != text.npos);
  CHECK(text.find("host 0F0.D2H..0B0.H2D 30\n") != text.npos);
}

TEST_CASE("a share of zero leaves the program as it is") {
  const Case c;
  CHECK(test::listing(c.offloaded(0)) == test::listing(c.program));
}

TEST_CASE("a link that is too slow moves nothing, or with `partly` what there is time for") {
  const Case c;
  Cluster cluster = with_hosts(2, true);
  for (Link& link : cluster.links)
    if (link.ends.empty()) link.bandwidth = Bandwidth{10};
  const auto whole = [](const Instruction&) { return 1.0; };
  const auto moved = [&](bool partly) {
    return test::buffers_text(with_offloaded_stashes(c.program, c.plan, cluster, c.base, 1, whole, partly), 0);
  };
  CHECK(moved(false) == test::buffers_text(c.program, 0));
  // From the end of 0F0 at 1 to the start of 0B0 at 5 seconds: 20 bytes down and up.
  CHECK(moved(true).find("host 0F0.D2H..0B0.H2D 20\n") != std::string::npos);
}

}  // namespace stagecraft::offload_test
