// Changes over time, read from scenarios.

#include <doctest/doctest.h>

#include "sim/core/text.hpp"
#include "sim/experiment/run.hpp"
#include "tests/support/files.hpp"

namespace stagecraft::changes_test {
namespace {

constexpr const char* kFile = "scenarios/examples/quickstart.yaml";

Experiment with(const std::string& changes) { return load_experiment(kFile, {"cluster.changes=" + changes}); }
Cluster cluster_with(const std::string& changes) { return build_cluster(with(changes).source->at("cluster")); }
template <class Act>
std::string message_of(Act&& act) {
  try {
    act();
  } catch (const InputError& e) {
    return e.problems().front().message;
  }
  return "nothing";
}
std::string wrong(const std::string& changes) {
  return message_of([&] { compile(with(changes)); });
}

}  // namespace

TEST_CASE("changes are read with their names, times and units") {
  const Cluster c = cluster_with(
      "[{devices: [h100-0.gpu1, a100-0], from: 2 s, until: 5 s, speed: 50 %}, {links: ['*.gpu0.nic'], bandwidth: 10 %, "
      "latency: 200 %}, {devices: [h100-0.gpu0], links: [a100-0.gpu0.nic], from: 1 s, down: true}, {devices: "
      "[a100-0.gpu7], every: 1 s, for: 100 ms, speed: 20 %}]");
  REQUIRE(c.changes.size() == 4);
  CHECK(c.changes[0].devices.size() == 9);  // one, and all eight of a host
  CHECK(to_text(c.changes[0], c) == "h100-0.gpu1, a100-0.gpu0, 7 more at 50 % from 2 s to 5 s");
  CHECK(to_text(c.changes[1], c) == "h100-0.gpu0.nic, a100-0.gpu0.nic at 10 % and 200 % of the latency");
  CHECK(to_text(c.changes[2], c) == "h100-0.gpu0, a100-0.gpu0.nic down from 1 s");
  CHECK(to_text(c.changes[3], c) == "a100-0.gpu7 at 20 % for 100 ms of every 1 s");
}

TEST_CASE("a share of the devices is drawn by its seed") {
  const Cluster one = cluster_with("[{share: 25 %, speed: 70 %}]"),
                same = cluster_with("[{share: 25 %, speed: 70 %, seed: 1}]"),
                other = cluster_with("[{share: 25 %, speed: 70 %, seed: 2}]"),
                few = cluster_with("[{share: 1 %, speed: 70 %}]");
  CHECK(one.changes[0].devices.size() == 4);  // of 16
  CHECK(one.changes == same.changes);
  CHECK(one.changes != other.changes);
  CHECK(few.changes[0].devices.size() == 1);
}

TEST_CASE("a wrong change is refused with its reason") {
  CHECK(wrong("[{devices: [h100-0.gpu9], speed: 50 %}]") == "no device or host is called 'h100-0.gpu9'");
  CHECK(wrong("[{links: [nope], bandwidth: 50 %}]") == "no link is called 'nope'");
  CHECK(wrong("[{speed: 50 %}]").find("it does not say what changes") != std::string::npos);
  CHECK(wrong("[{devices: [], speed: 1 %}]") == "it names no device");
  CHECK(wrong("[{links: [], bandwidth: 1 %}]") == "it names no link");
  CHECK(wrong("[{devices: [h100-0]}]") == "it does not say what becomes of them");
  CHECK(wrong("[{devices: [h100-0], speed: 0.5}]").find("'0.5' has no unit; write one of %") != std::string::npos);
  CHECK(wrong("[{devices: [h100-0], speed: 150 %}]") == "150 % is more than rated");
  CHECK(wrong("[{devices: [h100-0], speed: 2 s}]").find("'s' is a unit of time, not of share") != std::string::npos);
  CHECK(wrong("[{devices: [h100-0], down: true, speed: 50 %}]") == "what is down has no speed");
  CHECK(wrong("[{devices: [h100-0], bandwidth: 50 %}]") == "devices have none");
  CHECK(wrong("[{links: ['*'], speed: 50 %}]") == "links have none");
  CHECK(wrong("[{links: ['*'], latency: 50 %}]") == "50 % would be better than rated");
  CHECK(wrong("[{links: ['*'], devices: [h100-0], speed: 50 %}]") == "devices and links are slow in different ways");
  CHECK(wrong("[{devices: [h100-0], share: 5 %, speed: 50 %}]") == "`devices` says already which");
  CHECK(wrong("[{devices: [h100-0], seed: 5, speed: 50 %}]") == "there is nothing to draw");
  CHECK(wrong("[{share: 0 %, speed: 50 %}]") == "0 % is not a part of the devices");
  CHECK(wrong("[{devices: [h100-0], speed: 50 %, from: 2 s, until: 1 s}]") ==
        "it is over at 1 s, before it begins at 2 s");
  CHECK(wrong("[{devices: [h100-0], speed: 50 %, every: 2 s}]") == "`every` and `for` go together");
  CHECK(wrong("[{devices: [h100-0], speed: 50 %, every: 2 s, for: 2 s}]") ==
        "2 s of every 2 s is not a part of the time");
  CHECK(wrong("[{devices: [h100-0], speed: 50 %, every: 2 ns, for: 1 ns}]") == "2 ns is too short to be followed");
  CHECK(wrong("[{device: [h100-0], speed: 50 %}]") == "no such field");
}

TEST_CASE("changes can be added to a base, and come after the changes of the base") {
  const std::string file = test::own_file(
      "changes.yaml", "schema: cluster/1\nbase: two-node-mixed\nchanges: [{devices: [h100-0], speed: 50 %}]\n");
  const Experiment scenario = load_experiment(
      kFile, {"cluster={base: " + file + ", changes: [{devices: [a100-0], down: true}], jitter: {most: 5 %}}"});
  const Cluster c = build_cluster(scenario.source->at("cluster"));
  REQUIRE(c.changes.size() == 2);
  CHECK(c.changes[0].rate == 0.5);
  CHECK(c.changes[1].down);
  CHECK(c.jitter.max_fraction == 0.05);
}

TEST_CASE("a resolved scenario keeps its changes, and they are part of its hash") {
  const Experiment scenario = with("[{share: 25 %, speed: 70 %}]");
  CHECK(scenario.scenario_hash != load_experiment(kFile, {}).scenario_hash);
  const config::Value* changes = scenario.source->at("cluster").find("changes");
  REQUIRE(changes != nullptr);
  CHECK(config::to_yaml(changes->items[0], true) == "share: 25 %\nspeed: 70 %\n");
}

TEST_CASE("plans and orders assume the rated machine, and runs use the changed one") {
  const std::string half = "[{devices: [h100-0, a100-0], speed: 50 %}]";
  for (const std::string schedule : {"1f1b", "synthesised"}) {
    const Experiment rated = load_experiment(kFile, {"run.schedule=" + schedule}),
                     slow = load_experiment(kFile, {"run.schedule=" + schedule, "cluster.changes=" + half});
    const CompiledExperiment a = compile(rated), b = compile(slow);
    CHECK(to_text(a.plan) == to_text(b.plan));
    CHECK(to_text(a.program) == to_text(b.program));
    CHECK(b.cluster().changes.size() == 1);
    for (const char* backend : {"ideal", "fluid"}) {
      const double fast = run(a, backend).report.makespan.value, late = run(b, backend).report.makespan.value;
      CHECK(late > 1.5 * fast);
      CHECK(late < 2 * fast);  // messages are as fast as before
    }
  }
}

TEST_CASE("real backends refuse changes") {
  const Experiment scenario = load_experiment("scenarios/examples/teacher.yaml", {"cluster.jitter={most: 5 %}"});
  CHECK(message_of([&] { execute(compile(scenario), "cpu"); }) ==
        "the backend 'cpu' really runs on this machine, which does not change so");
}

TEST_CASE("while the cluster changes the period is the mean of the iterations after the first") {
  // Three iterations that stand apart, the second of them twice as long.
  const Experiment rated = load_experiment(kFile, {});
  const CompiledExperiment p = compile(rated);
  const double one = run(p, "ideal").report.period.value;
  const Experiment paused = with("[{devices: ['*'], from: " + shortest(1.5 * one) +
                                 " s, until: " + shortest(1.5 * one + 0.25) + " s, speed: 0 %}]");
  const Report report = run(compile(paused), "ideal").report;
  CHECK(report.period.value > one + 0.1);
  CHECK(report.period.value < one + 0.126);  // 0.25 s in one of two, less what messages did meanwhile
}

TEST_CASE("a slow member makes an op longer by the computation of it, and collectives take what they took") {
  for (const char* backend : {"ideal", "fluid"}) {
    const auto run_with = [&](const std::string& changes) {
      CompiledExperiment c =
          compile(load_experiment("scenarios/examples/llama-3-8b-4x8.yaml", {"cluster.changes=" + changes}));
      Outcome outcome = run(c, backend);
      return std::pair(std::move(c), std::move(outcome));
    };
    const auto [rated, as_rated] = run_with("[]");
    const auto [slow, slowed] = run_with("[{devices: [pod0.node0.gpu3], speed: 50 %}]");
    const DeviceId leader{0};
    int ops = 0;
    for (const InstructionId n : slow.program.instructions.ids()) {
      const Instruction& i = slow.program.at(n);
      if (!i.is_compute() || i.device != leader) continue;
      const TimeByClass& parts = slow.program.parts[i.stage].parts(i.kind);
      const double lasted = slowed.timeline.end[n] - slowed.timeline.start[n];
      CHECK(lasted == doctest::Approx((2 * (parts.total() - parts.collectives()) + parts.collectives()).value));
      CHECK(parts.collectives().value > 0);
      ++ops;
    }
    CHECK(ops > 10);
    CHECK(slowed.report.time.spent.tensor.value == doctest::Approx(as_rated.report.time.spent.tensor.value));
  }
}

TEST_CASE("a group is as slow as its slowest member, whichever that is") {
  const auto period = [](const std::string& changes) {
    Experiment e = load_experiment("scenarios/examples/llama-3-8b-4x8.yaml", {"cluster.changes=" + changes});
    return run(compile(e), "ideal").report.period.value;
  };
  const double rated = period("[]"), first = period("[{devices: [pod0.node0.gpu0], speed: 50 %}]");
  CHECK(first > 1.5 * rated);
  CHECK(period("[{devices: [pod0.node0.gpu3], speed: 50 %}]") == first);
  CHECK(period("[{devices: [pod0.node0.gpu0, pod0.node0.gpu3], speed: 50 %}]") == first);
  CHECK(message_of([&] {
          period("[{devices: [pod0.node0.gpu1], speed: 50 %}, {devices: [pod0.node0.gpu2], speed: 80 %}]");
        }).find("pod0.node0.gpu1 and pod0.node0.gpu2 are in one group, which has one rate in a simulation") !=
        std::string::npos);
  CHECK(period("[{devices: [pod0.node0.gpu1], speed: 50 %}, {devices: [pod0.node0.gpu5], speed: 50 %}]") ==
        doctest::Approx(first).epsilon(0.02));
}

}  // namespace stagecraft::changes_test
