// Collectives of every kind by every algorithm: the longest path, max-min sharing and SimGrid share no code for time,
// and agree to 1e-9 where no two messages meet.

#include <doctest/doctest.h>

#include <map>
#include <optional>

#include "backends/backend.hpp"
#include "sim/core/diagnostic.hpp"
#include "tests/support/differences.hpp"
#include "tests/support/program_builder.hpp"
#include "tests/support/random_cases.hpp"
#include "tests/support/random_changes.hpp"
#include "tests/support/trials.hpp"

namespace stagecraft::collectives_test {
using test::difference;

namespace {

Timeline run(const char* backend, const Program& program, const Cluster& cluster) {
  return get_from(backends::catalog(), "backend", backend).run(program, cluster, {});
}

/// Cards of different speeds on one switch.
Cluster star(int devices, Duplex duplex, test::Draw& draw) {
  Cluster cluster = test::bare_cluster(devices, 1);
  for (int d = 0; d < devices; ++d)
    test::connect(cluster, {d, devices}, 1e6 * draw(50, 20000), 1e-6 * draw(0, 300), duplex);
  return cluster;
}

/// Draws some of the devices, in any order.
std::vector<int> some_devices(int devices, test::Draw& draw) {
  std::vector<int> chosen;
  for (int d = 0; d < devices; ++d) chosen.insert(chosen.begin() + draw(0, d), d);
  chosen.resize(draw(1, devices));
  return chosen;
}

const CollectiveAlgorithm* const kAlgorithms[] = {&collective_algorithms::ring, &collective_algorithms::tree,
                                                  &collective_algorithms::hierarchical, &collective_algorithms::direct};

using CollectiveCounts = std::map<std::pair<int, int>, int>;  ///< Collectives of each kind and algorithm.

/// Adds one collective; returns false if the algorithm does not support it.
bool add_collective(test::ProgramBuilder& builder, const std::vector<int>& devices, const test::Ids& after,
                    CollectiveCounts& counts, test::Draw& draw) {
  const CollectiveKind kind = kCollectiveKinds[draw(0, 4)];
  const int algorithm = draw(0, 3);
  std::vector<int> nodes;
  const int each = draw(1, 3);
  for (int d = 0; d < std::ssize(devices); ++d) nodes.push_back(d / each);
  try {
    builder.collective(kind, *kAlgorithms[algorithm], devices, draw(0, 4) * 1001, after, nodes, draw(1, 3));
  } catch (const InputError&) {
    return false;
  }
  if (devices.size() > 1) ++counts[{static_cast<int>(kind), algorithm}];
  return true;
}

Program random_program(int devices, CollectiveCounts& counts, test::Draw& draw) {
  test::ProgramBuilder builder(devices);
  test::Ids ids;
  for (int n = draw(3, 12); n > 0; --n) {
    test::Ids after;
    if (!ids.empty() && draw(0, 1) == 1) after.push_back(ids[draw(0, static_cast<int>(ids.size()) - 1)]);
    ids.push_back(builder.compute(draw(0, devices - 1), 1e-6 * draw(0, 500), after));
    if (draw(0, 2) > 0) add_collective(builder, some_devices(devices, draw), {ids.back()}, counts, draw);
  }
  return builder.build();
}

}  // namespace

TEST_CASE("ideal, fluid and simgrid agree on all collectives and algorithms, also while machines change") {
  test::Draw draw{Rng(61, "collectives")}, draw_changes{Rng(61, "changes")};
  CollectiveCounts counts;
  for (int trial = 0; trial < test::trials(250, 60); ++trial) {
    const int devices = draw(2, 8);
    const Program program = random_program(devices, counts, draw);
    Cluster cluster = star(devices, Duplex::Unshared, draw);
    if (trial % 2 == 1) test::random_changes(cluster, run("ideal", program, cluster).last_end().value, draw_changes);
    CAPTURE(to_text(program));
    CAPTURE(test::changes_of(cluster));
    const Timeline ideal = run("ideal", program, cluster);
    CHECK(difference(program, ideal, run("fluid", program, cluster)) == "");
    CHECK(difference(program, ideal, run("simgrid", program, cluster)) == "");
  }
  CHECK(counts.size() == 5 * 4 - 3);  // A tree serves all-reduce and broadcast only.
  for (const auto& [what, count] : counts) CHECK(count >= test::trials(10, 2));
}

TEST_CASE("one collective alone has no contention, though its cards carry one message at a time") {
  test::Draw draw{Rng(62, "alone")};
  CollectiveCounts counts;
  for (int trial = 0; trial < test::trials(200, 80); ++trial) {
    const int devices = draw(2, 9);
    test::ProgramBuilder builder(devices);
    if (!add_collective(builder, some_devices(devices, draw), {}, counts, draw)) continue;
    const Program program = builder.build();
    const Cluster cluster = star(devices, Duplex::Full, draw);
    const Timeline ideal = run("ideal", program, cluster);
    CHECK(difference(program, ideal, run("fluid", program, cluster)) == "");
    CHECK(difference(program, ideal, run("simgrid", program, cluster)) == "");
  }
  CHECK(counts.size() == 5 * 4 - 3);
}

TEST_CASE("collectives of 8 devices take the seconds of their formulas on every simulator") {
  constexpr double kAlpha = 2e-4, kRate = 1e9, kS = 8e6 / kRate;
  const struct {
    CollectiveKind kind;
    const CollectiveAlgorithm& algorithm;
    double seconds;
  } cases[] = {
      {CollectiveKind::AllReduce, collective_algorithms::ring, 14 * (kAlpha + kS / 8)},
      {CollectiveKind::AllReduce, collective_algorithms::tree, 6 * (kAlpha + kS)},
      {CollectiveKind::AllReduce, collective_algorithms::hierarchical,
       2 * 3 * (kAlpha + kS / 4) + 2 * (kAlpha + kS / 8)},
      {CollectiveKind::ReduceScatter, collective_algorithms::ring, 7 * (kAlpha + kS / 8)},
      {CollectiveKind::AllGather, collective_algorithms::direct, kAlpha + 7 * kS / 8},
      {CollectiveKind::AllToAll, collective_algorithms::direct, kAlpha + 7 * kS / 8},
      {CollectiveKind::AllToAll, collective_algorithms::hierarchical, 2 * kAlpha + 3 * kS / 4 + kS / 2},
      {CollectiveKind::Broadcast, collective_algorithms::ring, 7 * kAlpha + kS},
      {CollectiveKind::Broadcast, collective_algorithms::tree, 3 * (kAlpha + kS)},
  };
  const Cluster cluster = test::star(8, kRate, kAlpha / 2);
  for (const auto& c : cases)
    for (const int rounds : {1, 5}) {
      test::ProgramBuilder builder(8);
      builder.collective(c.kind, c.algorithm, {0, 1, 2, 3, 4, 5, 6, 7}, 8'000'000, {}, {0, 0, 0, 0, 1, 1, 1, 1},
                         rounds);
      const Program program = builder.build();
      for (const char* backend : {"ideal", "fluid", "simgrid"}) {
        CAPTURE(to_text(program));
        CAPTURE(backend);
        CHECK(run(backend, program, cluster).last_end().value == doctest::Approx(rounds * c.seconds).epsilon(1e-9));
      }
    }
}

}  // namespace stagecraft::collectives_test
