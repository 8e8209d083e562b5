// Messages wait for memory: what waits for what, and a deadlock exactly when there is one, as judged by a token game
// that shares no code with the lowering.

#include <doctest/doctest.h>

#include <deque>
#include <set>

#include "sim/plan/overlap.hpp"
#include "tests/support/listing.hpp"
#include "tests/support/random_cases.hpp"

namespace stagecraft::limit_buffers_test {
namespace {

LoweringOptions limited(int buffers) {
  LoweringOptions options;
  options.buffers = message_buffers(buffers);
  return options;
}

Program chain(int stages, int micro_batches, int buffers) {
  const Plan plan = chain_plan(stages, stages, micro_batches);
  return test::program_of("inference", plan, uniform_costs(plan, test::times(1, 0)), limited(buffers));
}

/// The text of the deadlock that lowering ends in, and its help.
std::pair<std::string, std::string> deadlock_of(const Schedule& schedule, const Plan& plan, int buffers) {
  try {
    lower(schedule, plan, uniform_costs(plan, test::times(1, 2)), test::policy("flush"), limited(buffers));
  } catch (const Infeasible& e) {
    CHECK(e.code() == "deadlock");
    return {full_message(e.problem()), e.problem().help};
  }
  return {};
}

/// Ops of a device run in order, each at once. Its messages leave in the order in which they are made.
class TokenGame {
 public:
  TokenGame(const Schedule& schedule, const Plan& plan, MessageBuffers buffers)
      : schedule_(schedule), plan_(plan), buffers_(buffers), at_(schedule.device_count(), 0), queues_(at_.size()) {
    for (std::size_t d = 0; d < at_.size(); ++d)
      for (const Op& op : row(d)) expect(d, op);
  }

  bool ends() {
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t d = 0; d < at_.size(); ++d) {
        while (at_[d] < row(d).size() && can_run(d, row(d)[at_[d]])) run(d, row(d)[at_[d]++]), moved = true;
        while (!queues_[d].empty() && can_leave(queues_[d].front())) leave(d), moved = true;
      }
    }
    for (std::size_t d = 0; d < at_.size(); ++d)
      if (at_[d] < row(d).size()) return false;
    return true;
  }

 private:
  /// The op of a stage that makes or reads a message: its direction, stage and micro-batch.
  using Piece = std::tuple<bool, StageId, int>;
  using EdgeEnd = std::pair<std::size_t, bool>;  // An edge and its direction.
  struct Message {
    EdgeEnd edge;
    Piece from, to;
  };

  const std::vector<Op>& row(std::size_t d) const { return schedule_.row(DeviceId{d}); }
  static bool sends(const Op& op) { return op.kind == OpKind::Forward || passes_gradient(op.kind); }
  static Piece piece(const Op& op) { return {op.kind != OpKind::Forward, op.stage, op.micro}; }

  template <class Visit>
  void for_each_message(std::size_t d, const Op& op, Visit&& visit) const {
    if (!sends(op)) return;
    const bool gradient = op.kind != OpKind::Forward;
    for (std::size_t e = 0; e < plan_.edges.size(); ++e) {
      const StageEdge& edge = plan_.edges[e];
      if ((gradient ? edge.to : edge.from) != op.stage) continue;
      const StageId other = gradient ? edge.from : edge.to;
      for_each_overlap(plan_.stage(op.stage), op.micro, 0, plan_.stage(other), [&](int m, int r, int) {
        if (plan_.stage(other).leaders[r] != DeviceId{d}) visit({{e, gradient}, piece(op), {gradient, other, m}});
      });
    }
  }

  void expect(std::size_t d, const Op& op) {
    for_each_message(d, op, [&](const Message& m) { ++missing_[m.to]; });
  }

  bool can_run(std::size_t d, const Op& op) {
    if (!sends(op)) return true;
    if (missing_[piece(op)] > 0) return false;
    bool free = true;
    for_each_message(d, op, [&](const Message& m) { free = free && std::ssize(unsent_[m.edge]) < buffers_.outgoing; });
    return free;
  }

  void run(std::size_t d, const Op& op) {
    if (!sends(op)) return;
    for (auto& [edge, in_use] : in_use_) in_use.erase(piece(op));
    for_each_message(d, op, [&](const Message& m) {
      queues_[d].push_back(m);
      ++unsent_[m.edge][m.from];
    });
  }

  bool can_leave(const Message& m) {
    const std::set<Piece>& in_use = in_use_[m.edge];
    return in_use.count(m.to) > 0 || std::ssize(in_use) < buffers_.received;
  }

