// Remarks on effects that the figures do not show.

#include "sim/experiment/remarks.hpp"

#include <doctest/doctest.h>

namespace stagecraft::remarks_test {
namespace {

std::vector<std::string> remarks_of(const std::string& file, const std::vector<std::string>& sets) {
  const Experiment s = load_experiment("scenarios/examples/" + file + ".yaml", sets);
  return remarks(compile(s));
}

}  // namespace

TEST_CASE("idle devices of a schedule are counted, with the stages that would use them") {
  const std::vector<std::string> notes = remarks_of("gpt-1f1b-16", {"model.tied=false"}),
                                 half = remarks_of("gpt-1f1b-16", {"model.tied=false", "run.schedule=interleaved"}),
                                 deep = remarks_of("gpt-1f1b-16",
                                                   {"model.tied=false", "run.schedule=interleaved", "model.layers=32"}),
                                 few = remarks_of("gpt-1f1b-16", {"model.tied=false", "plan.stages=4"}),
                                 whole = remarks_of("gpt-1f1b-16", {"model.tied=false", "run.schedule=interleaved",
                                                                    "plan.stages=32", "model.layers=32"});
  CHECK(notes.empty());
  CHECK(whole.empty());
  CHECK(half == std::vector<std::string>{"8 of 16 devices have nothing to do"});  // 26 layers make no 32 stages.
  CHECK(deep == std::vector<std::string>{"8 of 16 devices have nothing to do: interleaved puts 2 stages on a device; "
                                         "--set plan.stages=32 uses all"});
  CHECK(few == std::vector<std::string>{"12 of 16 devices have nothing to do"});
}

TEST_CASE("devices that the plan excludes by name cause no remark") {
  CHECK(remarks_of("quickstart", {"model.tied=false"}).empty());  // 4 of its 16 devices, by name.
}

TEST_CASE("links with one queue cause a remark on what does not simulate it") {
  const Experiment star = load_experiment("scenarios/boxes/star.yaml", {"cluster.links.slow.queue=fifo"});
  CHECK(
      remarks(compile(star)) ==
      std::vector<std::string>{"links have `queue: fifo`, which only fluid simulates: with ideal, and for planners and "
                               "bounds, no message waits for another"});
  CHECK(remarks(compile(load_experiment("scenarios/boxes/star.yaml", {}))).empty());
}

TEST_CASE("a schedule without a flush causes a remark on weights tied between devices") {
  CHECK(remarks_of("quickstart", {}).empty());
  CHECK(remarks_of("quickstart", {"run.schedule=inference"}).empty());
  for (const char* schedule : {"pipedream", "2bw", "wpipe"}) {
    const std::vector<std::string> tied = remarks_of("quickstart", {std::string("run.schedule=") + schedule});
    REQUIRE(tied.size() == (schedule == std::string("wpipe") ? 2 : 1));  // WPipe leaves two devices idle.
    // 50257 tokens and 1024 places of width 1024, two bytes each.
    CHECK(tied.back() == std::string("5.251e+07 weights are tied between stages on different devices; the exchange of "
                                     "their gradients (100.2 MiB for each update) is simulated only where a schedule "
                                     "flushes, which ") +
                             schedule + " does not");
  }
  CHECK(remarks_of("quickstart", {"run.schedule=pipedream", "model.tied=false"}).empty());
}

TEST_CASE("a scenario has the same remarks before and after compilation") {
  for (const std::vector<std::string>& sets :
       {std::vector<std::string>{}, {"run.schedule=2bw"}, {"run.schedule=inference"}}) {
    CAPTURE(sets.size());
    const Experiment s = load_experiment("scenarios/examples/quickstart.yaml", sets);
    CHECK(remarks(s) == remarks(compile(s)));
  }
  CHECK(remarks(load_experiment("scenarios/examples/quickstart.yaml", {"run.schedule=2bw"})).size() == 1);
  CHECK(remarks(load_experiment("scenarios/examples/quickstart.yaml", {"run.schedule=inference"})).empty());
}

TEST_CASE("a scenario without a plan still has remarks on odd magnitudes of its cluster") {
  const Experiment s =
      load_experiment("scenarios/examples/gpt-1f1b-16.yaml",
                      {"plan.stages=4096",
                       "cluster={generator: uniform, devices: 16, type: slow, link: {bandwidth: 1 GB/s}, types: "
                       "{slow: {peak: 1 FLOP/s, memory: 1 GiB, memory_bandwidth: 1 GB/s}}}"});
  CHECK_THROWS_AS(plan_experiment(s), Infeasible);
  REQUIRE(remarks(s).size() == 1);
  CHECK(remarks(s).front().find("peak of 1 FLOP/s is less than machines have") != std::string::npos);
}

}  // namespace stagecraft::remarks_test
