// A search ends inside the step that it is at, whichever that is.

#include <doctest/doctest.h>

#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "sim/core/activity.hpp"
#include "sim/core/stop_point.hpp"
#include "sim/experiment/run.hpp"
#include "sim/search/choices.hpp"
#include "tests/support/patience.hpp"
#include "tests/support/trials.hpp"

namespace stagecraft::stop_test {
namespace {

/// 256 GPUs: the programs of some plans have hundreds of thousands of instructions.
Experiment many_gpus(const std::string& planner) {
  return load_experiment("scenarios/examples/quickstart.yaml",
                         {"model={builder: transformer, kind: gpt, layers: 64, hidden: 2048, heads: 16, sequence: "
                          "1024, vocabulary: 50257, "
                          "precision: mixed}",
                          "cluster={base: superpod-h100-256}", "plan={planner: " + planner + ", micro_batch_size: 8}",
                          "run.micro_batches=128"});
}

const auto kIgnore = [](const SearchProgress&) {};

}  // namespace

TEST_CASE("a search that is stopped drops the plan and the simulation that it is at") {
  const Experiment experiment = many_gpus("balanced, stages: 64, replicas: 4");
  int looks = 0;
  const ChoiceTable table = search_choices(
      experiment, {.schedules = {"1f1b"}, .contended = true, .stop = [&] { return ++looks > 100; }}, kIgnore);
  CHECK(table.stopped == "interrupted");
  // The scenario as it is takes more than 100 looks by itself; whole tasks would be one or two each.
  CHECK(table.simulated == 0);
  CHECK(table.plans == 0);
}

TEST_CASE("a search whose scenario takes long to plan stops there") {
  int looks = 0;
  const ChoiceTable table = search_choices(many_gpus("spp"), {.stop = [&] { return ++looks > 10; }}, kIgnore);
  CHECK(table.stopped == "interrupted");
  CHECK(table.front.empty());
}

namespace {

/// Ends a computation of this thread after some seconds of work, and measures the longest work between two looks.
class Looks {
 public:
  explicit Looks(double seconds) : seconds_(seconds) {}

  bool operator()() {
    const double now = test::thread_seconds();
    if (now - last_ > longest_) longest_ = now - last_, where_ = current_activity();
    last_ = now;
    return now - begin_ > seconds_;
  }
  void check() {
    (*this)();
    const char* patience = std::getenv("STAGECRAFT_TEST_PATIENCE");  // More than 1 under a checker, which is slow.
    CAPTURE(where_);
    CHECK(longest_ < 0.4 * (patience ? std::atof(patience) : 1));
  }

 private:
  double seconds_, begin_ = test::thread_seconds(), last_ = begin_, longest_ = 0;
  std::string where_;
};

const double kSecondsOfLooks = test::all_trials() ? 5 : 0.3;

}  // namespace

TEST_CASE("no step of a search computes for long between two looks at the time") {
  const Experiment experiment = many_gpus("balanced, stages: 64, replicas: 4");
  for (const std::vector<std::string>& schedules :
       {std::vector<std::string>{"1f1b", "interleaved", "zb-1p"}, std::vector<std::string>{"zb-v-auto", "v-min"},
        std::vector<std::string>{"1f1b", "synthesised"}}) {
    Looks looks(kSecondsOfLooks);
    search_choices(experiment, {.schedules = schedules, .contended = true, .stop = [&] { return looks(); }}, kIgnore);
    looks.check();
  }
}

TEST_CASE("no planner and no search for an order computes for long between two looks at the time") {
  const auto run_until = [](const std::function<void()>& work) {
    Looks looks(kSecondsOfLooks);
    const StopScope scope([&] { return looks(); });
    try {
      work();
    } catch (const Stopped&) {
    } catch (const Infeasible&) {
    } catch (const InputError&) {  // The planner refuses this number of devices.
    }
    looks.check();
  };
  for (const PlannerDef* def : planners::catalog()) {
    if (!def->fields->find("micro_batch_size") || def->name == "balanced" || def->name == "explicit") continue;
    CAPTURE(def->name);
    run_until([&] { plan_experiment(many_gpus(std::string(def->name))); });
  }
  for (const std::string schedule : {"synthesised", "zb-v-auto", "v-adaptive", "zb-2p"}) {
    CAPTURE(schedule);
    const int chunks = schedule.starts_with("v") || schedule == "zb-v-auto" ? 2 : 1;
    const Experiment one =
        load_experiment("scenarios/examples/quickstart.yaml",
                        {"cluster={base: superpod-h100-256}", "run.micro_batches=64",
                         "plan={planner: balanced, stages: " + std::to_string(12 * chunks) + ", micro_batch_size: 1}",
                         "run.schedule=" + schedule});
    run_until([&] { compile(one); });
  }
}

}  // namespace stagecraft::stop_test