  void leave(std::size_t d) {
    const Message m = queues_[d].front();
    queues_[d].pop_front();
    in_use_[m.edge].insert(m.to);
    --missing_[m.to];
    if (--unsent_[m.edge][m.from] == 0) unsent_[m.edge].erase(m.from);
  }

  const Schedule& schedule_;
  const Plan& plan_;
  MessageBuffers buffers_;
  std::vector<std::size_t> at_;
  std::vector<std::deque<Message>> queues_;
  std::map<Piece, int> missing_;                    ///< Messages that have not arrived, by the op that reads them.
  std::map<EdgeEnd, std::set<Piece>> in_use_;       ///< Ops whose messages the receiver holds.
  std::map<EdgeEnd, std::map<Piece, int>> unsent_;  ///< Messages of each op that have not left.
};

struct Verdicts {
  int fine = 0, deadlocks = 0;
};

void compare(const Schedule& schedule, const Plan& plan, MessageBuffers buffers, int iterations, Verdicts& verdicts) {
  CAPTURE(to_text(plan));
  CAPTURE(buffers.received);
  LoweringOptions options;
  options.buffers = buffers;
  options.iterations = iterations;
  const bool ends = TokenGame(schedule, plan, buffers).ends();
  std::string verdict = "fine";
  try {
    check_program(lower(schedule, plan, uniform_costs(plan, test::times(1, 2)), test::policy("flush"), options));
  } catch (const Infeasible& error) {
    verdict = error.code();
  }
  CHECK(verdict == (ends ? "fine" : "deadlock"));
  ++(ends ? verdicts.fine : verdicts.deadlocks);
}

/// Rows of one iteration: again and again any of the ops that have all that they need.
std::vector<std::string> random_rows(const Plan& plan, int devices, test::Draw& draw) {
  struct Next {
    bool backward;
    int stage, micro;
  };
  std::set<std::tuple<bool, int, int>> done;
  const auto ready = [&](const Next& op) {
    bool yes = !op.backward || done.count({false, op.stage, op.micro}) > 0;
    for (const StageEdge& e : plan.edges)
      if ((op.backward ? e.from : e.to).value == op.stage)
        yes = yes && done.count({op.backward, (op.backward ? e.to : e.from).value, op.micro}) > 0;
    return yes;
  };
  std::vector<Next> left;
  for (int s = 0; s < plan.stage_count(); ++s)
    for (int m = 0; m < plan.micro_batches(StageId{s}); ++m)
      left.push_back({false, s, m}), left.push_back({true, s, m});
  std::vector<std::string> rows(devices);
  while (!left.empty()) {
    const auto n = static_cast<std::size_t>(draw(0, static_cast<int>(left.size()) - 1));
    const Next op = left[n];
    if (!ready(op)) continue;
    left.erase(left.begin() + static_cast<std::ptrdiff_t>(n));
    done.insert({op.backward, op.stage, op.micro});
    std::string& row = rows[plan.stage(StageId{op.stage}).leaders.front().value];
    row += (row.empty() ? "" : " ") + std::to_string(op.stage) + (op.backward ? "B" : "F") + std::to_string(op.micro);
  }
  return rows;
}

}  // namespace

TEST_CASE("a receive waits for the op that frees its buffer, and an op for a message that has left") {
  CHECK(test::listing(chain(2, 4, 1)) ==
        "0F0\n"
        "0>1:0F0 after 0F0\n"
        "1<0:0F0\n"
        "1F0 after 1<0:0F0\n"
        "0F1 after 0F0\n"
        "0>1:0F1 after 0F1, 0>1:0F0\n"
        "1<0:0F1 after 1<0:0F0, 1F0\n"
        "1F1 after 1F0, 1<0:0F1\n"
        "0F2 after 0F1, 0>1:0F0\n"
        "0>1:0F2 after 0F2, 0>1:0F1\n"
        "1<0:0F2 after 1<0:0F1, 1F1\n"
        "1F2 after 1F1, 1<0:0F2\n"
        "0F3 after 0F2, 0>1:0F1\n"
        "0>1:0F3 after 0F3, 0>1:0F2\n"
        "1<0:0F3 after 1<0:0F2, 1F2\n"
        "1F3 after 1F2, 1<0:0F3\n");
}

TEST_CASE("buffers for all messages leave a program as it is") {
  for (const char* schedule : {"1f1b", "gpipe", "inference", "zb-h1"}) {
    const Plan plan = chain_plan(4, 4, 6);
    const StageCosts costs = uniform_costs(plan, test::times(1, 2));
    CHECK(test::listing(test::program_of(schedule, plan, costs, limited(6))) ==
          test::listing(test::program_of(schedule, plan, costs)));
  }
}

