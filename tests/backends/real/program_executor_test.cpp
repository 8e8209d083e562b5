#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "backends/real/program_executor.hpp"
#include "sim/core/random.hpp"
#include "tests/support/patience.hpp"
#include "tests/support/random_cases.hpp"
#include "tests/support/road.hpp"

namespace stagecraft::program_executor_test {
namespace {

/// Notes the order in which things happen; every action may take a random while.
class Noted : public real::Actions {
 public:
  explicit Noted(const Program& p, bool dawdles) : at_(p.size()), p_(p), dawdles_(dawdles) {}
  void compute(InstructionId i) override { note(i); }
  void carry(int t) override {
    if (drop == t) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    const Transfer& transfer = p_.transfers[t];
    note(transfer.send);
    at_[transfer.receive] = at_[transfer.send].load();
  }
  void collective(int c) override {
    const CollectiveCall& collective = p_.collectives[c];
    for (int m = 0; m < collective.members; ++m) note(collective.member(m));
  }

  IdVector<InstructionId, std::atomic<int>> at_;  ///< When each was done, counted from 1.
  int drop = -1;

 private:
  void note(InstructionId i) {
    if (dawdles_) {
      thread_local Rng rng(std::hash<std::thread::id>{}(std::this_thread::get_id()), "dawdle");
      std::this_thread::sleep_for(std::chrono::microseconds(rng.integer(0, 30)));
    }
    CHECK(at_[i] == 0);
    at_[i] = ++count_;
  }

  const Program& p_;
  bool dawdles_;
  std::atomic<int> count_{0};
};

/// Fails in one instruction.
class Failing : public real::Actions {
 public:
  explicit Failing(InstructionId at) : at_(at) {}
  void compute(InstructionId i) override {
    if (i == at_) throw Infeasible("diverged", "not a number");
  }
  void carry(int) override {}
  void collective(int) override {}

 private:
  InstructionId at_;
};

class Idle : public real::Actions {
 public:
  void compute(InstructionId) override {}
  void carry(int) override {}
  void collective(int) override {}
};

}  // namespace

TEST_CASE("every instruction runs once, after everything it waits for, whatever the durations are") {
  Rng rng(7, "walk");
  const auto pick = [&](int low, int high) { return rng.integer(low, high); };
  for (int n = 0; n < 60; ++n) {
    const test::RandomCase c = test::random_case(pick);
    CAPTURE(test::to_text(c));
    const Program p = test::program_of(c);
    for (const bool one_thread : {false, true}) {
      Noted actions(p, !one_thread);
      real::ExecutorOptions options;
      options.one_thread = one_thread;
      const real::Times t = real::run_program(p, actions, nullptr, options);
      for (const InstructionId i : p.instructions.ids()) {
        REQUIRE(actions.at_[i] > 0);
        REQUIRE(t.start[i] <= t.end[i]);
        for (const InstructionId w : p.waits_for(i)) {
          REQUIRE(t.end[w] <= t.start[i]);
        }
      }
    }
  }
}

TEST_CASE("what an instruction throws ends the run, on every thread, at once") {
  const Program p =
      test::program_of("1f1b", chain_plan(4, 4, 4), uniform_costs(chain_plan(4, 4, 4), test::times(1, 1)));
  Failing actions(test::find(p, "2F1"));
  real::ExecutorOptions options;
  options.timeout = 10 * test::kHung;  // The other threads wait for what never comes, so waiting this long is a hang.
  CHECK_THROWS_WITH_AS(real::run_program(p, actions, nullptr, options), doctest::Contains("not a number"), Infeasible);
}

TEST_CASE("a run in which nothing moves ends and says what every device waits for") {
  // An instruction that waits for itself: check_program would refuse it.
  Program p = test::program_of("gpipe", chain_plan(3, 3, 2), uniform_costs(chain_plan(3, 3, 2), test::times(1, 1)));
  const InstructionId stuck = test::find(p, "1F1");
  for (std::uint32_t w = p.first_wait[stuck.value]; w < p.first_wait[stuck.value + 1]; ++w) p.waits[w] = stuck;
  std::string text;
  const auto all_wait = [&](double timeout) {
    Idle actions;
    real::ExecutorOptions options;
    options.timeout = timeout;
    try {
      real::run_program(p, actions, nullptr, options);
      FAIL("it ended");
    } catch (const BackendError& e) {
      text = e.what();
    }
    CHECK(text.starts_with("nothing has moved"));
    return text.find("device 1: 1F1 waits for 1F1") != std::string::npos &&
           text.find("device 2: 2F1 waits for 2<1:1F1") != std::string::npos &&
           text.find("device 0: 0B0 waits for 0<1:1B0") != std::string::npos;
  };
  CAPTURE(text);
  CHECK(test::holds_after_some_timeout(all_wait));
}

}  // namespace stagecraft::program_executor_test
