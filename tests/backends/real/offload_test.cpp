// Stashes in host memory, really copied: the same numbers to the last bit, and less memory on the devices.

#include <doctest/doctest.h>

#include <algorithm>

#include <fmt/core.h>

#include "sim/core/random.hpp"
#include "sim/experiment/run.hpp"
#include "tests/support/trials.hpp"

namespace stagecraft::real_offload_test {
namespace {

const std::string kHost = "cluster={base: threads-8, host: {memory: 1 TiB, down: {bandwidth: 1000 GB/s}}}";

CompiledExperiment compiled(std::vector<std::string> sets, const std::string& offload) {
  sets.insert(sets.end(),
              {kHost, "model.layers=4", "model.hidden=16", "model.heads=4", "model.vocabulary=50", "run.iterations=3"});
  if (!offload.empty()) sets.push_back("plan.offload=" + offload);
  return compile(load_experiment("examples/cpu-transformer", sets));
}

Learnt run(const std::vector<std::string>& sets, const std::string& offload, bool one_thread = false) {
  return *execute(compiled(sets, offload), "cpu", one_thread).learnt;
}

int copies(const CompiledExperiment& c) {
  return static_cast<int>(std::count_if(c.program.collectives.begin(), c.program.collectives.end(),
                                        [](const CollectiveCall& call) { return call.purpose == Purpose::Stash; }));
}

}  // namespace

TEST_CASE("all stashes of GPipe on the host: no bit changes") {
  const std::vector<std::string> sets{"run.schedule=gpipe", "run.micro_batches=8"};
  const std::string whole = "{activations: 100 %}";
  CHECK(copies(compiled(sets, whole)) > 2 * 2 * 3);
  const Learnt without = run(sets, {}), with = run(sets, whole);
  CHECK(with.weights == without.weights);
  CHECK(with.losses == without.losses);
  for (const DeviceId d : {DeviceId{0}, DeviceId{1}}) {
    CHECK(without.memory[d].host.value == 0);
    CHECK(with.memory[d].host.value > 0);  // How much depends on when threads get to it.
  }
}

TEST_CASE("where one thread makes each copy at once, the host has all stashes but two, and the device few at a time") {
  const std::vector<std::string> sets{"run.schedule=gpipe", "run.micro_batches=8"};
  const MeasuredMemory without = run(sets, {}, true).memory[DeviceId{0}],
                       with = run(sets, "{activations: 100 %}", true).memory[DeviceId{0}];
  const double stash = without.activations.value / 8;
  CAPTURE(with.host.value / stash);
  CAPTURE(with.activations.value / stash);
  CHECK(with.host.value > 6 * stash);
  CHECK(with.host.value < 8 * stash);
  CHECK(with.activations.value < 4 * stash);
}

TEST_CASE("a part of a stash is whole arrays, as many as come closest to it") {
  const std::vector<std::string> sets{"run.schedule=gpipe", "run.micro_batches=8"};
  const auto on_host = [&](const char* share) {
    return run(sets, fmt::format("{{activations: {}}}", share), true).memory[DeviceId{0}].host.value;
  };
  const double whole = on_host("100 %");
  CHECK(on_host("50 %") > 0.4 * whole);
  CHECK(on_host("50 %") < 0.6 * whole);
  CHECK(on_host("1 %") < 0.1 * whole);
}

TEST_CASE(
    "modules move their inputs alone: the bytes of the simulation, of norms a number a row more, and no bit changes") {
  const std::vector<std::string> sets{"run.schedule=gpipe", "run.micro_batches=8", "model.positions=rotary",
                                      "model.norm=rms", "software=plain"};
  const Learnt without = run(sets, {});
  const std::vector<std::pair<std::string, int>> norms{{"[attn_norm]", 1},
                                                       {"[qkv_linear]", 0},
                                                       {"[core_attn]", 0},
                                                       {"[attn_proj]", 0},
                                                       {"[mlp_norm]", 1},
                                                       {"[attn_norm, core_attn]", 1},
                                                       {"[attn_norm, attn_proj, mlp_norm]", 2}};
  constexpr double kLayers = 2, kRows = 4 * 64, kWidth = 4;
  for (const auto& named : norms) {
    const std::string& modules = named.first;
    CAPTURE(modules);
    const std::string offload = fmt::format("{{modules: {}, late: false}}", modules);
    const CompiledExperiment c = compiled(sets, offload);
    double bytes = 0;
    for (const CollectiveCall& call : c.program.collectives)
      if (call.purpose == Purpose::Stash && c.program.at(call.first).device == DeviceId{0})
        bytes = static_cast<double>(c.program.shape(call).bytes);
    REQUIRE(bytes > 0);
    bytes += named.second * kLayers * kRows * kWidth;
    const Learnt with = *execute(c, "cpu", true).learnt;
    CHECK(with.memory[DeviceId{0}].host.value == 8 * bytes);  // One thread copies a stash down when its forward ends.
    CHECK(with.weights == without.weights);
    CHECK(with.losses == without.losses);
  }
}

TEST_CASE("any schedule, share and order of fetches gives the weights of a run without a host") {
  const std::vector<std::string> schedules{
      "1f1b", "gpipe", "zb-h1", "zb-h2", "2bw", "pipedream", "{name: interleaved, chunks: 2}"};
  for (int trial = 0; trial < test::trials(200, 12); ++trial) {
    CAPTURE(trial);
    Rng random(trial, "offload");
    const std::string& schedule = schedules[random.integer(0, static_cast<int>(schedules.size()) - 1)];
    const int stages = schedule[0] == '{' ? 4 : random.integer(2, 3);
    const std::vector<std::string> sets{"run.schedule=" + schedule, fmt::format("plan.stages={}", stages),
                                        fmt::format("run.micro_batches={}", 4 * random.integer(1, 2)),
                                        fmt::format("plan.micro_batch_size={}", random.integer(1, 2))};
    const std::string offload = fmt::format("{{activations: {} %, ahead: {}, late: {}}}", 10 * random.integer(1, 10),
                                            random.integer(1, 3), random.integer(0, 1) == 1);
    const bool one_thread = random.integer(0, 2) == 0;
    CAPTURE(schedule);
    CAPTURE(offload);
    const Learnt without = run(sets, {}), with = run(sets, offload, one_thread);
    CHECK(with.weights == without.weights);
    CHECK(with.losses == without.losses);
  }
}

TEST_CASE("each device of a group copies its part, and replicas and divided states change nothing") {
  for (const char* const plan :
       {"{planner: balanced, stages: 2, micro_batch_size: 4, group: {tensor: 2}}",
        "{planner: balanced, stages: 2, micro_batch_size: 4, group: {tensor: 2, sequence: true}}",
        "{planner: balanced, stages: 2, micro_batch_size: 4, group: {context: 2}}",
        "{planner: balanced, stages: 2, micro_batch_size: 4, replicas: 2, shard: optimizer}",
        "{planner: balanced, stages: 2, micro_batch_size: 4, replicas: 2, shard: weights}"}) {
    CAPTURE(plan);
    const std::vector<std::string> sets{"run.schedule=gpipe", "run.micro_batches=4", "software=plain",
                                        std::string("plan=") + plan};
    const Learnt without = run(sets, {}), with = run(sets, "{activations: 60 %}");
    CHECK(with.weights == without.weights);
    CHECK(with.losses == without.losses);
    for (const DeviceId d : {DeviceId{0}, DeviceId{1}, DeviceId{2}, DeviceId{3}}) CHECK(with.memory[d].host.value > 0);
  }
}

}  // namespace stagecraft::real_offload_test
