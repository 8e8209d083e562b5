// Stages on several devices: shares of the samples, messages between replicas, and the reduction of gradients.

#include <doctest/doctest.h>

#include <map>

#include "sim/plan/overlap.hpp"
#include "tests/support/devices.hpp"
#include "tests/support/listing.hpp"
#include "tests/support/random_cases.hpp"

namespace stagecraft::replicas_test {
namespace {

Plan replicated(int size_a, int replicas_a, int size_b, int replicas_b, int mini_batch, double bytes) {
  Plan plan = test::dag_plan(2, mini_batch, {{0, 1}}, bytes);
  int device = 0;
  const auto give = [&](Stage& stage, int size, int replicas) {
    stage.micro_batch_size = size;
    stage.place_on(test::device_range(device, replicas));
    device += replicas;
  };
  give(plan.stages[StageId{0}], size_a, replicas_a);
  give(plan.stages[StageId{1}], size_b, replicas_b);
  return plan;
}

Program program_of(const Plan& plan, const LoweringOptions& options = {}) {
  return test::program_of("graph", plan, uniform_costs(plan, test::times(1, 1)), options);
}

/// Every send with its bytes, in program order.
std::string sends(const Program& program) {
  std::string text;
  for (const Transfer& t : program.transfers)
    text += to_text(program, t.send) + "=" + std::to_string(program.bytes(t)) + " ";
  return text;
}

}  // namespace

TEST_CASE("shares of a micro-batch cover it once, in order, as even as whole samples allow") {
  Stage stage;
  for (const int size : {1, 2, 3, 4, 5, 7, 12}) {
    stage.micro_batch_size = size;
    for (int replicas = 1; replicas <= size; ++replicas) {
      stage.place_on(test::device_range(0, replicas));
      std::int64_t next = 0;
      for (int micro = 0; micro < 3; ++micro)
        for (int r = 0; r < replicas; ++r) {
          const SampleRange s = samples_of(stage, micro, r);
          CHECK(s.low == next);
          CHECK(s.high - s.low >= size / replicas);
          CHECK(s.high - s.low <= (size + replicas - 1) / replicas);
          next = s.high;
        }
      CHECK(next == 3 * size);
    }
  }
}

TEST_CASE("one to two: each replica gets its half, and sends its half back") {
  CHECK(sends(program_of(replicated(4, 1, 4, 2, 4, 10))) == "0>1:0F0=20 0>2:0F0=20 1>0:1B0=20 2>0:1B0=20 ");
}

TEST_CASE("two to two: equal shares meet, and no other replicas exchange messages") {
  const Program program = program_of(replicated(4, 2, 4, 2, 4, 10));
  CHECK(sends(program) == "0>2:0F0=20 1>3:0F0=20 2>0:1B0=20 3>1:1B0=20 ");
}

// A stream for each peer and direction on both sides of each message, and a route each way.
TEST_CASE("streams and routes exist only for pairs that exchange messages") {
  for (const int replicas : {4, 1000}) {
    const Plan plan = replicated(replicas, replicas, replicas, replicas, 2 * replicas, 10);
    const Program program = test::program_of("inference", plan, uniform_costs(plan, test::times(1, 1)));
    const auto pairs = static_cast<std::size_t>(replicas);
    CHECK(program.streams.size() == 2 * pairs + 4 * pairs);
    CHECK(program.routes.size() == 2 * pairs);
  }
}

TEST_CASE("two to three: shares that overlap in part are cut") {
  // Samples 0..2 and 3..5 against 0..1, 2..3 and 4..5.
  CHECK(sends(program_of(replicated(6, 2, 6, 3, 6, 10))) ==
        "0>2:0F0=20 0>3:0F0=10 1>3:0F0=10 1>4:0F0=20 2>0:1B0=20 3>0:1B0=10 3>1:1B0=10 4>1:1B0=20 ");
}

TEST_CASE("small micro-batches fill a large one, a large one feeds several") {
  CHECK(sends(program_of(replicated(1, 1, 2, 1, 2, 10))) == "0>1:0F0=10 0>1:0F1=10 1>0:1B0=10 1>0:1B0=10 ");
  CHECK(sends(program_of(replicated(2, 1, 1, 1, 2, 10))) == "0>1:0F0=10 0>1:0F0=10 1>0:1B0=10 1>0:1B1=10 ");
  const Program program = program_of(replicated(1, 1, 2, 1, 2, 10));
  const std::string text = test::listing(program);
  CHECK(text.find("1F0 after 1<0:0F1, 1<0:0F0") != std::string::npos);
  CHECK(text.find("0B0 after 0F1, 0<1:1B0") != std::string::npos);
  CHECK(text.find("0B1 after 0B0, 0<1:1B0") != std::string::npos);
}

TEST_CASE("fractions of a byte are rounded to the nearest byte") {
  CHECK(program_of(replicated(1, 1, 1, 1, 1, 2.5)).transfer_shapes.front().bytes == 3);
  CHECK(program_of(replicated(1, 1, 1, 1, 1, 2.4)).transfer_shapes.front().bytes == 2);
}

TEST_CASE("bytes add up: every sample crosses every edge once each way, whatever the sizes and replicas") {
  test::Draw draw{Rng(3, "replicas")};
  for (int trial = 0; trial < 200; ++trial) {
    const test::RandomCase c = test::random_case(draw, 5);
    if (!c.options.overlap && c.options.rendezvous) continue;
    const Program program = test::program_of(c);
    std::map<std::pair<bool, StageId>, std::uint64_t> sent, expected;
    for (const Transfer& t : program.transfers)
      sent[{program.moves_gradient(program.at(t.send)), program.at(t.send).stage}] += program.bytes(t);
    for (const StageEdge& e : c.plan.edges) {
      const auto bytes = static_cast<std::uint64_t>(e.bytes.value) *
                         static_cast<std::uint64_t>(c.plan.mini_batch * c.options.iterations);
      expected[{false, e.from}] += bytes;
      if (c.schedule != "inference") expected[{true, e.to}] += bytes;
    }
    CHECK(sent == expected);
  }
}

TEST_CASE("gradients are reduced after the last backward of each replica, and the update waits for it") {
  const Plan plan = replicated(2, 1, 2, 2, 4, 10);
  LoweringOptions options;
  options.iterations = 2;
  StageCosts costs = uniform_costs(plan, test::times(1, 1));
  for (auto& replica : costs.replicas(StageId{1})) replica.memory.gradients = Bytes{64};
  const Program program = test::program_of("1f1b", plan, costs, options);
  REQUIRE(program.collectives.size() == 2);
  const std::string text = test::listing(program);
  CHECK(text.find("1AR0 after 1B1\n1AR0 after 1B1\n") != std::string::npos);
  CHECK(text.find("1U0 after 1B1, 1AR0\n") != std::string::npos);
  CHECK(text.find("1AR1 after 1B3, 1AR0\n1AR1 after 1B3, 1AR0\n") != std::string::npos);
  CHECK(text.find("0U0 after 0B1\n") != std::string::npos);  // one device reduces nothing
  for (const CollectiveCall& c : program.collectives) {
    CHECK(program.shape(c).bytes == 64);
    CHECK(c.members == 2);
  }
  for (const InstructionId n : program.instructions.ids()) {
    const Instruction& i = program.instructions[n];
    if (i.kind != InstructionKind::Update || i.stage.value != 1) continue;
    bool on_same_device = false;  // the member on its own device
    for (const InstructionId w : program.waits_for(n))
      on_same_device =
          on_same_device || (program.at(w).kind == InstructionKind::Collective && program.at(w).device == i.device);
    CHECK(on_same_device);
  }
}

TEST_CASE("a ring goes once round the replicas, and all reductions of a stage share it") {
  Plan plan = replicated(4, 4, 4, 3, 12, 10);
  plan.stages[StageId{0}].place_on({DeviceId{5}, DeviceId{0}, DeviceId{6}, DeviceId{2}});
  plan.stages[StageId{1}].place_on({DeviceId{1}, DeviceId{4}, DeviceId{3}});
  for (const bool overlap : {true, false}) {
    LoweringOptions options;
    options.iterations = 3;
    options.overlap = overlap;
    options.rendezvous = overlap;
    const Program program = program_of(plan, options);
    REQUIRE(program.collectives.size() == 6);
    std::map<StageId, std::int32_t> shape_of;
    for (const CollectiveCall& c : program.collectives) {
      const StageId stage = program.at(c.first).stage;
      const auto& devices = plan.stage(stage).leaders;
      REQUIRE(c.members == static_cast<int>(devices.size()));
      CHECK(shape_of.try_emplace(stage, c.shape).first->second == c.shape);
      REQUIRE(program.phases_of(c).size() == 1);
      for (int m = 0; m < c.members; ++m) {
        const auto i = static_cast<std::size_t>(m);
        CHECK(program.at(c.member(m)).device == devices[i]);
        const RouteEnds& edge = program.routes[program.phases_of(c)[0].first_route + m];
        CHECK(edge.from == devices[i]);
        CHECK(edge.to == devices[(i + 1) % devices.size()]);
      }
    }
    CHECK(shape_of.size() == 2);
    CHECK(program.collective_shapes.size() == 2);
  }
}

TEST_CASE("a share that stays on its device is not sent") {
  // Both stages on the same two devices: sample halves stay where they are.
  Plan plan = replicated(2, 2, 2, 2, 2, 10);
  plan.stages[StageId{1}].place_on(plan.stages[StageId{0}].leaders);
  CHECK(test::program_of("inference", plan, uniform_costs(plan, test::times(1, 1))).transfers.empty());
  plan.stages[StageId{1}].place_on({plan.stages[StageId{0}].leaders[1], plan.stages[StageId{0}].leaders[0]});
  CHECK(sends(test::program_of("inference", plan, uniform_costs(plan, test::times(1, 1)))) == "0>1:0F0=10 1>0:0F0=10 ");
}

}  // namespace stagecraft::replicas_test
