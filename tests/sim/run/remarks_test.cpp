// What the figures do not say by themselves.

#include "sim/run/remarks.hpp"

#include <doctest/doctest.h>

using namespace stagecraft;

namespace {

std::vector<std::string> of(const std::string& file, const std::vector<std::string>& sets) {
  const Scenario s = load_scenario("scenarios/examples/" + file + ".yaml", sets);
  return remarks(s, prepare(s));
}

}  // namespace

TEST_CASE("devices that a schedule leaves without work are counted, and the stages that would use them") {
  const std::vector<std::string> all = of("gpt-1f1b-16", {"model.tied=false"}),
                                 half = of("gpt-1f1b-16", {"model.tied=false", "run.schedule=interleaved"}),
                                 few = of("gpt-1f1b-16", {"model.tied=false", "plan.stages=4"}),
                                 whole = of("gpt-1f1b-16", {"model.tied=false", "run.schedule=interleaved",
                                                            "plan.stages=32", "model.layers=32"});
  CHECK(all.empty());
  CHECK(whole.empty());
  CHECK(half == std::vector<std::string>{"8 of 16 devices have nothing to do: interleaved puts 2 stages on a device, "
                                         "plan.stages=32 would use all"});
  CHECK(few == std::vector<std::string>{"12 of 16 devices have nothing to do"});
}

TEST_CASE("devices left out on purpose are not spoken of") {
  CHECK(of("quickstart", {"model.tied=false"}).empty());  // 4 of its 16 devices, by name.
}

TEST_CASE("weights tied between devices are told where they are trained and no flush lets their gradients meet") {
  CHECK(of("quickstart", {}).empty());
  CHECK(of("quickstart", {"run.schedule=inference"}).empty());
  for (const char* schedule : {"pipedream", "2bw", "wpipe"}) {
    const std::vector<std::string> tied = of("quickstart", {std::string("run.schedule=") + schedule});
    REQUIRE(tied.size() == 1);  // 50257 tokens and 1024 places of width 1024.
    CHECK(tied.front() ==
          "5.251e+07 weights are tied between stages on different devices; the exchange of their gradients is "
          "simulated only where a schedule flushes, which this one does not");
  }
  CHECK(of("quickstart", {"run.schedule=pipedream", "model.tied=false"}).empty());
}
