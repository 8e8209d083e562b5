// Suggestions are simulated until their programs are larger than the limit, and the others stay as they are.

#include "sim/diagnosis/changed.hpp"

#include <doctest/doctest.h>

#include "sim/diagnosis/diagnose.hpp"

namespace stagecraft::changed_runs_test {
namespace {

const std::string kFile = "examples/quickstart";

Finding two_changes() {
  return {.cause = "bubble",
          .where = {},
          .lost = Seconds{1},
          .sentence = {},
          .suggestions = {{{"run.micro_batches=16"}, "16 micro-batches"}, {{"run.schedule=zb-h1"}, "zb-h1"}}};
}

}  // namespace

TEST_CASE("changes are simulated within a limit of instructions") {
  const CompiledExperiment compiled = compile(load_experiment(kFile, {}));
  const ScenarioReader read = scenario_reader(kFile, {}, compiled.experiment);
  const std::size_t size = compiled.program.size();
  for (const auto& [limit, simulated] : {std::pair{3 * size + size / 2, 2}, {2 * size + size / 2, 1}, {size, 0}}) {
    ChangedRuns changed(read, "ideal", Seconds{1}, 16, 8, limit);
    Finding finding = two_changes();
    changed.simulate(finding);
    int runs = 0;
    for (const Suggestion& s : finding.suggestions) runs += s.run.has_value();
    CHECK(runs == simulated);
    CHECK(finding.suggestions.size() == 2);
    CHECK(changed.is_exhausted() == (simulated < 2));
  }
}

TEST_CASE("a fast backend simulates more") { CHECK(most_simulated("fluid") > most_simulated("simgrid")); }

}  // namespace stagecraft::changed_runs_test
