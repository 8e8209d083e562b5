// Synchronous schedules against training without a pipeline: bit for bit, with the same micro-batches in the same
// kernels.

#include <doctest/doctest.h>

#include "tests/backends/real/oracle.hpp"
#include "tests/backends/real/run_case.hpp"

namespace stagecraft::sync_test {
namespace {

const WeightsRule& flush() { return test::policy("flush"); }

/// All weights of a model, by layer and operation.
std::vector<double> flat(const IdVector<StageId, std::vector<double>>& stages) {
  std::vector<double> joined;
  for (const auto& stage : stages) joined.insert(joined.end(), stage.begin(), stage.end());
  return joined;
}

/// The largest difference, of numbers beyond 1 as a share of them.
double furthest(const std::vector<double>& ours, const std::vector<double>& theirs) {
  REQUIRE(ours.size() == theirs.size());
  double worst = 0;
  for (std::size_t i = 0; i < ours.size(); ++i)
    worst = std::max(worst, std::abs(ours[i] - theirs[i]) / std::max(1.0, std::abs(theirs[i])));
  return worst;
}

void compare(std::string_view schedule, const ModelGraph& model, const Plan& plan, const Training& training,
             int iterations = 5, LoweringOptions lowering = {}) {
  CAPTURE(schedule);
  CAPTURE(plan.stage_count());
  const test::RealRun run = test::really_run(test::real_program(schedule, plan, flush(), iterations, nullptr, lowering),
                                             model, plan, flush(), training);
  const Stage& first = plan.stages.front();
  const test::Expected expected =
      test::sequential(model, training, plan.micro_batches(StageId{0}), first.micro_batch_size, iterations);
  CHECK(run.learnt().losses == expected.losses);
  CHECK(flat(run.learnt().weights) == flat(expected.weights));
}

}  // namespace

TEST_CASE("chains of two to eight stages equal training without stages, to the last bit") {
  for (const int depth : {2, 3, 4, 8})
    for (const char* schedule : {"gpipe", "1f1b", "graph"})
      for (const OptimizerKind kind : {OptimizerKind::Momentum, OptimizerKind::AdamW}) {
        const ModelGraph model = test::deep_net(depth, 6, 8, 3);
        compare(schedule, model, test::stage_each(model, 6), test::training_of(kind, 0.01, "teacher"));
      }
}

TEST_CASE("several stages on a device, in a loop and in a V, with split backwards: still the same bits") {
  const ModelGraph model = test::deep_net(8, 6, 8, 3);
  const Training training = test::training_of(OptimizerKind::Adam, 0.01, "teacher");
  const auto placed = [&](bool round_trip) {
    Plan plan = test::stage_each(model, 8);
    for (int s = 0; s < 8; ++s) plan.stages[StageId{s}].place_on({DeviceId{round_trip && s >= 4 ? 7 - s : s % 4}});
    return plan;
  };
  for (const char* schedule : {"interleaved", "interleaved-zb", "looped-bfs"})
    compare(schedule, model, placed(false), training);
  for (const char* schedule : {"zb-v", "v-half", "v-min", "1f1b-v", "dualpipev"})
    compare(schedule, model, placed(true), training);
  for (const char* schedule : {"eager-1f1b", "zb-h1", "zb-h2", "zb-2p"})
    compare(schedule, model, test::stage_each(model, 8), training);
}

TEST_CASE("fork and join: gradients of branches are added in the order of a run without stages") {
  for (const int branches : {2, 3}) {
    const test::Branched b = test::branched(branches, 4);
    compare("graph", b.model, b.plan, test::training_of(OptimizerKind::Adam, 0.01, "teacher"));
    compare("gpipe", b.model, b.plan, test::training_of(OptimizerKind::Momentum, 0.01, "teacher"));
  }
}

TEST_CASE("how communication is laid out changes nothing") {
  const ModelGraph model = test::deep_net(4, 6, 8, 3);
  const Plan plan = test::stage_each(model, 5);
  const Training training = test::training_of(OptimizerKind::Adam, 0.01, "teacher");
  for (const bool overlap : {true, false})
    for (const bool rendezvous : {true, false})
      for (const StreamModel streams :
           {StreamModel::Single, StreamModel::Pair, StreamModel::Direction, StreamModel::None}) {
        LoweringOptions options;
        options.overlap = overlap;
        options.rendezvous = rendezvous;
        options.streams = streams;
        compare("1f1b", model, plan, training, 4, options);
      }
}

TEST_CASE("recomputation, one thread and 32-bit numbers change no bit") {
  const ModelGraph model = test::deep_net(4, 6, 8, 3);
  Plan plan = test::stage_each(model, 4);
  const Training training = test::training_of(OptimizerKind::Adam, 0.01, "teacher");
  const auto weights = [&](const ModelGraph& m, const Plan& p, const Training& t, bool one_thread) {
    return test::really_run(test::real_program("1f1b", p, flush(), 4), m, p, flush(), t, one_thread).learnt().weights;
  };
  const auto plain = weights(model, plan, training, false);
  CHECK(weights(model, plan, training, true) == plain);
  for (Stage& stage : plan.stages) stage.shape.recomputation = Recomputation::Full;
  CHECK(weights(model, plan, training, false) == plain);

  const ModelGraph narrow = test::deep_net(4, 6, 8, 3, OperationKind::Tanh, OperationKind::MeanSquare, 4);
  compare("1f1b", narrow, test::stage_each(narrow, 4), training);
}

TEST_CASE("replicas add up their halves: within rounding of one device, and the same on every replica") {
  const ModelGraph model = test::deep_net(3, 6, 8, 3);
  Plan plan = test::stage_each(model, 4, 4);
  plan.stages[StageId{1}].place_on({DeviceId{1}, DeviceId{3}});
  const Training training = test::training_of(OptimizerKind::Momentum, 0.01, "teacher");
  const auto run = test::really_run(test::real_program("1f1b", plan, flush(), 5), model, plan, flush(), training);
  const test::Expected expected = test::sequential(model, training, 4, 4, 5);
  CHECK(furthest(flat(run.learnt().weights), flat(expected.weights)) <= 1e-12);
}

TEST_CASE("copies of the model in both directions: within rounding of one, and both copies have the same bits") {
  const ModelGraph model = test::deep_net(4, 6, 8, 3);
  for (const bool slots : {false, true})
    for (const char* schedule : {"chimera", "gems", "dualpipe"})
      for (const int replicas : {1, 2}) {
        CAPTURE(schedule);
        CAPTURE(replicas);
        Plan plan = test::stage_each(model, 8, 4);
        for (Stage& stage : plan.stages)
          if (replicas == 2) stage.place_on({stage.leaders.front(), DeviceId{stage.leaders.front().value + 4}});
        const ScheduleDef& def = get_from(schedules::catalog(), "schedule", schedule);
        add_way_back(plan, def.turn ? def.turn(4, 8) : 0);
        check_plan(plan);
        Training training = test::training_of(OptimizerKind::Momentum, 0.01, "teacher");
        training.slots = slots;
        for (const bool one_thread : {false, true}) {
          const auto run = test::really_run(test::real_program(schedule, plan, flush(), 5), model, plan, flush(),
                                            training, one_thread);
          const test::Expected expected = test::sequential(model, training, 8, 4, 5);
          auto weights = run.learnt().weights;
          REQUIRE(weights.size() == 8);
          for (std::size_t s = 0; s < 4; ++s) CHECK(weights[StageId{s}] == weights[StageId{s + 4}]);
          weights.resize(4);
          CHECK(furthest(flat(weights), flat(expected.weights)) <= 1e-12);
          CHECK(furthest(run.learnt().losses, expected.losses) <= 1e-12);
        }
      }
}

TEST_CASE("two copies on one device are refused: their gradients would not meet") {
  const ModelGraph model = test::deep_net(3, 6, 8, 3);
  Plan plan = test::stage_each(model, 4, 4);
  add_way_back(plan, 1);
  CHECK_THROWS_WITH_AS(test::really_run(test::real_program("gems", plan, flush(), 1), model, plan, flush(),
                                        test::training_of(OptimizerKind::Momentum, 0.01, "teacher")),
                       doctest::Contains("has both copies of stage"), Infeasible);
}

TEST_CASE("whole numbers: no difference at all, whatever the order, the stages and the replicas") {
  const ModelGraph model = test::deep_net(4, 6, 12, 4, OperationKind::Relu, OperationKind::SumSquare);
  Training training = test::training_of(OptimizerKind::Integer, 1, "integers");
  const test::Expected expected = test::sequential(model, training, 8, 4, 20);
  const auto start = test::sequential(model, training, 8, 4, 0);
  CHECK(flat(start.weights) != flat(expected.weights));
  for (const char* schedule : {"gpipe", "1f1b", "graph"})
    for (const int replicas : {1, 2}) {
      Plan plan = test::stage_each(model, 8, 4);
      if (replicas == 2) plan.stages[StageId{1}].place_on({DeviceId{1}, DeviceId{4}});
      if (replicas == 2) plan.stages[StageId{2}].place_on({DeviceId{2}, DeviceId{5}});
      const auto run =
          test::really_run(test::real_program(schedule, plan, flush(), 20), model, plan, flush(), training);
      CHECK(run.learnt().losses == expected.losses);
      CHECK(flat(run.learnt().weights) == flat(expected.weights));
    }
  // Micro-batches of different sizes, and one sample at a time.
  Plan mixed = test::stage_each(model, 8, 4);
  mixed.stages[StageId{1}].micro_batch_size = 2;
  mixed.stages[StageId{3}].micro_batch_size = 1;
  const auto run = test::really_run(test::real_program("graph", mixed, flush(), 20), model, mixed, flush(), training);
  CHECK(run.learnt().losses == expected.losses);
  CHECK(flat(run.learnt().weights) == flat(expected.weights));
}

}  // namespace stagecraft::sync_test
