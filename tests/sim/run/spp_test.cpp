// SPP over unequal links against GPipe, PipeDream with flushes, and data parallelism, each with its best micro-batch
// size.

#include <doctest/doctest.h>

#include <algorithm>
#include <optional>

#include "sim/run/run.hpp"

using namespace stagecraft;

namespace {

constexpr int kSamples = 64;

/// The shortest iteration over micro-batch sizes; nothing when none can run.
std::optional<double> shortest_of(const std::string& file, const std::string& plan, const std::string& schedule,
                                  const std::vector<std::string>& more) {
  std::optional<double> best;
  for (int size = 1; size <= kSamples; size *= 2) {
    std::vector<std::string> sets = more;
    sets.push_back("plan={" + plan + ", micro_batch_size: " + std::to_string(size) + "}");
    sets.push_back("run.micro_batches=" + std::to_string(kSamples / size));
    sets.push_back("run.schedule=" + schedule);
    try {
      const Scenario scenario = load_scenario(file, sets);
      const double time = run(scenario, prepare(scenario), "ideal").report.makespan.value;
      best = std::min(best.value_or(time), time);
    } catch (const Infeasible&) {
    } catch (const InputError&) {  // Fewer samples than replicas.
    }
  }
  return best;
}

}  // namespace

TEST_CASE("SPP is faster than GPipe, PipeDream and data parallelism over unequal links") {
  std::string table = "gain of SPP in %: model, slowest card, GPipe, PipeDream, data parallelism\n";
  double largest = 0;
  for (const std::string& model : {std::string("vgg16"), std::string("bert-large"), std::string("gpt2-medium")})
    for (const int card : {1, 10, 25}) {
      const std::string file = "scenarios/papers/spp/pairs-" + model + ".yaml";
      const std::vector<std::string> links = {
          "cluster={base: v100-pairs-mixed, override: {links.d-nic.bandwidth: " + std::to_string(card) + " Gbit/s}}"};
      const auto time = [&](const char* plan, const char* schedule) {
        return shortest_of(file, plan, schedule, links);
      };
      const auto spp = time("planner: spp", "spp-pe");
      const auto gpipe = time("planner: balanced, stages: 8", "gpipe"), pipedream = time("planner: pipedream", "1f1b"),
                 parallel = time("planner: balanced, stages: 1, replicas: 8", "1f1b");
      REQUIRE(spp);
      table += model + ", " + std::to_string(card) + " Gbit/s";
      for (const auto& other : {gpipe, pipedream, parallel}) {
        REQUIRE(other);
        CHECK(*spp <= *other * (1 + 1e-9));
        table += ", " + std::to_string(static_cast<int>(100 * (*other / *spp - 1)));
        largest = std::max(largest, *other / *spp - 1);
      }
      table += "\n";
    }
  MESSAGE(table);
  CHECK(largest > 1.57);
}
