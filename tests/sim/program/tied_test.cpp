// Weights that stages on different devices share: their gradients are summed after the last of them, and before any of
// the stages is updated.

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <set>

#include "tests/support/devices.hpp"
#include "tests/support/listing.hpp"
#include "tests/support/road.hpp"
#include "tests/support/trials.hpp"

namespace stagecraft::tied_test {
namespace {

constexpr double kBytes = 100;

Plan tied(Plan plan, const std::vector<std::vector<int>>& ties) {
  std::vector<test::StageTie> with_bytes;
  for (const auto& stages : ties) with_bytes.push_back({stages, kBytes});
  plan.reductions = derive_reductions(plan);
  for (Reduction& r : plan.reductions) r.bytes = Bytes{64};
  test::tie_stages(plan, with_bytes);
  return plan;
}

/// Ties the first and the last stage of the model and their copies; then adds more ties.
Plan ends_tied(Plan plan, std::vector<std::vector<int>> more = {}) {
  const int last = plan.different_stages() - 1;
  std::vector<int> stages{0, last};
  for (const int s : {0, last})
    if (plan.stage(StageId{s}).twin.valid()) stages.push_back(plan.stage(StageId{s}).twin.value);
  more.insert(more.begin(), stages);
  return tied(std::move(plan), more);
}

/// Each device becomes `replicas` devices.
Plan replicated(Plan plan, int replicas) {
  plan.mini_batch *= replicas;
  for (Stage& stage : plan.stages) {
    const DeviceId rank = stage.leaders.front();
    stage.micro_batch_size = replicas;
    stage.place_on(test::device_range(rank.value * replicas, replicas));
  }
  return plan;
}

Program program_of(std::string_view schedule, const Plan& plan, bool overlap = true, int iterations = 1) {
  StageCost cost = test::times(1, 2, 0.5);
  LoweringOptions options;
  options.iterations = iterations;
  options.overlap = overlap;
  options.rendezvous = overlap;
  return test::program_of(schedule, plan, uniform_costs(plan, cost), options);
}

std::vector<CollectiveCall> of_ties(const Program& program) {
  std::vector<CollectiveCall> result;
  for (const CollectiveCall& c : program.collectives)
    if (c.tie >= 0) result.push_back(c);
  return result;
}

std::string members(const Program& program, const CollectiveCall& c) {
  std::string text;
  for (int m = 0; m < c.members; ++m)
    text += (m == 0 ? "" : " ") + std::to_string(program.at(InstructionId{c.first.value + m}).device.value);
  return text;
}

/// Instructions that have ended when an instruction starts; members of a collective, and both ends of a message, start
/// together.
class Before {
 public:
  explicit Before(const Program& p) : ended_(p.size(), std::vector<std::uint64_t>((p.size() + 63) / 64)) {
    for (std::size_t n = 0; n < p.size(); ++n) {
      const InstructionId id{n};
      const Instruction& i = p.at(id);
      std::vector<InstructionId> together{id};
      if (i.kind == InstructionKind::Collective) {
        const CollectiveCall& c = p.collective(i);
        together.clear();
        for (int m = 0; m < c.members; ++m) together.emplace_back(c.first.value + m);
      }
      for (const InstructionId one : together)
        for (const InstructionId w : p.waits_for(one)) add(n, w);
    }
  }
  bool ended(InstructionId first, std::size_t when) const {
    return (ended_[when][first.value / 64] >> (first.value % 64) & 1) != 0;
  }

