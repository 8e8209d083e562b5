// The lowering reports a deadlock exactly when there is one, as judged by a token game that shares no code with it.

#include <doctest/doctest.h>

#include <set>

#include "sim/plan/overlap.hpp"
#include "tests/support/random_cases.hpp"

namespace stagecraft::deadlock_test {
namespace {

/// Every device stands before a slot (an op) and has posted a group: sends of the previous slot and receives of the
/// next. It moves on when the whole group is done.
class TokenGame {
 public:
  TokenGame(const Schedule& schedule, const Plan& plan, bool rendezvous)
      : schedule_(schedule), plan_(plan), rendezvous_(rendezvous), at_(schedule.device_count(), 0) {
    for (std::size_t d = 0; d < at_.size(); ++d)
      for (std::size_t i = 0; i < row(d).size(); ++i) messages_of(d, i);
  }

  bool ends() {
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t d = 0; d < at_.size(); ++d)
        while (at_[d] < row(d).size() && done(d) && all_there(d)) ++at_[d], moved = true;
    }
    for (std::size_t d = 0; d < at_.size(); ++d)
      if (at_[d] < row(d).size() || !done(d)) return false;
    return true;
  }

 private:
  struct Message {
    std::size_t from, sent, to, received;  ///< Device and group of both ends.
  };
  const std::vector<Op>& row(std::size_t d) const { return schedule_.row(DeviceId{d}); }

  std::size_t slot(std::size_t d, const Op& op) const {
    for (std::size_t i = 0; i < row(d).size(); ++i)
      if (row(d)[i] == op) return i;
    FAIL("no such op");
    return 0;
  }

  void messages_of(std::size_t d, std::size_t i) {
    const Op& op = row(d)[i];
    if (op.kind != OpKind::Forward && op.kind != OpKind::Backward) return;
    const int replica = replica_on(plan_.stage(op.stage), DeviceId{d});
    for (const StageEdge& e : plan_.edges) {
      const bool forward = op.kind == OpKind::Forward;
      if ((forward ? e.from : e.to) != op.stage) continue;
      const StageId other = forward ? e.to : e.from;
      for_each_overlap(plan_.stage(op.stage), op.micro, replica, plan_.stage(other), [&](int m, int r, int) {
        const std::size_t to = plan_.stage(other).leaders[r].value;
        if (to != d) messages_.push_back({d, i + 1, to, slot(to, {op.kind, false, other, m})});
      });
    }
  }

  bool done(std::size_t d) const {
    for (const Message& m : messages_) {
      if (rendezvous_ && m.from == d && m.sent == at_[d] && at_[m.to] < m.received) return false;
      if (m.to == d && m.received == at_[d] && at_[m.from] < m.sent) return false;
    }
    return true;
  }

  /// Stages that are updated together with this one: those that share tied weights with it, directly or indirectly.
  std::set<StageId> tied_to(StageId stage) const {
    std::set<StageId> related{stage};
    for (std::size_t before = 0; before < related.size();) {
      before = related.size();
      for (const Reduction& r : plan_.reductions)
        if (std::any_of(r.stages.begin(), r.stages.end(), [&](StageId s) { return related.count(s) > 0; }))
          related.insert(r.stages.begin(), r.stages.end());
    }
    return related;
  }

  /// Whether replicas, and stages with tied weights, reach their update together.
  bool all_there(std::size_t d) const {
    const Op& op = row(d)[at_[d]];
    if (op.kind != OpKind::Update) return true;
    for (const StageId stage : tied_to(op.stage))
      for (const DeviceId device : plan_.stage(stage).leaders) {
        const std::size_t other = device.value, update = slot(other, {op.kind, op.fused, stage, op.micro});
        if (at_[other] < update || (at_[other] == update && !done(other))) return false;
      }
    return true;
  }

  const Schedule& schedule_;
  const Plan& plan_;
  bool rendezvous_;
  std::vector<std::size_t> at_;
  std::vector<Message> messages_;
};

/// "fine", or the code of the error that lower() throws.
std::string verdict(const Schedule& schedule, const test::RandomCase& c) {
  try {
    check_program(lower(schedule, c.plan, c.costs, test::policy("flush"), c.options));
    return "fine";
  } catch (const Infeasible& error) {
    CHECK_MESSAGE(std::string(error.what()).find(" waits to ") != std::string::npos, error.what());
    return error.code();
  }
}

}  // namespace

TEST_CASE("random plans deadlock exactly if the token game stops") {
  test::Draw draw{Rng(11, "blocking")}, draw_ties{Rng(11, "ties")};
  int fine = 0, deadlocks = 0;
  for (int trial = 0; trial < 600; ++trial) {
    test::RandomCase c = test::random_case(draw, 5);
    add_ties(c, draw_ties);
    c.options.overlap = false;
    c.options.rendezvous = trial % 4 != 3;
    const ScheduleDef& def = get_from(schedules::catalog(), "schedule", c.schedule);
    const Schedule schedule =
        build_schedule(def, {.plan = c.plan, .costs = c.costs, .iterations = c.options.iterations});
    CAPTURE(to_text(c));
    const bool ends = TokenGame(schedule, c.plan, c.options.rendezvous).ends();
    CHECK(verdict(schedule, c) == (ends ? "fine" : "deadlock"));
    if (!c.options.rendezvous) CHECK(ends);
    ++(ends ? fine : deadlocks);
  }
  CHECK(fine > 100);
  CHECK(deadlocks > 20);
}

TEST_CASE("chains of single stages never deadlock, in inference, with flushes or without") {
  for (const ScheduleDef* def : schedules::catalog()) {
    if (def->name == "csv" || !test::neighbours_meet(*def)) continue;
    for (const int p : {2, 3, 5})
      for (const int m : {1, 2, 4, 7}) {
        test::RandomCase c;
        c.plan = chain_plan(p, p, m);
        c.costs = uniform_costs(c.plan, test::times(1, 1));
        c.options.overlap = false;
        c.options.iterations = 3;
        if (!test::takes(*def, p, m)) continue;
        const Schedule schedule = build_schedule(*def, {.plan = c.plan, .costs = c.costs, .iterations = 3});
        CAPTURE(def->name);
        CHECK(verdict(schedule, c) == "fine");
        CHECK(TokenGame(schedule, c.plan, true).ends());
      }
  }
}

TEST_CASE("with two stages on each rank, inference blocks from 2 micro-batches per rank on") {
  for (const int ranks : {2, 3, 4})
    for (int m = 1; m <= 2 * ranks + 2; ++m) {
      test::RandomCase c;
      c.plan = chain_plan(2 * ranks, ranks, m);
      c.costs = uniform_costs(c.plan, test::times(1, 1));
      c.options.overlap = false;
      const Schedule schedule = test::build("inference", c.plan);
      CAPTURE(ranks);
      CAPTURE(m);
      const bool ends = TokenGame(schedule, c.plan, true).ends();
      CHECK(verdict(schedule, c) == (ends ? "fine" : "deadlock"));
      CHECK(ends == (m < 2 * ranks));
      c.options.overlap = true;
      CHECK(verdict(schedule, c) == "fine");
    }
}

}  // namespace stagecraft::deadlock_test