TEST_CASE("what is read out of order takes as many buffers as lie between") {
  // Stage 1 reads the second of two micro-batches first.
  const Plan plan = test::dag_plan(2, 2, {{0, 1}}, 10);
  const Schedule schedule = test::schedule_from({"0F0 0F1 0B1 0B0", "1F1 1F0 1B1 1B0"});
  const auto [text, help] = deadlock_of(schedule, plan, 1);
  CHECK(text ==
        "messages block forever with 1 buffer for each edge: 0>1:0F1 waits for 1F0 (rank 1), which frees a buffer; "
        "1F0 (rank 1) comes after 1F1 (rank 1); 1F1 (rank 1) waits for 0>1:0F1");
  CHECK(help == "run.buffers: 2, the fewest that are enough");
  CHECK(deadlock_of(schedule, plan, 2).first.empty());
}

TEST_CASE("messages of replicas that take turns have their buffers in the order in which they are read") {
  Plan plan = test::dag_plan(2, 6, {{0, 1}}, 10);
  Stage& first = plan.stages.front();
  first.share = Share::MicroBatches;
  first.place_on({DeviceId{0}, DeviceId{2}});
  const Program program = test::program_of("inference", plan, uniform_costs(plan, test::times(1, 0)), limited(2));
  for (int m = 2; m < 6; ++m) {
    const std::string receive = "1<" + std::to_string(m % 2 == 0 ? 0 : 2) + ":0F" + std::to_string(m);
    const auto waits = program.waits_for(test::find(program, receive));
    CAPTURE(receive);
    CHECK(std::find(waits.begin(), waits.end(), test::find(program, "1F" + std::to_string(m - 2))) != waits.end());
  }
}

TEST_CASE("random plans deadlock exactly if the token game stops") {
  test::Draw draw{Rng(12, "buffers")};
  Verdicts verdicts;
  for (int trial = 0; verdicts.fine + verdicts.deadlocks < 300; ++trial) {
    REQUIRE(trial < 3000);
    test::RandomCase c = test::random_case(draw, 6);
    if (std::any_of(c.plan.stages.begin(), c.plan.stages.end(), [](const Stage& s) { return s.replicas() > 1; }))
      continue;
    const ScheduleDef& def = get_from(schedules::catalog(), "schedule", c.schedule);
    CAPTURE(to_text(c));
    compare(build_schedule(def, {.plan = c.plan, .costs = c.costs, .iterations = c.options.iterations}), c.plan,
            message_buffers(draw(1, 3)), c.options.iterations, verdicts);
  }
  CHECK(verdicts.fine > 100);
}

TEST_CASE("random orders of work deadlock exactly if the token game stops") {
  test::Draw draw{Rng(13, "orders")};
  Verdicts verdicts;
  for (int trial = 0; trial < 400; ++trial) {
    const int stages = draw(2, 5), devices = draw(2, 3);
    Plan plan = chain_plan(stages, devices, draw(1, 5));
    plan.edges.clear();
    test::random_edges(plan, draw);
    for (Stage& stage : plan.stages) stage.place_on({DeviceId{draw(0, devices - 1)}});
    const Schedule schedule = complete(test::schedule_from(random_rows(plan, devices, draw)), plan, 1);
    compare(schedule, plan, message_buffers(draw(1, 3)), 1, verdicts);
  }
  CHECK(verdicts.fine > 100);
  CHECK(verdicts.deadlocks > 50);
}

TEST_CASE("the number of buffers that an error names is the least that is enough") {
  int deadlocks = 0;
  for (const ScheduleDef* def : schedules::catalog())
    for (const int p : {2, 4})
      for (const int m : {4, 8}) {
        if (def->name == "csv" || !test::takes(*def, p, m)) continue;
        const Plan plan = test::least_plan(*def, p, m);
        const Schedule schedule = test::build(def->name, plan);
        const std::string help = deadlock_of(schedule, plan, 1).second;
        if (help.empty()) continue;
        CAPTURE(def->name);
        const int enough = std::stoi(help.substr(help.find(": ") + 2));
        CHECK(enough > 1);
        CHECK(deadlock_of(schedule, plan, enough).first.empty());
        if (enough > 2) CHECK_FALSE(deadlock_of(schedule, plan, enough - 1).first.empty());
        ++deadlocks;
      }
  CHECK(deadlocks > 0);
}

}  // namespace stagecraft::limit_buffers_test
