// Where transfers share a link, SimGrid and the longest path differ by exactly what max-min sharing predicts. Programs
// are lowered from schedules.

#include <doctest/doctest.h>

#include "backends/backend.hpp"
#include "sim/result/report.hpp"
#include "tests/support/road.hpp"

namespace stagecraft::contended_test {
namespace {

constexpr double kBandwidth = 1e9, kLatency = 5e-6;  // of one link; a route has two
constexpr double kForward = 1e-3;

Timeline run(const char* backend, const Program& program, const Cluster& cluster) {
  return get_from(backends::catalog(), "backend", backend).run(program, cluster, {});
}

doctest::Approx near(double seconds) { return doctest::Approx(seconds).epsilon(1e-9); }

/// Stages 0 .. senders-1 each send to the last stage; `bytes` has the size of each message, and each stage runs one
/// forward.
Program into_one(const std::vector<double>& bytes, bool rendezvous = true) {
  const int n = static_cast<int>(bytes.size());
  Plan plan = chain_plan(n + 1, n + 1, 1);
  plan.edges.clear();
  for (int s = 0; s < n; ++s) plan.edges.push_back({StageId{s}, StageId{n}, Bytes{bytes[s]}});
  LoweringOptions options;
  options.rendezvous = rendezvous;
  return test::program_of("inference", plan, uniform_costs(plan, test::times(kForward, 0)), options);
}

/// Stage 0 on rank 0 sends to stage 1 on rank 1 while stage 2 on rank 1 sends to stage 3 on rank 0.
Program both_ways(double there, double back) {
  Plan plan = test::dag_plan(4, 1, {{0, 1}, {2, 3}});
  plan.edges[0].bytes = Bytes{there}, plan.edges[1].bytes = Bytes{back};
  const int rank_of[] = {0, 1, 1, 0};
  for (std::size_t s = 0; s < 4; ++s) plan.stages[StageId{s}].place_on({DeviceId{rank_of[s]}});
  return test::lowered(test::schedule_from({"0F0 3F0", "2F0 1F0"}), plan, uniform_costs(plan, test::times(kForward, 0)),
                       {}, "flush", false);
}

double end_of(const Program& program, const Timeline& t, const char* text) {
  return t.end_of(test::find(program, text)).value;
}

}  // namespace

TEST_CASE("eight equal messages through one card take eight times as long; alone each takes one") {
  const double bytes = 4e6;
  for (const bool rendezvous : {true, false}) {
    const Program program = into_one(std::vector<double>(8, bytes), rendezvous);
    const Cluster cluster = test::star(9, kBandwidth, kLatency);
    const Timeline ideal = run("ideal", program, cluster), simgrid = run("simgrid", program, cluster);
    for (const Transfer& t : program.transfers) {
      CHECK(ideal.end_of(t.send).value == near(kForward + 2 * kLatency + bytes / kBandwidth));
      CHECK(simgrid.end_of(t.send).value == near(kForward + 2 * kLatency + 8 * bytes / kBandwidth));
    }
    CHECK(simgrid.last_end().value - ideal.last_end().value == near(7 * bytes / kBandwidth));
  }
}

TEST_CASE("longer messages share the bandwidth that shorter ones leave") {
  // 1, 2, ..., 8 MB at 1 GB/s: message k ends when k MB have gone through on each of the 9 - k left before it:
  // sum over i <= k of (9 - i) ms.
  std::vector<double> bytes;
  for (int k = 1; k <= 8; ++k) bytes.push_back(k * 1e6);
  const Program program = into_one(bytes);
  const Timeline t = run("simgrid", program, test::star(9, kBandwidth, kLatency));
  double expected = kForward + 2 * kLatency;
  for (int k = 1; k <= 8; ++k) {
    expected += (9 - k) * 1e6 / kBandwidth;
    CHECK(t.end_of(program.transfers[static_cast<std::size_t>(k) - 1].send).value == near(expected));
  }
}

TEST_CASE("a slow card leaves its share to the others") {
  // Max-min: the slow sender gets its own 0.1 GB/s, the other two 0.45 GB/s each.
  const Program program = into_one({9e6, 9e6, 1e6});
  Cluster cluster = test::star(4, kBandwidth, 0);
  cluster.links[LinkId{2}].bandwidth = Bandwidth{1e8};
  const Timeline t = run("simgrid", program, cluster);
  CHECK(end_of(program, t, "2>3:2F0") == near(kForward + 1e6 / 1e8));
  // By then 4.5 MB of each are through; the rest goes at half the card each.
  CHECK(end_of(program, t, "0>3:0F0") == near(kForward + 1e-2 + 4.5e6 / 5e8));
  CHECK(end_of(program, t, "1>3:1F0") == near(kForward + 1e-2 + 4.5e6 / 5e8));
}

TEST_CASE("full duplex keeps the directions apart, half duplex adds them") {
  const Program program = both_ways(2e6, 6e6);
  const auto ends = [&](const char* backend, Duplex duplex) {
    const Timeline t = run(backend, program, test::star(2, kBandwidth, kLatency, duplex));
    return std::pair{end_of(program, t, "0>1:0F0"), end_of(program, t, "1>0:2F0")};
  };
  const double start = kForward + 2 * kLatency;
  for (const char* backend : {"ideal", "simgrid"}) {
    const auto full = ends(backend, Duplex::Full), unshared = ends(backend, Duplex::Unshared);
    CHECK(full.first == near(start + 2e-3));
    CHECK(full.second == near(start + 6e-3));
    CHECK(unshared.first == near(start + 2e-3));
    CHECK(unshared.second == near(start + 6e-3));
  }
  const auto half = ends("simgrid", Duplex::Half);
  CHECK(half.first == near(start + 4e-3));   // half the link each
  CHECK(half.second == near(start + 8e-3));  // 2 MB by then, and 4 MB alone
  CHECK(ends("ideal", Duplex::Half).second == near(start + 6e-3));
}

TEST_CASE("all messages of a shared medium divide its bandwidth") {
  // Three pairs on one cable, and the same on a star.
  const Plan plan = test::dag_plan(6, 1, {{0, 1}, {2, 3}, {4, 5}}, 3e6);
  const Program program = test::program_of("inference", plan, uniform_costs(plan, test::times(kForward, 0)));
  Cluster bus = test::bare_cluster(6);
  test::connect(bus, {0, 1, 2, 3, 4, 5}, kBandwidth, kLatency, Duplex::Half);
  const Timeline on_bus = run("simgrid", program, bus),
                 on_star = run("simgrid", program, test::star(6, kBandwidth, kLatency));
  for (const Transfer& t : program.transfers) {
    CHECK(on_bus.end_of(t.send).value == near(kForward + kLatency + 3 * 3e-3));
    CHECK(on_star.end_of(t.send).value == near(kForward + 2 * kLatency + 3e-3));
  }
}

TEST_CASE("two messages of one card halve it or queue, and the last ends at the same time") {
  const Plan plan = test::dag_plan(3, 1, {{0, 1}, {0, 2}}, 5e6);
  for (const bool fifo : {true, false}) {
    LoweringOptions options;
    options.fifo_sends = fifo;
    const Program program = test::program_of("inference", plan, uniform_costs(plan, test::times(kForward, 0)), options);
    const Cluster cluster = test::star(3, kBandwidth, 0);
    const Timeline t = run("simgrid", program, cluster), ideal = run("ideal", program, cluster);
    CHECK(end_of(program, t, "0>1:0F0") == near(kForward + (fifo ? 5e-3 : 10e-3)));
    CHECK(end_of(program, t, "0>2:0F0") == near(kForward + 10e-3));
    CHECK(end_of(program, ideal, "0>2:0F0") == near(kForward + (fifo ? 10e-3 : 5e-3)));
  }
}

TEST_CASE("the ring of an all-reduce uses both directions at once, or shares half-duplex cards") {
  // 8 MB reduced between two ranks are 8 MB over each of the two edges.
  Plan plan = test::dag_plan(1, 2, {});
  plan.stages[StageId{0}].micro_batch_size = 2;
  plan.stages[StageId{0}].place_on({DeviceId{0}, DeviceId{1}});
  StageCosts costs = uniform_costs(plan, test::times(kForward, kForward));
  for (StageCost& c : costs.replicas(StageId{0})) c.memory.gradients = Bytes{8e6};
  const Program program = test::program_of("gpipe", plan, costs);
  for (const char* backend : {"ideal", "simgrid"})
    CHECK(end_of(program, run(backend, program, test::star(2, kBandwidth, kLatency)), "0AR0") ==
          near(2 * kForward + 2 * 2 * kLatency + 8e6 / kBandwidth));
  // Half duplex: both edges of the ring cross both cards.
  CHECK(end_of(program, run("simgrid", program, test::star(2, kBandwidth, kLatency, Duplex::Half)), "0AR0") ==
        near(2 * kForward + 2 * 2 * kLatency + 2 * 8e6 / kBandwidth));
}

TEST_CASE("no period is shorter than the time its messages keep a shared medium busy") {
  // Three stages, four micro-batches of 1 GB over two hops: 8 s on a medium of 1 GB/s in every iteration.
  Plan plan = chain_plan(3, 3, 4);
  for (StageEdge& e : plan.edges) e.bytes = Bytes{1e9};
  Cluster cluster = test::star(3, 1e9, 0);
  cluster.links = {{"air", {1e9}, {0}, Duplex::Half, {VertexId{0}, VertexId{1}, VertexId{2}}}};
  for (const int iterations : {3, 4, 7}) {
    LoweringOptions options;
    options.iterations = iterations;
    const Program program = test::program_of("inference", plan, uniform_costs(plan, test::times(1, 0)), options);
    const Report report = measure(program, run("simgrid", program, cluster), cluster);
    CHECK(report.period.value == near(8));
  }
}

}  // namespace stagecraft::contended_test
