// Two stages with copies of the same weights: their gradients are reduced together before either is updated.

#include <doctest/doctest.h>

#include "tests/support/checked.hpp"
#include "tests/support/devices.hpp"
#include "tests/support/listing.hpp"
#include "tests/support/road.hpp"

namespace stagecraft::copies_test {
namespace {

constexpr const char* kBothWays[] = {"chimera", "gems", "dualpipe"};

/// A bidirectional plan in which each of p ranks is `replicas` devices.
Plan both_ways(std::string_view schedule, int p, int micro_batches, int replicas = 1) {
  const ScheduleDef& def = get_from(schedules::catalog(), "schedule", schedule);
  Plan plan = plan_for(def, p, def.chunks.min, micro_batches);
  plan.mini_batch *= replicas;
  for (Stage& stage : plan.stages) {
    const DeviceId rank = stage.leaders.front();
    stage.micro_batch_size = replicas;
    stage.place_on(test::device_range(rank.value * replicas, replicas));
  }
  check_plan(plan);
  return plan;
}

Program program_of(std::string_view schedule, const Plan& plan, bool overlap = true, int iterations = 1) {
  StageCost cost = test::times(1, 1, 0.5);
  cost.memory.gradients = Bytes{64};
  cost.memory.weights = Bytes{100};
  LoweringOptions options;
  options.iterations = iterations;
  options.overlap = overlap;
  options.rendezvous = overlap;
  return test::program_of(schedule, plan, uniform_costs(plan, cost), options);
}

/// Instructions that have ended when instruction n starts, by its waits alone.
std::vector<bool> before(const Program& program, std::size_t n) {
  std::vector<bool> seen(program.size(), false);
  seen[n] = true;
  for (std::size_t i = n + 1; i-- > 0;)
    if (seen[i])
      for (const InstructionId w : program.waits_for(InstructionId{i})) seen[w.value] = true;
  return seen;
}

/// As before(), with the waits of the partners in collectives too, because they start together.
std::vector<bool> before_with_partners(const Program& program, std::size_t n) {
  std::vector<bool> seen = before(program, n);
  for (const CollectiveCall& c : program.collectives) {
    bool any = false;
    for (int m = 0; m < c.members; ++m) any = any || seen[c.first.value + m];
    for (int m = 0; any && m < c.members; ++m) {
      const std::vector<bool> more = before(program, static_cast<std::size_t>(c.first.value + m));
      for (std::size_t i = 0; i < more.size(); ++i) seen[i] = seen[i] || more[i];
    }
  }
  return seen;
}

}  // namespace

TEST_CASE("gradients are reduced as soon as both copies have them, the last stage first") {
  const std::string text = test::listing(program_of("chimera", both_ways("chimera", 2, 2)));
  // Rank 0: 0F0 3F1 3B1 0B0, rank 1: 2F1 1F0 1B0 2B1. Stages 1 and 3 are copies, and 0 and 2.
  CHECK(text.find("1AR0 after 1B0\n3AR0 after 3B1\n") != std::string::npos);
  CHECK(text.find("0AR0 after 0B0, 3AR0\n2AR0 after 2B1, 1AR0\n") != std::string::npos);
  CHECK(text.find("3U0 after 0B0, 3AR0\n") != std::string::npos);
  CHECK(text.find("0U0 after 3U0, 0AR0\n") != std::string::npos);
  CHECK(text.find("1U0 after 2B1, 1AR0\n") != std::string::npos);
  CHECK(text.find("2U0 after 1U0, 2AR0\n") != std::string::npos);
}

TEST_CASE("without overlap the all-reduces wait for computation") {
  const std::string text = test::listing(program_of("chimera", both_ways("chimera", 2, 2), false));
  CHECK(text.find("1AR0 after 2B1\n3AR0 after 0B0\n") != std::string::npos);
}

TEST_CASE("a ring goes once round the devices of both copies, with the bytes of one") {
  for (const char* schedule : kBothWays)
    for (const int replicas : {1, 2, 3}) {
      const Plan plan = both_ways(schedule, 4, 8, replicas);
      const Program program = program_of(schedule, plan, true, 3);
      REQUIRE(program.collectives.size() == 4 * 3);
      for (const CollectiveCall& c : program.collectives) {
        CHECK(program.shape(c).bytes == 64);
        REQUIRE(c.members == 2 * replicas);
        const Stage& first = plan.stage(program.at(c.first).stage);
        for (int m = 0; m < c.members; ++m) {
          const Instruction& member = program.at(InstructionId{c.first.value + m});
          const Stage& owner = m < replicas ? first : plan.stage(first.twin);
          CHECK(member.device == owner.leaders[m % replicas]);
          CHECK(&plan.stage(member.stage) == &owner);
        }
      }
    }
}

TEST_CASE("no update runs before the last gradient of both copies; each device keeps two stages") {
  for (const char* schedule : kBothWays)
    for (const int p : {2, 4})
      for (const bool overlap : {true, false}) {
        CAPTURE(schedule);
        CAPTURE(p);
        const Plan plan = both_ways(schedule, p, 2 * p);
        const Program program = program_of(schedule, plan, overlap, 2);
        int updates = 0;
        for (const InstructionId n : program.instructions.ids()) {
          const Instruction& update = program.instructions[n];
          if (update.kind != InstructionKind::Update) continue;
          ++updates;
          const std::vector<bool> done = before_with_partners(program, n.value);
          const StageId twin = plan.stage(update.stage).twin;
          for (const InstructionId i : program.instructions.ids()) {
            const Instruction& b = program.instructions[i];
            const bool makes = b.kind == InstructionKind::Backward || b.kind == InstructionKind::WeightGradient;
            if (makes && (b.stage == update.stage || b.stage == twin) && program.iteration_of(b) <= update.update())
              CHECK(done[i.value]);
          }
        }
        CHECK(updates == 2 * p * 2);
        for (const ResidentMemory& memory : program.memory) {
          CHECK(memory.weights.value == 200);
          CHECK(memory.gradients.value == 128);
        }
      }
}

TEST_CASE("a middle rank with both copies exchanges nothing, or only with its replicas") {
  const Program alone = program_of("gems", both_ways("gems", 3, 4), true, 2);
  CHECK(alone.collectives.size() == 2 * 2);
  for (const CollectiveCall& c : alone.collectives) CHECK(alone.at(c.first).device != DeviceId{1});
  CHECK(test::listing(alone).find("1U0 after") != std::string::npos);
  CHECK(test::listing(alone).find("4U0 after") != std::string::npos);
  for (const bool overlap : {true, false}) {
    const Program replicated = program_of("gems", both_ways("gems", 3, 4, 2), overlap, 2);
    CHECK(replicated.collectives.size() == 3 * 2);
    for (const CollectiveCall& c : replicated.collectives)
      CHECK(c.members == (replicated.at(c.first).device == DeviceId{2} ? 2 : 4));
  }
}

TEST_CASE("updates in an order that the other copy cannot follow are a cycle with names") {
  const Plan plan = both_ways("chimera", 2, 2);
  const Schedule crossed = test::schedule_from({"0F0 3F1 3B1 3U0 0B0 0U0", "2F1 1F0 1B0 2B1 2U0 1U0"});
  const auto problems = validate(crossed, plan, {});
  REQUIRE(problems.size() == 1);
  CHECK(problems.front().code == "cycle");
  CHECK(problems.front().message ==
        "3U0 (rank 0) waits for 1U0 (rank 1), which comes after 2U0; 2U0 (rank 1) waits for 0U0 (rank 0), which comes "
        "after 3U0");
}

}  // namespace stagecraft::copies_test
