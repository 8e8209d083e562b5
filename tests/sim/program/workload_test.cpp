// The work of the instructions of a program: layers, samples and tensors of messages.

#include "sim/program/workload.hpp"

#include <doctest/doctest.h>

#include <map>
#include <set>

#include "tests/support/nets.hpp"
#include "tests/support/road.hpp"

namespace stagecraft::workload_test {
namespace {

Workload workload_of(const ModelGraph& model, const Plan& plan) { return make_workload(model, plan, {}, {}); }

/// Samples of every micro-batch and replica of a stage, counted through one iteration.
std::multiset<std::int64_t> samples_of_stage(const Workload& w, int stage, int micro_batches) {
  std::multiset<std::int64_t> samples;
  const StageWorkload& s = w.stages[StageId{stage}];
  for (int m = 0; m < micro_batches; ++m)
    for (int r = 0; r < std::ssize(s.replicas); ++r) {
      if (!s.works_on(m, r)) continue;
      const RowRange rows = s.samples(m, r);
      for (std::int64_t i = 0; i < rows.count; ++i) samples.insert(rows.first + i);
    }
  return samples;
}

std::multiset<std::int64_t> multiset_of(std::int64_t count) {
  std::multiset<std::int64_t> result;
  for (std::int64_t i = 0; i < count; ++i) result.insert(i);
  return result;
}

/// Samples that arrive over each edge at a stage, as activations or gradients.
using Arrived = std::map<std::tuple<int, StageId, bool>, std::multiset<std::int64_t>>;

Arrived arrived_samples(const Program& program, const Workload& w) {
  Arrived arrived;
  const auto add = [&](int edge, StageId to, TensorRole role, const RowRange& rows, const RowRange& available) {
    CHECK(rows.first >= available.first);
    CHECK(rows.first + rows.count <= available.first + available.count);
    for (std::int64_t i = 0; i < rows.count; ++i)
      arrived[{edge, to, role == TensorRole::Gradient}].insert(rows.first + i);
  };
  for (const Transfer& t : program.transfers) {
    const StageId to = program.receiving_stage(t);
    const StageWorkload& stage = w.stages[to];
    const int replica = stage.replica_on(program.at(t.receive).device);
    add(program.shape(t).edge, to, program.shape(t).role, program.rows(t),
        stage.samples(program.receiving_micro_batch(t), replica));
  }
  for (const Instruction& i : program.instructions) {
    if (i.kind != InstructionKind::Forward && i.kind != InstructionKind::Backward) continue;
    const TensorRole role = i.kind == InstructionKind::Backward ? TensorRole::Gradient : TensorRole::Activation;
    for (const Handover& h : handovers(w, i.stage, i.micro_batch(), w.stages[i.stage].replica_on(i.device), role))
      add(h.edge, h.to, role, h.rows, w.stages[h.to].samples(h.micro_batch, h.replica));
  }
  return arrived;
}

}  // namespace

TEST_CASE("replicas work on every sample once, whether they divide samples or take turns") {
  const ModelGraph model = test::deep_net(2);
  Plan plan = test::stage_each(model, 6, 5);
  plan.stages[StageId{0}].place_on({DeviceId{0}, DeviceId{2}, DeviceId{3}});
  plan.stages[StageId{1}].place_on({DeviceId{1}, DeviceId{4}});
  plan.stages[StageId{1}].share = Share::MicroBatches;
  const Workload w = workload_of(model, plan);
  for (const int s : {0, 1}) CHECK(samples_of_stage(w, s, 6) == multiset_of(30));
  CHECK(w.stages[StageId{0}].samples(2, 1) ==
        RowRange{11, 2});  // 5 * 1 / 3 = 1 up to 5 * 2 / 3 = 3, after two micro-batches.
  CHECK(w.stages[StageId{1}].samples(3, 1) == RowRange{15, 5});
  CHECK_FALSE(w.stages[StageId{1}].works_on(3, 0));
}

TEST_CASE("tensors of an edge are the outputs that the later stage reads") {
  const test::Branched b = test::branched(2, 3);
  const Workload w = workload_of(b.model, b.plan);
  REQUIRE(w.edges.size() == 4);
  std::map<std::pair<int, int>, std::string> names;
  for (int e = 0; e < std::ssize(w.edges); ++e)
    for (const LayerId layer : w.tensors[e])
      names[{w.edges[e].from.value, w.edges[e].to.value}] += w.layers[layer].name + " ";
  CHECK(names == std::map<std::pair<int, int>, std::string>{
                     {{0, 1}, "trunk "}, {{0, 2}, "trunk "}, {{1, 3}, "high0 "}, {{2, 3}, "high1 "}});
}

TEST_CASE("messages bring each stage every sample once, whatever the sizes of micro-batches") {
  const ModelGraph model = test::deep_net(3);
  for (const auto& [first, second, third] : {std::tuple{6, 2, 4}, {2, 4, 12}, {3, 6, 2}}) {
    Plan plan = test::stage_each(model, 1);
    plan.mini_batch = 12;
    plan.stages[StageId{0}].micro_batch_size = first;
    plan.stages[StageId{1}].micro_batch_size = second;
    plan.stages[StageId{2}].micro_batch_size = third;
    plan.stages[StageId{1}].place_on({DeviceId{1}, DeviceId{3}});
    const Program program = test::program_of("graph", plan, uniform_costs(plan, test::times(1, 1)));
    const Arrived arrived = arrived_samples(program, workload_of(model, plan));
    CHECK(arrived.size() == 4);
    for (const auto& [key, samples] : arrived) CHECK(samples == multiset_of(12));
  }
}

TEST_CASE("messages and local tensors bring each stage every sample once") {
  const ModelGraph model = test::deep_net(2);
  Plan plan = test::stage_each(model, 1, 4);
  plan.stages[StageId{1}].micro_batch_size = 2;
  plan.stages[StageId{1}].place_on({DeviceId{1}, DeviceId{0}});  // The second replica lives with the first stage.
  const Schedule schedule = test::schedule_from({"0F0 1F0 1F1 1B0 1B1 0B0 0U0 1U0", "1F0 1F1 1B0 1B1 1U0"});
  const Program program = test::lowered(schedule, plan, uniform_costs(plan, test::times(1, 1)));
  const Workload w = workload_of(model, plan);
  CHECK(program.transfers.size() == 4);
  const std::vector<Handover> stays = handovers(w, StageId{0}, 0, 0, TensorRole::Activation);
  REQUIRE(stays.size() == 2);
  CHECK(stays[0].rows == RowRange{1, 1});
  CHECK(stays[1].rows == RowRange{3, 1});
  const Arrived arrived = arrived_samples(program, w);
  CHECK(arrived.size() == 2);
  for (const auto& [key, samples] : arrived) CHECK(samples == multiset_of(4));
}

TEST_CASE("the plan as one stage has all layers on the first device") {
  const ModelGraph model = test::deep_net(4);
  const Plan plan = test::stage_each(model, 2, 3);
  const Workload one = as_one_stage(workload_of(model, plan));
  REQUIRE(one.stages.size() == 1);
  CHECK(one.stages[StageId{0}].layers.size() == model.layers.size());
  CHECK(one.stages[StageId{0}].replica_on(DeviceId{0}) == 0);
  CHECK(one.stages[StageId{0}].replica_on(DeviceId{1}) == -1);
  CHECK(one.stages[StageId{0}].samples(0, 0) == RowRange{0, 6});
  CHECK(one.edges.empty());
}

}  // namespace stagecraft::workload_test