 private:
  void add(std::size_t n, InstructionId w) {
    ended_[n][w.value / 64] |= std::uint64_t{1} << (w.value % 64);
    for (std::size_t word = 0; word < ended_[n].size(); ++word) ended_[n][word] |= ended_[w.value][word];
  }
  std::vector<std::vector<std::uint64_t>> ended_;  ///< [when]: a bit for each instruction.
};

bool makes_gradient(const Instruction& i) {
  return i.kind == InstructionKind::Backward || i.kind == InstructionKind::WeightGradient;
}

bool has(const std::vector<StageId>& stages, StageId s) {
  return std::find(stages.begin(), stages.end(), s) != stages.end();
}

/// Checks that every update of tied weights comes after the gradients of all stages that hold them.
int check_updates(const Program& program, const Plan& plan) {
  const Before before(program);
  int checked = 0;
  for (const InstructionId n : program.instructions.ids()) {
    const Instruction& update = program.instructions[n];
    if (update.kind != InstructionKind::Update) continue;
    for (const Reduction& tie : plan.reductions) {
      if (!test::is_tied(tie) || !has(tie.stages, update.stage)) continue;
      for (const InstructionId i : program.instructions.ids()) {
        const Instruction& b = program.instructions[i];
        if (!makes_gradient(b) || !has(tie.stages, b.stage) || program.iteration_of(b) > update.update()) continue;
        CHECK_MESSAGE(before.ended(i, n.value), to_text(program, n), " before ", to_text(program, i));
        ++checked;
      }
    }
  }
  return checked;
}

bool contains(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("two stages: both updates wait for the all-reduce, which waits for both last gradients alone") {
  const std::string text = test::listing(program_of("1f1b", tied(chain_plan(2, 2, 2), {{0, 1}})));
  CHECK(contains(text, "\n0TAR0 after 0B1\n1TAR0 after 1B1\n"));
  CHECK(contains(text, "\n0U0 after 0B1, 0TAR0\n"));
  CHECK(contains(text, "\n1U0 after 1B1, 1TAR0\n"));
}

TEST_CASE("without overlap the all-reduce waits for the last computations") {
  const std::string text = test::listing(program_of("interleaved", tied(chain_plan(4, 2, 2), {{0, 3}}), false));
  CHECK(contains(text, "\n0TAR0 after 0B1\n3TAR0 after 3B1, 1U0\n"));
  CHECK(contains(text, "\n3U0 after 1U0, 3TAR0\n"));
}

TEST_CASE("updates of middle stages do not wait, and updates of the end stages come last") {
  // Rank 1 has stages 1 and 3. Its last backward is of stage 1, which stage 0 waits for.
  const Schedule schedule = test::build("interleaved", tied(chain_plan(4, 2, 2), {{0, 3}}));
  const auto& row = schedule.row(DeviceId{1});
  CHECK(to_text(row[row.size() - 2]) == "1U0");
  CHECK(to_text(row.back()) == "3U0");
  const Schedule alone = test::build("interleaved", chain_plan(4, 2, 2));
  CHECK(to_text(alone.row(DeviceId{1}).back()) == "1U0");
}

TEST_CASE("each replica has a ring, after the all-reduces of both stages; a tie does not delay those") {
  const Plan plan = replicated(chain_plan(4, 4, 4), 2);
  for (const bool overlap : {true, false}) {
    const Program program = program_of("1f1b", tied(plan, {{0, 3}}), overlap, 2);
    const auto rings = of_ties(program);
    REQUIRE(rings.size() == 2 * 2);
    CHECK(members(program, rings[0]) == "0 6");
    CHECK(members(program, rings[1]) == "1 7");
    CHECK(members(program, rings[2]) == "0 6");
    CHECK(rings[2].shape == rings[0].shape);
    CHECK(program.collectives.size() == 2 * (2 + 4));
    for (const CollectiveCall& c : rings) CHECK(program.shape(c).bytes == kBytes);
    const std::string text = test::listing(program);
    CHECK(contains(
        text, overlap ? "0TAR0 after 0AR0\n3TAR0 after 3AR0\n" : "0TAR0 after 0AR0, 0B3\n3TAR0 after 3AR0, 3B3\n"));
    CHECK(contains(text, "0U0 after 0B3, 0AR0, 0TAR0\n"));
    CHECK(contains(text, overlap ? "1U0 after 1B3, 1AR0\n" : "1U0 after 1B3, 2>0:1B3, 1AR0\n"));
  }
  // Rank 1 of 2 has stages 1 and 3: gradients of 3 are there first, and reduced first.
  const Program program = program_of("interleaved", tied(replicated(chain_plan(4, 2, 2), 2), {{0, 3}}));
  CHECK(test::find(program, "3AR0") < test::find(program, "1AR0"));
  CHECK(contains(test::listing(program), "3AR0 after 3B1\n"));
  CHECK(contains(test::listing(program), "1AR0 after 1B1, 3AR0\n"));
}

TEST_CASE("stages with different numbers of replicas have one ring of all devices") {
  Plan plan = replicated(chain_plan(2, 2, 4), 2);
  plan.stages[StageId{1}].place_on({DeviceId{2}});
  const Program program = program_of("gpipe", tied(plan, {{0, 1}}));
  REQUIRE(of_ties(program).size() == 1);
  CHECK(members(program, of_ties(program).front()) == "0 1 2");
  CHECK(contains(test::listing(program), "0TAR0 after 0AR0\n0TAR0 after 0AR0\n1TAR0 after 1B3\n"));
}

TEST_CASE("replicas that take turns have a ring each, as other replicas do") {
  const Plan plan = tied(test::in_turn({2, 2}, 4), {{0, 1}});
  const Program program = program_of("1f1b", plan, true, 2);
  CHECK(of_ties(program).size() == 2 * 2);
  CHECK(check_updates(program, plan) > 0);
}

TEST_CASE("three stages of a tie have a ring of three; two on one device count once") {
  const Program three = program_of("gpipe", tied(chain_plan(3, 3, 2), {{0, 1, 2}}));
  REQUIRE(of_ties(three).size() == 1);
  CHECK(members(three, of_ties(three).front()) == "0 1 2");
  const Plan shared = tied(chain_plan(4, 2, 2), {{0, 2, 3}});  // 0 and 2 on rank 0.
  for (const bool overlap : {true, false}) {
    const Program program = program_of("interleaved", shared, overlap);
    REQUIRE(of_ties(program).size() == 1);
    CHECK(members(program, of_ties(program).front()) == "0 1");
    CHECK(check_updates(program, shared) == 3 * 3 * 2);
  }
  CHECK(contains(test::listing(program_of("interleaved", shared)), "0TAR0 after 0B1, 2B1\n3TAR0 after 3B1\n"));
}

TEST_CASE("several ties have an all-reduce and a name each") {
  const Plan plan = tied(chain_plan(4, 4, 2), {{0, 3}, {1, 3}});
  const std::string text = test::listing(program_of("1f1b", plan));
  CHECK(contains(text, "0TAR0 after 0B1\n3TAR0 after 3B1\n1T1AR0 after 1B1\n3T1AR0 after 3B1, 3TAR0\n"));
  CHECK(contains(text, "3U0 after 3B1, 3TAR0, 3T1AR0\n"));
  CHECK(contains(text, "1U0 after 1B1, 1T1AR0\n"));
  CHECK(contains(text, "2U0 after 2B1\n"));
}

TEST_CASE("a device with all copies exchanges nothing, and updates them after the last gradient") {
  for (const char* schedule : {"zb-v", "v-half", "1f1b-v", "dualpipev", "hanayo", "chimera", "gems", "dualpipe"}) {
    CAPTURE(schedule);
    const Plan alone = test::least_plan(get_from(schedules::catalog(), "schedule", schedule), 4, 8),
               plan = ends_tied(alone);
    for (const bool overlap : {true, false}) {
      const Program program = program_of(schedule, plan, overlap, 2);
      CHECK(of_ties(program).empty());
      CHECK(program.size() == program_of(schedule, alone, overlap, 2).size());
      // Two iterations; in the second all gradients of both. Two holders of 8 micro-batches make 16 gradients each
      // time, and copies divide them.
      const int holders = static_cast<int>(std::ssize(plan.reductions.back().stages));
      CHECK(check_updates(program, plan) == holders * (16 + 32));
    }
  }
  const Schedule v =
      test::build("zb-v", tied(test::least_plan(get_from(schedules::catalog(), "schedule", "zb-v"), 2, 4), {{0, 3}}));
  const auto& row = v.row(DeviceId{0});
  CHECK(to_text(row[row.size() - 2]) == "3U0");
  CHECK(to_text(row.back()) == "0U0");
}

TEST_CASE("a device in no ring waits for the all-reduces of both of its groups") {
  Plan plan = chain_plan(2, 2, 2);
  plan.mini_batch = 4;
  plan.stages[StageId{0}].place_on({DeviceId{0}, DeviceId{1}});
  plan.stages[StageId{1}].place_on({DeviceId{1}, DeviceId{2}});
  for (Stage& stage : plan.stages) stage.micro_batch_size = 2;
  plan = tied(std::move(plan), {{0, 1}});
  const Schedule schedule =
      test::schedule_from({"0F0 0F1 0B0 0B1 0U0", "0F0 0F1 1F0 1F1 1B0 0B0 1B1 0B1 1U0 0U0", "1F0 1F1 1B0 1B1 1U0"});
  StageCost cost = test::times(1, 2, 0.5);
  for (const bool overlap : {true, false}) {
    LoweringOptions options;
    options.overlap = overlap;
    options.rendezvous = overlap;
    const Program program = test::lowered(schedule, plan, uniform_costs(plan, cost), options);
    REQUIRE(of_ties(program).size() == 1);
    CHECK(members(program, of_ties(program).front()) == "0 2");
    CHECK(check_updates(program, plan) == 4 * 8);
    CHECK(contains(test::listing(program), "1U0 after 0B1, 1AR0, 0AR0"));
    CHECK(contains(test::listing(program), "0U0 after 1U0, 0AR0, 1AR0"));
  }
}

TEST_CASE("bidirectional pipelines exchange tied gradients after the sums of both copies") {
  // Stage 1 of the first pipeline is on rank 1, its copy on rank 2; the ends and their copies are on ranks 0 and 3.
  for (const char* schedule : {"chimera", "gems", "dualpipe"})
    for (const bool overlap : {true, false}) {
      CAPTURE(schedule);
      const Plan plan =
          tied(test::least_plan(get_from(schedules::catalog(), "schedule", schedule), 4, 8), {{0, 1, 3, 4, 5, 7}});
      const Program program = program_of(schedule, plan, overlap, 2);
      const auto rings = of_ties(program);
      REQUIRE(rings.size() == 2 * 2);
      CHECK(members(program, rings[0]) == "0 1");
      CHECK(members(program, rings[1]) == "3 2");
      CHECK(check_updates(program, plan) > 0);
      CHECK(contains(test::listing(program), "0TAR0 after 0AR0, 7AR0"));
    }
}

/// Rings in an iteration: one for each replica if the holders of a tie are on several ranks.
std::size_t rings_of(const Plan& plan, int replicas) {
  std::size_t count = 0;
  for (const Reduction& tie : plan.reductions) {
    if (!test::is_tied(tie)) continue;
    std::set<DeviceId> ranks;
    for (const StageId s : tie.stages) ranks.insert(plan.stage(s).leaders.front());
    if (ranks.size() > 1) count += static_cast<std::size_t>(replicas);
  }
  return count;
}

TEST_CASE("no flushing schedule updates tied weights before the last gradient, with overlap or without") {
  int different = 0, exchanged = 0;
  for (const ScheduleDef* def : schedules::catalog()) {
    if (!def->flushes || !def->trains || def->name == "csv") continue;
    if (def->vocabulary != VocabularyPasses::None) continue;  // No stage has the tied layers alone.
    for (const bool overlap : {true, false})
      for (const int replicas : {1, 2}) {
        if (!test::all_trials() && (overlap || replicas == 1)) continue;
        CAPTURE(def->name);
        CAPTURE(overlap);
        CAPTURE(replicas);
        const Plan minimal = replicated(test::least_plan(*def, 4, 12), replicas);
        const Plan ends = ends_tied(minimal);
        const Program program = program_of(def->name, ends, overlap, 2);
        const bool together = def->placement == Placement::V || def->placement == Placement::Wave ||
                              def->placement == Placement::Bidirectional;
        CHECK(of_ties(program).size() == (together ? 0 : 2 * static_cast<std::size_t>(replicas)));
        CHECK(check_updates(program, ends) > 0);
        exchanged += !together;
        ++different;
        if (minimal.stages.front().twin.valid()) continue;
        const Plan several = ends_tied(minimal, {{1, minimal.stage_count() - 1}, {0, 1, 2}});
        const Program several_program = program_of(def->name, several, overlap, 2);
        CHECK(of_ties(several_program).size() == 2 * rings_of(several, replicas));
        CHECK(check_updates(several_program, several) > 0);
      }
  }
  const int settings = test::all_trials() ? 4 : 1;
  CHECK(different >= settings * 20);
  CHECK(exchanged >= settings * 10);
}

TEST_CASE("an update before the gradients of another stage with the same weights is refused") {
  const Plan plan = tied(chain_plan(4, 2, 1), {{0, 2}});
  const Schedule early = test::schedule_from({"0F0 2F0 2B0 2U0 0B0 0U0", "1F0 3F0 3B0 1B0 1U0 3U0"});
  const auto problems = validate(early, plan, {});
  REQUIRE(problems.size() == 1);
  CHECK(to_text(problems.front()) ==
        "local-order: rank 0, column 3, 2U0: 2U0 comes before the last gradient of stage 0, which shares its weights");
  const Schedule late = test::schedule_from({"0F0 2F0 2B0 0B0 0U0 2U0", "1F0 3F0 3B0 1B0 1U0 3U0"});
  CHECK(validate(late, plan, {}).empty());
}

TEST_CASE("updates in an order that another holder cannot follow are a cycle with names") {
  const Plan plan = tied(chain_plan(4, 2, 1), {{0, 3}});
  const Schedule early = test::schedule_from({"0F0 2F0 2B0 2U0 0B0 0U0", "1F0 3F0 3B0 3U0 1B0 1U0"});
  const auto problems = validate(early, plan, {});
  REQUIRE(problems.size() == 1);
  CHECK(problems.front().code == "cycle");
  CHECK(problems.front().message ==
        "0B0 (rank 0) waits for 1B0 (rank 1), which comes after 3U0; 3U0 (rank 1) waits for 0U0 (rank 0), which comes "
        "after 0B0");
  const Schedule late = test::schedule_from({"0F0 2F0 2B0 2U0 0B0 0U0", "1F0 3F0 3B0 1B0 1U0 3U0"});
  CHECK(validate(late, plan, {}).empty());
}

TEST_CASE("a plan without a tie has no all-reduce") {
  for (const bool overlap : {true, false}) {
    const Plan plan = chain_plan(4, 4, 4);
    CHECK(of_ties(program_of("1f1b", plan, overlap)).empty());
    CHECK(test::listing(program_of("1f1b", plan, overlap)).find("AR") == std::string::npos);
  }
}

}  // namespace stagecraft::tied_test
