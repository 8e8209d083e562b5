// Utilization of a link over a run, and the changes of a machine as times.

#include "sim/result/link_use.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>
#include <vector>

#include "sim/output/json_files.hpp"
#include "tests/support/clusters.hpp"
#include "tests/support/ideal.hpp"
#include "tests/support/program_builder.hpp"
#include "tests/support/random_cases.hpp"

namespace stagecraft::link_use_test {
using ParsedJson = nlohmann::json;

namespace {

/// Forward, send, backward and the send back, one second each: 0F 0..1, 1F 2..3, 1B 3..4, 0B 5..6.
struct Case {
  Plan plan = test::dag_plan(2, 1, {{0, 1}}, 8);
  Program program = test::program_of("gpipe", plan, uniform_costs(plan, test::times(1, 1)));
  Cluster cluster = test::star(2, 8, 0);
  Timeline timeline = test::run_ideal(program, cluster);
  Report report = measure(program, timeline, cluster);
};

}  // namespace

TEST_CASE("a link is in use while a message is on it") {
  const Case c;
  REQUIRE(c.report.length.value == 6);
  REQUIRE(c.report.links.size() == 4);
  const auto use = link_use(c.program, c.timeline, c.cluster, c.report, 12);
  for (std::size_t l = 0; l < use.size(); ++l) {
    // From device 0 by its link forward, to device 1 by the other backward; and back again.
    const LinkReport& link = c.report.links[l];
    const bool there = (link.link == LinkId{0}) == link.forward;
    std::vector<double> expected(12, 0);
    for (const std::size_t part : there ? std::vector<std::size_t>{2, 3} : std::vector<std::size_t>{8, 9})
      expected[part] = 1;
    for (std::size_t part = 0; part < 12; ++part) CHECK(use[l][part] == doctest::Approx(expected[part]));
  }
  // Parts of 6/4 s: 1..2 lies a half in each of the first two, so two thirds of half a second each.
  const auto coarse = link_use(c.program, c.timeline, c.cluster, c.report, 4);
  for (std::size_t l = 0; l < coarse.size(); ++l) {
    const bool there = (c.report.links[l].link == LinkId{0}) == c.report.links[l].forward;
    CHECK(coarse[l][there ? 0 : 2] == doctest::Approx(1.0 / 3));
    CHECK(coarse[l][there ? 1 : 3] == doctest::Approx(1.0 / 3));
  }
}

TEST_CASE("the mean over the run is the utilization of the link") {
  test::Draw draw{Rng(5, "link use")}, draw_ties{Rng(5, "ties")};
  std::size_t links = 0;
  for (int trial = 0; trial < 60; ++trial) {
    test::RandomCase c = test::random_case(draw, 4);
    add_ties(c, draw_ties);
    if (!c.options.overlap) c.options.rendezvous = false;
    CAPTURE(to_text(c));
    const Program program = test::program_of(c);
    const Cluster cluster = test::star(program.devices, 1e9, 1e-6, trial % 3 == 0 ? Duplex::Half : Duplex::Full);
    const Timeline timeline = test::run_ideal(program, cluster);
    const Report report = measure(program, timeline, cluster);
    const auto use = link_use(program, timeline, cluster, report, 7);
    REQUIRE(use.size() == report.links.size());
    for (std::size_t l = 0; l < use.size(); ++l, ++links)
      CHECK(std::accumulate(use[l].begin(), use[l].end(), 0.0) / 7 ==
            doctest::Approx(report.links[l].utilisation).epsilon(1e-9));
  }
  CHECK(links > 100);  // Else nothing was put to the test.
}

TEST_CASE("ops use the memory that their devices share") {
  constexpr double kMemory = 8;  // Bytes read and written in a second; copies have half.
  Cluster cluster = test::bare_cluster(3);
  test::connect(cluster, {0, 1, 2}, kMemory / 2, 0, Duplex::Half);
  cluster.devices[DeviceId{0}].memory = cluster.devices[DeviceId{1}].memory = LinkId{0};
  test::ProgramBuilder builder(3);
  for (int device = 0; device < 3; ++device) builder.compute(device, 1);
  Program program = builder.build();
  program.traffic = {kMemory, kMemory, 0};

  // Each could have all of the memory for a second; together they take two, and leave nothing of it.
  Timeline shared;
  shared.start = {0, 0, 0}, shared.end = {2, 2, 1};
  const Report both = measure(program, shared, cluster);
  REQUIRE(both.links.size() == 1);
  CHECK(both.links[0].link == LinkId{0});
  CHECK(both.links[0].traffic.value == kMemory);
  CHECK(both.links[0].utilisation == 1);
  CHECK(link_use(program, shared, cluster, both, 4).at(0) == std::vector<double>{1, 1, 1, 1});

  // Without contention they ask for twice what there is.
  const Timeline alone = test::run_ideal(program, cluster);
  const Report ideal = measure(program, alone, cluster);
  CHECK(ideal.length.value == 1);
  CHECK(ideal.links.at(0).utilisation == 2);

  // One ends after half of the run: the other has the memory to itself, and needs half of it.
  shared.start = {0, 1, 0}, shared.end = {1, 2, 1};
  program.traffic = {kMemory, kMemory / 2, 0};
  const Report turns = measure(program, shared, cluster);
  CHECK(turns.links.at(0).utilisation == 0.75);
  CHECK(link_use(program, shared, cluster, turns, 2).at(0) == std::vector<double>{1, 0.5});
}

TEST_CASE("a link carries the bytes of all phases and rounds of a collective") {
  test::ProgramBuilder builder(3);
  builder.collective(CollectiveKind::AllReduce, collective_algorithms::tree, {0, 1, 2}, 100, {}, {}, 2);
  builder.collective(CollectiveKind::AllToAll, collective_algorithms::direct, {0, 1, 2}, 30);
  Program program = builder.build();
  program.updates.assign(3, 2);  // Both belong to the one iteration.
  const Cluster cluster = test::star(3, 8, 0);
  const Timeline timeline = test::run_ideal(program, cluster);
  const Report report = measure(program, timeline, cluster);
  double traffic[3][2] = {};
  for (const LinkReport& link : report.links) traffic[link.link.value][link.forward] = link.traffic.value;
  // Device 0 exchanges the array with 1 and with 2, up and down; twice. Then each sends a third to each other one.
  const double expected[] = {2 * 200 + 20, 2 * 100 + 20, 2 * 100 + 20};
  for (int d = 0; d < 3; ++d)
    for (const int way : {0, 1}) CHECK(traffic[d][way] == expected[d]);
  const auto use = link_use(program, timeline, cluster, report, 1);
  for (std::size_t l = 0; l < use.size(); ++l) CHECK(use[l][0] == doctest::Approx(report.links[l].utilisation));
}

TEST_CASE("a link whose directions share its bandwidth has no direction in the results") {
  Case c;
  const ParsedJson apart = ParsedJson::parse(results_json("t", c.program, c.timeline, c.report, c.cluster))["links"];
  for (const auto& link : apart) CHECK(link.contains("forward"));
  for (Link& link : c.cluster.links) link.duplex = Duplex::Half;
  c.report = measure(c.program, c.timeline, c.cluster);
  const ParsedJson links = ParsedJson::parse(results_json("t", c.program, c.timeline, c.report, c.cluster))["links"];
  REQUIRE(links.size() == 2);
  for (const auto& link : links) CHECK_FALSE(link.contains("forward"));
}

TEST_CASE("a link that is not shared has no utilization over time") {
  Case c;
  for (Link& link : c.cluster.links) link.duplex = Duplex::Unshared;
  c.report = measure(c.program, c.timeline, c.cluster);
  for (const auto& link : link_use(c.program, c.timeline, c.cluster, c.report, 5))
    for (const double part : link) CHECK(part == 0);
}

TEST_CASE("results have the use of links in percent, with changes as times") {
  Case c;
  ParsedJson results = ParsedJson::parse(results_json("t", c.program, c.timeline, c.report, c.cluster));
  CHECK(!results.contains("change_times"));
  CHECK(!results.contains("jitter_most"));
  for (const ParsedJson& link : results["links"]) {
    const std::string use = link["percent_over_time"];
    CHECK(std::count(use.begin(), use.end(), ' ') == 99);
    CHECK(use.find("100 100 100") != use.npos);  // A sixth of the run.
    CHECK(use.starts_with("0 0 0"));
  }
  c.cluster.changes = {
      {.devices = {DeviceId{1}}, .links = {}, .from = {2}, .until = {3}, .every = {}, .lasts = {}, .rate = 0.5},
      {.devices = {}, .links = {LinkId{0}}, .from = {}, .until = {kForEver}, .every = {4}, .lasts = {1}, .down = true}};
  c.cluster.jitter.max_fraction = 0.25;
  results = ParsedJson::parse(results_json("t", c.program, c.timeline, c.report, c.cluster));
  CHECK(results["jitter_most"] == 0.25);
  CHECK(results["changes"].size() == 2);
  CHECK(results["change_times"] ==
        ParsedJson::parse(R"([{"devices": ["d1"], "links": [], "from_s": 2.0, "until_s": 3.0},
                        {"devices": [], "links": ["l0"], "from_s": 0.0, "every_s": 4.0, "lasts_s": 1.0}])"));
}

}  // namespace stagecraft::link_use_test
