// Scores on all ranks: time and memory of vocab-1, vocab-2 and interlaced, by the formulas of their papers.

#include <algorithm>

#include <doctest/doctest.h>
#include <fmt/core.h>

#include "sim/result/report.hpp"
#include "tests/support/ideal.hpp"
#include "tests/support/road.hpp"

namespace stagecraft::vocabulary_test {
namespace {

/// Seconds of a micro-batch on a rank.
struct Times {
  double forward, backward, scores, gradient;
};

constexpr double kRate = 1e9;  ///< Bytes per second of every link; nothing else delays a message.

/// What is broadcast and summed takes these seconds on a link.
struct Messages {
  double input = 0, statistics = 0, embedding = 0;
};

struct Run {
  Report report;
  double broadcast = 0, first_sum = 0, second_sum = 0;  ///< Seconds of each exchange alone.
  double embedding_sum = 0, embedding_broadcast = 0;
};

Plan vocabulary_plan(int ranks, int micro_batches, Messages messages = {}) {
  Plan plan = chain_plan(ranks, ranks, micro_batches);
  plan.vocabulary = {Bytes{messages.input * kRate}, Bytes{messages.statistics * kRate},
                     Bytes{messages.embedding * kRate}};
  return plan;
}

StageCost cost_of(const Times& t) {
  StageCost cost = test::times(t.forward, t.backward);
  cost.memory.stash = Bytes{1};
  StageCost part;
  part.passes.forward.other = Seconds{t.scores};
  part.passes.weight_gradient.other = Seconds{t.gradient};
  part.memory.stash = Bytes{1000};
  cost.vocabulary = std::make_shared<const StageCost>(part);
  return cost;
}

double duration_of(const Program& program, const Timeline& timeline, char op, CollectiveKind kind) {
  for (const CollectiveCall& call : program.collectives)
    if (call.op == op && program.shape(call).kind == kind) return timeline.end[call.first] - timeline.start[call.first];
  return 0;
}

/// `knows_links`: whether the order leaves room for the broadcast.
Run run(std::string_view name, const Plan& by_hand, const Times& t, bool knows_links = true) {
  const Plan plan = test::reduced(by_hand);
  const StageCosts costs = uniform_costs(plan, cost_of(t));
  const Cluster cluster = test::star(plan.stage_count(), kRate, 0, Duplex::Unshared);
  const ScheduleDef& def = get_from(schedules::catalog(), "schedule", name);
  const Schedule schedule =
      build_schedule(def, {.plan = plan, .costs = costs, .cluster = knows_links ? &cluster : nullptr});
  const Program program = test::lowered(schedule, plan, costs, test::pure_delays());
  const Timeline timeline = test::run_ideal(program, cluster);
  const auto seconds = [&](char op, CollectiveKind kind) { return duration_of(program, timeline, op, kind); };
  constexpr CollectiveKind kSum = CollectiveKind::AllReduce, kBroadcast = CollectiveKind::Broadcast;
  return {measure(program, timeline, cluster),
          seconds('F', kBroadcast),
          seconds('S', kSum),
          seconds('T', kSum),
          seconds('F', kSum),
          seconds('B', kBroadcast)};
}

/// (F + B + S + T) of all micro-batches, and the fill and drain of 1F1B.
double work(int p, int m, const Times& t) {
  return m * (t.forward + t.backward + t.scores + t.gradient) + (p - 1) * (t.forward + t.backward);
}

int stashes(const Report& report, int rank) { return report.devices[DeviceId{rank}].memory.activations; }

constexpr std::pair<double, double> kPasses[] = {{1, 2}, {1, 1.4}, {1, 2.6}, {1, 3.5}, {1, 1}};
constexpr std::pair<double, double> kScores[] = {{.5, .5}, {.3, .6}, {1.2, .4}};

template <class Visit>
void for_each_case(const Visit& visit) {
  for (const int p : {3, 4, 5, 8, 12})
    for (const auto& passes : kPasses)
      for (const auto& scores : kScores) {
        const Times t{passes.first, passes.second, scores.first, scores.second};
        CAPTURE(p);
        CAPTURE(t.backward);
        CAPTURE(t.scores);
        visit(p, 3 * p + 5, t);
      }
}

}  // namespace

TEST_CASE("vocab-1 has the bubble of 1f1b, vocab-2 the last gradient less") {
  for_each_case([](int p, int m, const Times& t) {
    CHECK(run("vocab-1", vocabulary_plan(p, m), t).report.makespan.value ==
          doctest::Approx(work(p, m, t)).epsilon(1e-12));
    CHECK(run("vocab-2", vocabulary_plan(p, m), t).report.makespan.value ==
          doctest::Approx(work(p, m, t) - t.gradient).epsilon(1e-12));
  });
}

TEST_CASE("rank r has p - r + 2 micro-batches in flight with two barriers, p - r + 1 with one, and scores of one") {
  for_each_case([](int p, int m, const Times& t) {
    for (const int barriers : {1, 2}) {
      const Report report = run(barriers == 1 ? "vocab-2" : "vocab-1", vocabulary_plan(p, m), t).report;
      for (int r = 0; r < p; ++r) {
        CHECK(stashes(report, r) == p - r + barriers);
        CHECK(report.devices[DeviceId{r}].memory.total.value <= 1000 + p - r + barriers);
        CHECK(report.devices[DeviceId{r}].memory.total.value > 1000);
      }
    }
  });
}

TEST_CASE("messages shorter than a forward cost a constant, not one for every micro-batch") {
  for (const int p : {4, 5, 8, 12})
    for (const auto& passes : kPasses) {
      const Times t{passes.first, passes.second, .5, .5};
      if (t.backward < 2 * t.forward) continue;
      for (const Messages messages : {Messages{.2, 0}, Messages{0, .2}, Messages{.2, .2}}) {
        CAPTURE(p);
        CAPTURE(t.backward);
        CAPTURE(messages.input);
        CAPTURE(messages.statistics);
        const int m = 3 * p + 5;
        const Run one = run("vocab-2", vocabulary_plan(p, m, messages), t);
        CHECK(one.report.makespan.value - (work(p, m, t) - t.gradient) ==
              doctest::Approx(one.broadcast + one.first_sum).epsilon(1e-9));
        const Run two = run("vocab-1", vocabulary_plan(p, m, messages), t);
        CHECK(two.report.makespan.value - work(p, m, t) <=
              3 * two.broadcast + 2 * std::max(two.first_sum, two.second_sum) + 1e-9);
      }
    }
}

TEST_CASE("a sum of embeddings shorter than a forward shows once, and so does the broadcast of the last gradient") {
  for (const int p : {1, 2, 4, 8})
    for (const char* name : {"vocab-1", "vocab-2"}) {
      CAPTURE(p);
      CAPTURE(name);
      const Times t{1, 2, .5, .5};
      const int m = 3 * p + 5;
      const double without = run(name, vocabulary_plan(p, m), t).report.makespan.value;
      const Run with = run(name, vocabulary_plan(p, m, {.embedding = .3}), t);
      CHECK((with.embedding_sum > 0) == (p > 1));
      CHECK(with.report.makespan.value - without ==
            doctest::Approx(with.embedding_sum + with.embedding_broadcast).epsilon(1e-9));
    }
}

TEST_CASE("each iteration waits for the words of all ranks, and each update for the last gradient of an embedding") {
  Plan plan = vocabulary_plan(3, 5, {.embedding = .3});
  const StageCosts costs = uniform_costs(plan, cost_of({1, 2, .5, .5}));
  const Program program = test::program_of("vocab-2", plan, costs, test::pure_delays(2));
  const auto embedding = [&](int micro, CollectiveKind kind) {
    return *std::find_if(program.collectives.begin(), program.collectives.end(), [&](const CollectiveCall& c) {
      const char op = kind == CollectiveKind::Broadcast ? 'B' : 'F';
      return c.op == op && c.micro_batch == micro && program.shape(c).kind == kind;
    });
  };
  int updates = 0;
  for (const InstructionId id : program.instructions.ids()) {
    const Instruction& i = program.at(id);
    if (i.kind != InstructionKind::Update || i.update() > 0) continue;
    ++updates;
    const auto waits_for = [&](InstructionId from, InstructionId on) {
      const auto waits = program.waits_for(from);
      return std::find(waits.begin(), waits.end(), on) != waits.end();
    };
    const CollectiveCall gradient = embedding(4, CollectiveKind::Broadcast),
                         words = embedding(5, CollectiveKind::AllReduce);
    bool came = false, goes = false;
    for (int m = 0; m < 3; ++m) {
      came = came || (program.at(gradient.member(m)).device == i.device && waits_for(id, gradient.member(m)));
      goes = goes || (program.at(words.member(m)).device == i.device && waits_for(words.member(m), id));
    }
    CHECK(came);
    CHECK(goes);
  }
  CHECK(updates == 3);
}

TEST_CASE("an order without room for the broadcast pays it for every micro-batch where B is a multiple of F") {
  const Times t{1, 2, .5, .5};
  const Plan plan = vocabulary_plan(8, 64, {.input = .2});
  for (const char* name : {"vocab-1", "vocab-2"}) {
    const double with = run(name, plan, t).report.makespan.value,
                 without = run(name, plan, t, false).report.makespan.value;
    CHECK(without - with > 0.9 * (64 - 8) * .2);
  }
}

TEST_CASE(
    "interlaced has 3p/2 - r in flight, and pays every sum and, once the last stage has warmed up, every broadcast") {
  for (const int p : {4, 8, 12})
    for (const Messages messages : {Messages{}, Messages{.1, .2}}) {
      CAPTURE(p);
      CAPTURE(messages.input);
      const Times t{1, 2, .6, .4};
      const int m = 3 * p;
      const Run one = run("interlaced", vocabulary_plan(p, m, messages), t);
      CHECK(one.report.makespan.value ==
            doctest::Approx(work(p, m, t) + m * (one.first_sum + one.second_sum) + (m - p / 2 - 1) * one.broadcast)
                .epsilon(1e-9));
      for (int r = 0; r < p; ++r) CHECK(stashes(one.report, r) == p * 3 / 2 - r);
    }
}

TEST_CASE("all micro-batches run, however few they are, over several iterations and replicas") {
  for (const char* name : {"vocab-1", "vocab-2", "interlaced"})
    for (const int p : {1, 2, 3, 4, 7})
      for (int m = 1; m < 2 * p + 3; ++m) {
        CAPTURE(name);
        CAPTURE(p);
        CAPTURE(m);
        Plan plan = vocabulary_plan(p, m, {.1, .1});
        const StageCosts costs = uniform_costs(plan, cost_of({1, 2, .5, .5}));
        const Program program = test::program_of(name, plan, costs, test::pure_delays(2));
        const auto count = [&](InstructionKind kind) {
          return std::count_if(program.instructions.begin(), program.instructions.end(),
                               [&](const Instruction& i) { return i.kind == kind; });
        };
        CHECK(count(InstructionKind::Scores) == 2 * m * p);
        CHECK(count(InstructionKind::ScoresGradient) == 2 * m * p);
        CHECK(count(InstructionKind::Update) == 2 * p);
      }
}

namespace {

struct VRun {
  double makespan = 0;
  std::vector<int> stashes;  ///< [rank]
};

/// A schedule in a V, alone or with scores in its order.
VRun run_in_v(std::string_view base, int barriers, int p, int m, const Times& t) {
  const ScheduleDef& def = get_from(schedules::catalog(), "schedule",
                                    barriers == 0   ? base
                                    : barriers == 1 ? "vocab-2"
                                                    : "vocab-1");
  const std::optional<config::Value> map =
      barriers == 0 ? std::nullopt : options_of(def, {fmt::format("order={}", base)});
  const ScheduleOptions options = read_options(def, map ? &*map : nullptr);
  const Plan plan = plan_for(def, options.placing.value_or(placing_of(def, nullptr)), p, 2, m);
  const StageCosts costs = uniform_costs(plan, cost_of(t));
  const Schedule schedule = build_schedule(def, {.plan = plan, .costs = costs, .options = options});
  const Program program = test::lowered(schedule, plan, costs, test::pure_delays());
  const Cluster cluster = test::delay_cluster(p, 0);
  const Report report = measure(program, test::run_ideal(program, cluster), cluster);
  VRun result{report.makespan.value, {}};
  for (int r = 0; r < p; ++r) result.stashes.push_back(stashes(report, r));
  return result;
}

}  // namespace

TEST_CASE("in a V, scores add their time, a constant, and at most one micro-batch of memory for each barrier") {
  for (const std::string_view base : {"1f1b-v", "v-half", "v-min", "zb-v"})
    for (const int p : {2, 3, 4, 8})
      for (const int barriers : {1, 2})
        for (const auto& passes : kPasses) {
          CAPTURE(base);
          CAPTURE(p);
          CAPTURE(barriers);
          const Times t{passes.first, passes.second, .5, .5};
          CAPTURE(t.backward);
          double extra[2];  // With m and 2 m micro-batches, in micro-batches.
          for (const int n : {0, 1}) {
            const int m = (n + 1) * 4 * p;
            const VRun without = run_in_v(base, 0, p, m, t), with = run_in_v(base, barriers, p, m, t);
            const double scores = m * (t.scores + t.gradient), one = 2 * (t.forward + t.backward);
            CHECK(with.makespan >= m * one + scores - t.gradient);
            extra[n] = (with.makespan - without.makespan - scores) / one;
            for (int r = 0; r < p; ++r) CHECK(with.stashes[r] <= without.stashes[r] + 2 * barriers);
          }
          CHECK(extra[0] <= p - 1);
          CHECK(extra[1] <= extra[0] + 1e-9);
        }
}

TEST_CASE("a plan with its vocabulary at the ends is refused, and one that divides it by other schedules") {
  const Plan ends = test::reduced(chain_plan(4, 4, 8)), divided = test::reduced(vocabulary_plan(4, 8));
  CHECK_THROWS_WITH_AS(test::build("vocab-2", ends), doctest::Contains("write plan.vocabulary: all"), InputError);
  CHECK_THROWS_WITH_AS(test::build("1f1b", divided), doctest::Contains("has no passes for a vocabulary"), InputError);
  Schedule schedule = test::build("vocab-2", divided);
  schedule.ranks[RankId{1}].erase(schedule.ranks[RankId{1}].begin() + 4);
  CHECK_FALSE(validate(schedule, divided, {}).empty());
  Schedule foreign = test::build("1f1b", ends);
  foreign.ranks[RankId{1}].insert(foreign.ranks[RankId{1}].begin(), Op{OpKind::Scores, false, StageId{1}, 0});
  CHECK(validate(foreign, ends, {}).front().code == "vocabulary");
}

}  // namespace stagecraft::vocabulary_test
