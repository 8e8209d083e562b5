// Predictions as instructions: their position, waits, cost and memory.

#include <doctest/doctest.h>

#include "sim/program/weights_cost.hpp"
#include "tests/support/listing.hpp"
#include "tests/support/road.hpp"

namespace stagecraft::predict_test {
namespace {

StageCost with_weights() {
  StageCost cost = test::times(1, 2, 5);
  cost.touch = Seconds{0.25};
  cost.memory.weights = Bytes{1000}, cost.memory.gradients = Bytes{500}, cost.memory.optimizer = Bytes{2000};
  return cost;
}

Program two_stages(std::string_view policy, const LoweringOptions& given = {}, int iterations = 3) {
  const Plan plan = test::dag_plan(2, 1, {{0, 1}}, 10);
  LoweringOptions options = given;
  options.iterations = iterations;
  return test::lowered(test::build("pipedream", plan, iterations), plan, uniform_costs(plan, with_weights()), options,
                       policy);
}

const Instruction& at(const Program& program, std::string_view text) { return program.at(test::find(program, text)); }

std::string waits_of(const Program& program, std::string_view text) {
  std::string joined;
  for (const InstructionId w : program.waits_for(test::find(program, text))) joined += to_text(program, w) + " ";
  return joined;
}

}  // namespace

TEST_CASE("a prediction stands just before its op, and does not wait for the op's inputs") {
  const Program program = two_stages("pipemare");
  CHECK(to_text(program).find("device 0 compute        | 0F0 0F1 0B0 0U0 0F2 0PB1 0B1 0U1 0PB2 0B2 0U2\n") !=
        std::string::npos);
  CHECK(waits_of(program, "0PB1") == "0F2 ");
  CHECK(waits_of(program, "0B1") == "0PB1 0<1:1B1 ");
  const Instruction& prediction = at(program, "0PB1");
  CHECK(prediction.kind == InstructionKind::Predict);
  CHECK(prediction.is_compute());
  CHECK(letter(prediction.kind) == 'P');
  CHECK(program.prediction(prediction).for_backward);
  CHECK(program.prediction(prediction).horizon == 1);
  CHECK(program.prediction(prediction).version == 1);
  CHECK(program.iteration_of(prediction) == 1);
  CHECK(at(program, "0B1").weights == WeightsFrom::Predicted);
  CHECK(at(program, "0B0").weights == WeightsFrom::Version);
}

TEST_CASE("without overlap a prediction waits like any computation") {
  LoweringOptions options;
  options.overlap = false;
  const Program program = two_stages("spectrain", options);
  CHECK(waits_of(program, "0PF1") == "0F0 0>1:0F0 ");
  CHECK(waits_of(program, "0F1") == "0PF1 0>1:0F0 ");
}

TEST_CASE("forward and backward predictions differ, and the kept buffers are listed") {
  const Program both =
      test::lowered(test::build("pipedream", chain_plan(3, 3, 1), 3), chain_plan(3, 3, 1),
                    uniform_costs(chain_plan(3, 3, 1), with_weights()), test::pure_delays(3), "spectrain");
  CHECK(to_text(both).find("device 2 compute        | 2PF0 2F0 2PB0 2B0 2U0 2PF1 2F1 2PB1 2B1 2U1") !=
        std::string::npos);
  CHECK_FALSE(both.prediction(at(both, "2PF0")).for_backward);
  CHECK(both.prediction(at(both, "2PB0")).for_backward);
  const Program stashed = two_stages("spectrain-v2");
  CHECK(at(stashed, "0F1").weights == WeightsFrom::Predicted);
  CHECK(at(stashed, "0B1").weights == WeightsFrom::Stashed);
  CHECK(at(stashed, "1B1").weights == WeightsFrom::Version);
}

TEST_CASE("among ops that run as one, a prediction stands before its own op") {
  const Plan plan = chain_plan(1, 1, 1);
  Schedule schedule = test::schedule_from({"0F0 0B0 0U0 0F1+ 0B1 0U1"});
  schedule.drain_every = 0;
  WeightsRule rule = *get_from(weights::catalog(), "", "pipeoptim").as_released;
  LoweringOptions options;
  options.iterations = 2;
  const Program program = lower(schedule, plan, uniform_costs(plan, with_weights()), rule, options);
  check_program(program);
  CHECK(to_text(program) == "device 0 compute        | 0PF0 0F0 0B0 0U0 0PF1 0F1 0B1 0U1\n");
}

TEST_CASE("a prediction is memory traffic alone: it reads weights and optimizer state, and writes") {
  LoweringOptions sgd, momentum, adam;
  sgd.optimizer_states = 0, momentum.optimizer_states = 1, adam.optimizer_states = 2;
  momentum.keeps_momentum = true;
  const auto touches = [](const WeightsRule& rule, const LoweringOptions& options, bool backward = false) {
    return predict_time(rule, backward, Seconds{1}, options).value;
  };
  const WeightsRule& optimizer = test::policy("pipeoptim");
  const WeightsRule released = *get_from(weights::catalog(), "", "pipeoptim").as_released;
  // PipeOptim's traffic: W and m read, W' written, with SGDM; Adam reads m and v, and the released SGDM g as well.
  CHECK(touches(optimizer, momentum) == 3);
  CHECK(touches(optimizer, adam) == 4);
  CHECK(touches(optimizer, sgd) == 3);  // the last gradient is all there is
  CHECK(touches(released, momentum) == 4);
  CHECK(touches(released, adam) == 4);
  CHECK(touches(test::policy("spectrain"), adam) == 3);
  CHECK(touches(test::policy("spectrain"), adam, true) == 3);
  CHECK(touches(test::policy("geometric"), momentum) == 3);
  // PipeMare: W and delta read, W' written.
  CHECK(touches(test::policy("pipemare"), adam, true) == 3);
  CHECK(touches(test::policy("layerpipe2"), adam, true) == 3);
  CHECK(at(two_stages("pipeoptim", adam), "0PF1").duration.value == 4 * 0.25);
  CHECK(at(two_stages("pipeoptim", momentum), "0PF1").duration.value == 3 * 0.25);
}

TEST_CASE("updates take longer if they keep averages, and only on stages with stale weights") {
  const auto update = [](std::string_view policy, const char* text, const LoweringOptions& options = {}) {
    return at(two_stages(policy, options), text).duration.value;
  };
  for (const char* plain : {"naive", "stash", "2bw", "pipeoptim", "geometric", "xpipe"})
    CHECK(update(plain, "0U1") == 5);
  CHECK(update("pipemare", "0U1") == 5 + 4 * 0.25);
  CHECK(update("layerpipe2", "0U1") == 5 + 3 * 0.25);
  CHECK(update("spike-compensation", "0U1") == 5 + 0.25);
  for (const char* policy : {"pipemare", "layerpipe2", "spike-compensation"}) CHECK(update(policy, "1U1") == 5);
  // A momentum of bare gradients is read and written in addition to Adam's state; momentum SGD has it already.
  LoweringOptions momentum;
  momentum.keeps_momentum = true;
  CHECK(update("spectrain", "1U1") == 5 + 2 * 0.25);
  CHECK(update("spectrain", "1U1", momentum) == 5);
}

TEST_CASE("each stage has the delay, buffers and optimizer state of its policy") {
  const Program stash = two_stages("stash");
  CHECK(stash.delays == IdVector<StageId, int>{1, 0});
  CHECK(stash.memory[DeviceId{0}].weight_buffers == 2);
  CHECK(stash.memory[DeviceId{0}].weights.value == 2000);
  CHECK(stash.memory[DeviceId{1}].weights.value == 1000);
  const Program spectrain = two_stages("spectrain");
  CHECK(spectrain.memory[DeviceId{0}].weight_buffers == 2);
  CHECK(spectrain.memory[DeviceId{0}].optimizer.value == 2000 + 1000);  // the momentum of bare gradients is a state
  LoweringOptions momentum;
  momentum.keeps_momentum = true;
  CHECK(two_stages("spectrain", momentum).memory[DeviceId{0}].optimizer.value == 2000);
}

TEST_CASE("every replica predicts for itself, and the delay of a stage is the largest") {
  Plan plan = test::dag_plan(2, 4, {{0, 1}}, 10);
  plan.stages[StageId{0}].micro_batch_size = plan.stages[StageId{1}].micro_batch_size = 2;
  plan.stages[StageId{0}].place_on({DeviceId{0}, DeviceId{2}});
  LoweringOptions options;
  options.iterations = 3;
  const Program program =
      test::lowered(test::build("pipedream", plan, 3), plan, uniform_costs(plan, with_weights()), options, "pipeoptim");
  int predictions[3] = {0, 0, 0};
  for (const Instruction& i : program.instructions)
    if (i.kind == InstructionKind::Predict) ++predictions[i.device.value];
  CHECK(predictions[0] == 6);
  CHECK(predictions[1] == 0);
  CHECK(predictions[2] == 6);
  CHECK(program.delays == IdVector<StageId, int>{1, 0});
}

TEST_CASE("a message has its edge, and the micro-batch of the consumer that it is for") {
  Plan plan = test::dag_plan(3, 2, {{0, 2}, {1, 2}}, 10);
  plan.stages[StageId{2}].micro_batch_size = 2;
  const Program program = test::program_of("graph", plan, uniform_costs(plan, test::times(1, 1)));
  const auto transfer_of = [&](std::string_view send) -> const Transfer& {
    return program.transfer(at(program, send));
  };
  CHECK(program.shape(transfer_of("0>2:0F1")).edge == 0);
  CHECK(program.receiving_micro_batch(transfer_of("0>2:0F1")) == 0);
  CHECK(program.rows(transfer_of("0>2:0F1")) == RowRange{1, 1});
  CHECK(program.shape(transfer_of("1>2:1F0")).edge == 1);
  // 2B0 feeds both micro-batches of each stage in front of it.
  std::vector<std::pair<int, int>> back;
  for (const Transfer& t : program.transfers)
    if (program.shape(t).role == TensorRole::Gradient)
      back.emplace_back(program.shape(t).edge, program.receiving_micro_batch(t));
  std::sort(back.begin(), back.end());
  CHECK(back == std::vector<std::pair<int, int>>{{0, 0}, {0, 1}, {1, 0}, {1, 1}});
}

}  // namespace stagecraft::predict_test
