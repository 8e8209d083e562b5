// Each test breaks one promise of a program, and the checker names it.

#include "sim/program/check.hpp"

#include <doctest/doctest.h>

#include <functional>
#include <limits>

#include "tests/support/road.hpp"

namespace stagecraft::check_test {
namespace {

/// Two stages, the second on two devices, two micro-batches.
Program sound(bool rendezvous = true) {
  Plan plan = test::dag_plan(2, 4, {{0, 1}}, 10);
  plan.stages[StageId{0}].micro_batch_size = plan.stages[StageId{1}].micro_batch_size = 2;
  plan.stages[StageId{1}].place_on({DeviceId{1}, DeviceId{2}});
  LoweringOptions options;
  options.rendezvous = rendezvous;
  StageCost cost = test::times(1, 1);
  cost.memory.stash = Bytes{5};
  return test::program_of("1f1b", plan, uniform_costs(plan, cost), options);
}

Instruction& at(Program& program, std::string_view text) { return program.instructions[test::find(program, text)]; }

Transfer& transfer_of(Program& program, std::string_view send) {
  return program.transfers[at(program, send).transfer()];
}

TransferShape& shape_of(Program& program, std::string_view send) {
  return program.transfer_shapes[transfer_of(program, send).shape];
}

Prediction& prediction_of(Program& program, std::string_view text) {
  return program.predictions[at(program, text).prediction()];
}

/// Makes `later` wait for `to` instead of `from`.
void redirect(Program& program, std::string_view later, std::string_view from, InstructionId to) {
  const InstructionId n = test::find(program, later);
  const InstructionId old = test::find(program, from);
  for (std::uint32_t w = program.first_wait[n.value]; w < program.first_wait[n.value + 1]; ++w)
    if (program.waits[w] == old) return void(program.waits[w] = to);
  FAIL("there is no such wait");
}

/// Three stages that predict for the forward; the last one predicts for the backward too.
Program predicting() {
  const Plan plan = test::dag_plan(3, 1, {{0, 1}, {1, 2}}, 10);
  LoweringOptions options;
  options.iterations = 4;
  return test::lowered(test::build("pipedream", plan, 4), plan, uniform_costs(plan, test::times(1, 1)), options,
                       "spectrain");
}

std::string verdict(const Program& program) {
  try {
    check_program(program);
  } catch (const InternalError& error) {
    return error.what();
  }
  return "sound";
}

}  // namespace

TEST_CASE("programs that lower makes pass the check") {
  CHECK(verdict(sound()) == "sound");
  CHECK(verdict(sound(false)) == "sound");
  Program empty;
  empty.first_wait = {0};
  CHECK(verdict(empty) == "sound");
}

TEST_CASE("each broken promise is caught and named") {
  const struct {
    const char* message;
    std::function<void(Program&)> act;
  } cases[] = {
      {"the program has wait lists that do not match its instructions", [](Program& p) { p.first_wait.pop_back(); }},
      {"the program has wait lists that do not match its instructions", [](Program& p) { p.waits.pop_back(); }},
      {"0F1 waits for an instruction that is not before it",
       [](Program& p) { redirect(p, "0F1", "0F0", test::find(p, "0B0")); }},
      {"0F1 waits for an instruction that is not before it",
       [](Program& p) { redirect(p, "0F1", "0F0", test::find(p, "0F1")); }},
      {"0F1 waits for an instruction that is not before it",
       [](Program& p) { redirect(p, "0F1", "0F0", InstructionId{}); }},
      {"0F1 computes outside a stream", [](Program& p) { at(p, "0F1").stream = StreamId{}; }},
      {"0F1 is in a stream of another device", [](Program& p) { at(p, "0F1").stream = StreamId{1}; }},
      {"0F1 is in a stream that does not exist", [](Program& p) { at(p, "0F1").stream = StreamId{99}; }},
      {"0F1 is on a device that does not exist", [](Program& p) { at(p, "0F1").device = DeviceId{3}; }},
      {"5F1 is of a stage that does not exist", [](Program& p) { at(p, "0F1").stage = StageId{5}; }},
      {"0F0 is in no iteration", [](Program& p) { p.iterations = 0; }},
      {"0F1 takes no time that a clock can show", [](Program& p) { at(p, "0F1").duration = Seconds{-1}; }},
      {"0F1 takes no time that a clock can show",
       [](Program& p) { at(p, "0F1").duration = Seconds{std::numeric_limits<double>::quiet_NaN()}; }},
      {"1B0 does not wait for the instruction before it in its stream",
       [](Program& p) { redirect(p, "1B0", "1F0", test::find(p, "0F0")); }},
      {"0>1:0F1 does not wait for the instruction before it in its stream",
       [](Program& p) { redirect(p, "0>1:0F1", "0>1:0F0", test::find(p, "0F0")); }},
      {"0>1:0F0 is half a transfer", [](Program& p) { transfer_of(p, "0>1:0F0").receive = InstructionId{}; }},
      {"0>1:0F0 is paired with the wrong kind",
       [](Program& p) { transfer_of(p, "0>1:0F0").receive = test::find(p, "0F0"); }},
      {"0>1:0F0 does not match its receive",
       [](Program& p) { transfer_of(p, "0>1:0F0").receive = test::find(p, "1<0:0F1"); }},
      {"0>1:0F0 does not match its receive", [](Program& p) { at(p, "1<0:0F0").number = 1; }},
      {"0>1:0F0 does not match its receive", [](Program& p) { at(p, "1<0:0F0").payload = at(p, "1<0:0F1").payload; }},
      {"the program has a transfer without a shape", [](Program& p) { transfer_of(p, "0>1:0F0").shape = 99; }},
      {"0>2:0F0 does not match its route", [](Program& p) { p.routes.front().to = DeviceId{2}; }},
      {"the program has a message that is in no transfer", [](Program& p) { p.transfers.pop_back(); }},
      {"0F0 computes outside a stream", [](Program& p) { p.streams.front().kind = StreamKind::Collective; }},
      {"is not a member of its collective", [](Program& p) { at(p, "1AR0").kind = InstructionKind::Send; }},
      {"1AR0 does not match its routes", [](Program& p) { p.routes[p.phases[0].first_route].from = DeviceId{0}; }},
      {"1AR0 does not match its routes", [](Program& p) { p.routes[p.phases[0].first_route].to = DeviceId{0}; }},
      {"0F0 has a buffer that ends before it begins",
       [](Program& p) {
         for (Buffer& b : p.buffers)
           if (to_text(p, b.allocated_by) == "0F0") return void(b.freed_by = InstructionId{-1});
       }},
      {"has a buffer that ends before it begins",
       [](Program& p) { p.buffers.front().freed_by = InstructionId{1 << 20}; }},
      {"0>1:0F0 is sent before its data are there, or freed before it is received",
       [](Program& p) { transfer_of(p, "0>1:0F0").producer = test::find(p, "0>1:0F0"); }},
      {"0>1:0F0 is sent before its data are there, or freed before it is received",
       [](Program& p) { transfer_of(p, "0>1:0F0").consumer = test::find(p, "0F0"); }},
      {"the program has no memory figures for some device", [](Program& p) { p.memory.pop_back(); }},
  };
  for (const auto& c : cases) {
    Program program = sound();
    c.act(program);
    const std::string reported = verdict(program);
    CAPTURE(reported);
    CHECK_MESSAGE(reported.find(c.message) != std::string::npos, c.message);
  }
}

TEST_CASE("each broken promise about weights is caught and named") {
  const struct {
    const char* message;
    std::function<void(Program&)> act;
  } cases[] = {
      {"the program has no delay for some stage", [](Program& p) { p.delays.pop_back(); }},
      {"0>1:0F0 is for no edge or has no samples", [](Program& p) { shape_of(p, "0>1:0F0").edge = -1; }},
      {"0>1:0F0 is for no edge or has no samples", [](Program& p) { shape_of(p, "0>1:0F0").rows.count = 0; }},
      {"1B0 reads a version that is not made before it", [](Program& p) { at(p, "1B0").payload = 1; }},
      {"0B1 reads a version that is not made before it", [](Program& p) { at(p, "0B1").payload = -1; }},
      {"0U1 does not make the next version", [](Program& p) { at(p, "0U1").payload = 3; }},
      {"the program has a prediction that does not exist", [](Program& p) { at(p, "0PF1").payload = 99; }},
      {"0PF1 looks ahead by an impossible number of updates", [](Program& p) { prediction_of(p, "0PF1").horizon = 0; }},
      {"0PF1 looks ahead by an impossible number of updates", [](Program& p) { prediction_of(p, "0PF1").horizon = 5; }},
      {"0PF3 does not start from the newest version", [](Program& p) { prediction_of(p, "0PF3").version = 0; }},
      {"0F3 reads a prediction that is not made before it", [](Program& p) { at(p, "0F3").payload = 0; }},
      {"0B0 reads a prediction that is not made before it",
       [](Program& p) { at(p, "0B0").weights = WeightsFrom::Predicted; }},
      {"0PF1 is not right before the op that it is for",
       [](Program& p) { at(p, "0F1").weights = WeightsFrom::Version; }},
      {"0PB1 is not right before the op that it is for",
       [](Program& p) { prediction_of(p, "0PF1").for_backward = true; }},
      {"2PB1 is not right before the op that it is for", [](Program& p) { at(p, "2B1").number = 2; }},
      {"0F1 keeps weights that no forward predicted",
       [](Program& p) {
         Instruction& predicts = at(p, "0PF1");
         predicts.kind = InstructionKind::Forward;
         predicts.payload = 0;
         at(p, "0F1").weights = WeightsFrom::Stashed;
       }},
  };
  CHECK(verdict(predicting()) == "sound");
  for (const auto& c : cases) {
    Program program = predicting();
    c.act(program);
    const std::string reported = verdict(program);
    CAPTURE(reported);
    CHECK_MESSAGE(reported.find(c.message) != std::string::npos, c.message);
  }
}

TEST_CASE("a rendezvous send must stand next to its receive; an eager message need not") {
  const Plan plan = test::dag_plan(2, 2, {{0, 1}}, 10);
  LoweringOptions options;
  options.overlap = options.rendezvous = false;
  Program program = test::program_of("1f1b", plan, uniform_costs(plan, test::times(1, 1)), options);
  CHECK(verdict(program) == "sound");
  program.rendezvous = true;
  CHECK(verdict(program).find("1>0:1B0 is not next to its receive") != std::string::npos);
}

TEST_CASE("data that no op uses is refused, and data that is sent before it is made") {
  Program unused = sound();
  redirect(unused, "1F0", "1<0:0F0", test::find(unused, "0F0"));
  CHECK(verdict(unused).find("1<0:0F0 is received but never used") ==
        std::string::npos);  // the next receive waits for it
  LoweringOptions options;
  options.streams = StreamModel::None;
  const Plan plan = test::dag_plan(2, 1, {{0, 1}}, 10);
  const Program loose = test::program_of("1f1b", plan, uniform_costs(plan, test::times(1, 1)), options);
  unused = loose;
  redirect(unused, "1F0", "1<0:0F0", test::find(unused, "0F0"));
  CHECK(verdict(unused).find("1<0:0F0 is received but never used") != std::string::npos);
  Program unmade = loose;
  redirect(unmade, "1>0:1B0", "1B0", test::find(unmade, "0F0"));
  CHECK(verdict(unmade).find("1>0:1B0 does not wait for the op that makes its data") != std::string::npos);
}

}  // namespace stagecraft::check_test
