// Methods given by their names, and training with several of them.

#include "sim/experiment/convergence.hpp"

#include <doctest/doctest.h>
#include <fmt/core.h>

#include "sim/core/stop_point.hpp"
#include "sim/weights/policy.hpp"
#include "tests/support/checked.hpp"
#include "tests/support/convergence.hpp"

namespace stagecraft::convergence_test {
namespace {

using Strings = std::vector<std::string>;

const Experiment& teacher() {  // Eight micro-batches of four samples for each update, 1F1B.
  static const Experiment scenario = load_experiment("examples/teacher", {});
  return scenario;
}

/// "1f1b flush 8x4": schedule, policy, micro-batches in an update and samples in each.
std::string text_of(const std::string& word, const Experiment& experiment = teacher()) {
  const Method m = parse_method(word, experiment);
  const bool released = m.weights.rule != m.weights.policy->paper;
  return fmt::format("{} {}{} {}x{}", m.schedule.name(), m.weights.name(), released ? " as released" : "",
                     m.micro_batches, m.micro_batch_size);
}

/// A small comparison: two narrow stages, few updates, two seeds.
test::ConvergenceQuestion small(Strings methods) {
  test::ConvergenceQuestion o;
  o.file = "examples/teacher";
  o.sets = {"model.widths=[6, 8, 3]", "plan.stages=2"};
  o.methods = std::move(methods);
  o.updates = 40;
  o.evaluate_every = 10;
  o.seeds = 2;
  o.measure = false;
  return o;
}

Convergence quietly(const test::ConvergenceQuestion& o) { return test::converge(o); }

std::string refusal(const test::ConvergenceQuestion& o, const Strings& more = {}) {
  test::ConvergenceQuestion asked = o;
  asked.sets.insert(asked.sets.end(), more.begin(), more.end());
  return test::input_error_of([&] { quietly(asked); });
}

}  // namespace

TEST_CASE("a method is a schedule, a policy and micro-batches, with as many samples an update as the scenario") {
  CHECK(text_of("sync") == "1f1b flush 8x4");
  CHECK(text_of("sync", load_experiment("examples/teacher", {"run.schedule=gpipe"})) == "gpipe flush 8x4");
  CHECK(text_of("sync", load_experiment("examples/teacher", {"run.schedule=inference", "run.iterations=3"})) ==
        "1f1b flush 8x4");
  CHECK(text_of("sync", load_experiment("examples/teacher", {"run.schedule=pipedream"})) == "1f1b flush 8x4");
  CHECK(text_of("sync@2") == "1f1b flush 2x16");
  CHECK(text_of("naive") == "pipedream naive 1x32");
  CHECK(text_of("stash@4") == "pipedream stash 4x8");
  CHECK(text_of("2bw") == "2bw 2bw 8x4");
  CHECK(text_of("2bw@16") == "2bw 2bw 16x2");
  CHECK(text_of("pipeoptim:as_released") == "pipedream pipeoptim as released 1x32");
  CHECK(text_of("pipeoptim:as_released@4") == "pipedream pipeoptim as released 4x8");
}

TEST_CASE("a method with the schedule of the scenario keeps its options") {
  const Experiment chunks = load_experiment("examples/teacher", {"run.schedule={name: interleaved, chunks: 2}",
                                                                 "plan.devices=[thread0, thread1, thread2, thread3]"});
  CHECK(parse_method("sync", chunks).schedule.options == chunks.schedule.options);
}

TEST_CASE("every policy but flush is a method") {
  for (const WeightsDef* def : weights::catalog()) {
    if (def->needs_flush) continue;
    const Method method = parse_method(std::string(def->name), teacher());
    CHECK(method.weights.policy == def);
  }
}

TEST_CASE("an unknown method is refused") {
  const auto says = [](const std::string& word, const char* words) {
    const std::string text = test::input_error_of([&] { parse_method(word, teacher()); });
    CAPTURE(word);
    CHECK_MESSAGE(text.find(words) != std::string::npos, text);
  };
  says("stahs", "'stahs' is not a known method [did you mean 'stash'?]");
  says("snc", "[did you mean 'sync'?]");
  says("", "'' is not a known method [write one of sync, custom, 2bw");
  says("flush", "the weights 'flush' is called sync");
  for (const char* word : {"stash@", "stash@0", "stash@-1", "stash@x", "stash@4x", "stash@4:paper", "stash@9999999999"})
    says(word, "does not say how many micro-batches an update has");
  says("stash@5", "32 samples of an update cannot be cut into 5 micro-batches");
}

TEST_CASE("two runs of one comparison give the same result") {
  const Convergence first = quietly(small({"sync", "naive", "pipeoptim", "2bw"}));
  REQUIRE(first.methods.size() == 4);
  CHECK(first.samples_per_update == 32);
  for (const MethodRuns& m : first.methods) {
    CAPTURE(m.name);
    CHECK(m.update.value > 0);
    CHECK(m.measured.value == 0);
    CHECK(m.memory.value > 0);
    REQUIRE(m.curves.size() == 2);
    for (std::size_t c = 0; c < 2; ++c) {
      CHECK(m.curves[c].seed == c + 1);
      REQUIRE(m.curves[c].evaluations.size() == 5);
      CHECK(m.curves[c].evaluations.back().updates == 40);
      CHECK(m.curves[c].losses.size() == 40);
      // Every method starts from the same loss.
      CHECK(m.curves[c].evaluations.front().loss == first.methods.front().curves[c].evaluations.front().loss);
      CHECK(m.curves[c].evaluations.back().loss < m.curves[c].evaluations.front().loss);
    }
    CHECK(m.curves[0].losses != m.curves[1].losses);
  }
  CHECK(first.methods[0].curves[0].losses != first.methods[1].curves[0].losses);
  const Convergence second = quietly(small({"sync", "naive", "pipeoptim", "2bw"}));
  CHECK(convergence_csv(second) == convergence_csv(first));
  CHECK(tta_csv(second, {1}) == tta_csv(first, {1}));
}

TEST_CASE("a comparison that is stopped has the runs that were complete, and of each method the first seeds") {
  const test::ConvergenceQuestion o = small({"sync", "naive"});
  const Convergence whole = quietly(o);
  int begun = 0;
  const auto stopped_in = [&](int run) {
    begun = 0;
    const StopScope scope([&, run] { return begun == run; });
    return test::converge(o, [&] { ++begun; });
  };
  const Convergence three = stopped_in(4);
  REQUIRE(three.methods.size() == 2);
  CHECK(runs_of(three) == 3);
  CHECK(three.runs_asked == 4);
  REQUIRE(three.methods[0].curves.size() == 2);
  REQUIRE(three.methods[1].curves.size() == 1);
  CHECK(three.methods[0].curves[1].losses == whole.methods[0].curves[1].losses);
  CHECK(standing(three, 1, 1).total == 1);
  CHECK(to_text(three, {1}).find("0/1") != std::string::npos);
  const Convergence one = stopped_in(2);
  REQUIRE(one.methods.size() == 1);
  CHECK(one.methods[0].name == "sync");
  CHECK(convergence_csv(one) == convergence_csv(whole).substr(0, convergence_csv(one).size()));
  CHECK_THROWS_AS(stopped_in(1), Stopped);
}

TEST_CASE("a run that diverges is a result, and does not end the others") {
  test::ConvergenceQuestion o = small({"sync", "naive"});
  o.sets.insert(o.sets.end(), {"model.activation=relu", "training.learning_rate=100000"});
  o.measure = true;
  const Convergence c = quietly(o);
  for (const MethodRuns& m : c.methods) {
    CHECK(m.measured.value > 0);
    for (const Curve& curve : m.curves) CHECK(curve.diverged);
  }
  CHECK(standing(c, 1, 1).reached == 0);
  CHECK(standing(c, 1, 1).total == 2);
}

TEST_CASE("scenarios that cannot converge are refused before anything is trained") {
  const auto says = [](const std::string& text, const char* words) {
    CHECK_MESSAGE(text.find(words) != std::string::npos, text);
  };
  test::ConvergenceQuestion o = small({"sync"});
  o.backend = "ideal";
  says(refusal(o), "'ideal' does not really compute");
  o = small({"sync"});
  o.simulator = "cpu";
  says(refusal(o), "'cpu' measures times");
  o = small({"sync"});
  o.updates = 5;
  says(refusal(o), "5 updates are too few to see anything [10 or more, or evaluate more often]");
  says(refusal(small({"sync"}), {"run.compute=emulated"}), "nothing is learnt");
  says(refusal(small({"sync"}), {"training.task=random"}), "'random' has no samples set apart");
  o = small({"sync"});
  o.file = "examples/quickstart";
  o.sets = {};
  says(refusal(o), "the scenario has no training");

  int trained = 0;
  const auto count = [&] { ++trained; };
  o = small({"sync", "2bw@2"});
  o.sets = {};
  CHECK_THROWS_AS(test::converge(o, count), Infeasible);  // Eight stages need seven micro-batches.
  CHECK_THROWS_AS(test::converge(small({"sync", "pipeoptim:released"}), count), InputError);
  CHECK(trained == 0);
}

}  // namespace stagecraft::convergence_test
