// A memory reserve has the same effect as a device with that much less memory.

#include <doctest/doctest.h>

#include <fmt/core.h>

#include "sim/experiment/run.hpp"
#include "sim/search/choices.hpp"
#include "tests/support/checked.hpp"

namespace stagecraft::reserve_test {
namespace {

using Strings = std::vector<std::string>;

const std::string kFile = "scenarios/examples/quickstart.yaml";

/// Eight layers, each with 128 MiB (16 bytes for each of 8 Mi parameters) and 4 MiB of stash per sample.
Strings on_devices(const std::string& memory) {
  return {
      "model={builder: uniform, layers: 8, forward: 1 ms, input_gradient: 1 ms, weight_gradient: 1 ms, "
      "parameters: 8388608, stash: 4 MiB, output: 1 KiB}",
      fmt::format("cluster={{generator: uniform, devices: 4, type: any, link: {{bandwidth: 10 GB/s}}, types: {{any: "
                  "{{peak: 1 TFLOP/s, memory_bandwidth: 1 TB/s, {}}}}}}}",
                  memory),
      "plan={planner: balanced, stages: 4}", "run.micro_batches=8"};
}

/// The plan and the order of work, or the code of the refusal, whose text names the device's memory.
std::string answer(Strings sets, const std::string& more) {
  sets.push_back(more);
  if (more.find("plan=") != 0) sets.emplace_back("plan={planner: balanced, stages: 4}");
  try {
    const CompiledExperiment p = compile(load_experiment(kFile, sets));
    return to_text(p.plan) + to_grid(p.schedule);
  } catch (const Infeasible& e) {
    return e.problem().code;
  }
}

std::string refusal(const Strings& sets) {
  try {
    compile(load_experiment(kFile, sets));
  } catch (const Infeasible& e) {
    return full_message(e.problem());
  }
  return {};
}

}  // namespace

TEST_CASE("a memory reserve has the effect of a smaller memory on planners, searched orders and checks") {
  const Strings choices = {"plan={planner: piper, micro_batch_size: 2}",
                           "plan={planner: 2bw}",
                           "plan={planner: graphpipe, micro_batch_size: 2}",
                           "plan={planner: graph-exact, micro_batch_size: 2}",
                           "plan={planner: brute, micro_batch_size: 2}",
                           "plan={planner: spp, micro_batch_size: 2}",
                           "run.schedule=synthesised",
                           "run.schedule=zb-2p"};
  for (const std::string& choice : choices) {
    CAPTURE(choice);
    int different = 0;
    for (const int mebibytes : {260, 290, 320, 400, 600}) {
      const std::string less = answer(on_devices(fmt::format("memory: {} MiB", mebibytes)), choice);
      CHECK(answer(on_devices(fmt::format("memory: 1 GiB, memory_reserve: {} MiB", 1024 - mebibytes)), choice) == less);
      different += answer(on_devices("memory: 1 GiB"), choice) != less;
    }
    CHECK(different >= 1);  // Else the memory decides nothing, and nothing was tested.
  }
}

TEST_CASE("search omits plans that do not fit into the memory without the reserve") {
  const auto search = [](const std::string& memory) {
    return search_choices(load_experiment(kFile, on_devices(memory)), {.schedules = {"1f1b", "zb-h1"}},
                          [](const SearchProgress&) {});
  };
  const ChoiceTable reserved = search("memory: 1 GiB, memory_reserve: 724 MiB"), less = search("memory: 300 MiB");
  REQUIRE(!less.front.empty());
  CHECK(choices_json(reserved) == choices_json(less));
  for (const Choice& c : reserved.front) CHECK(c.memory.value <= 300 * 0x1p20);
}

TEST_CASE("search marks rows that fill a device's memory without its reserve by more than the margin leaves") {
  const auto first = [](const std::string& memory) {
    return search_choices(load_experiment(kFile, on_devices(memory)), {.schedules = {"1f1b"}},
                          [](const SearchProgress&) {})
        .front.front();
  };
  const double needed = first("memory: 100 GiB").memory.value;
  const auto with_free = [&](double share, double reserve) {
    return first(fmt::format("memory: {} B, memory_reserve: {} B",
                             static_cast<std::int64_t>(needed / (1 - share) + reserve), reserve));
  };
  for (const double reserve : {0.0, 0x1p20}) {
    CHECK(with_free(0.07, reserve).memory.value == needed);
    CHECK(with_free(0.05, reserve).memory.value < needed);  // Another plan, which leaves 6 % free.
    CHECK_FALSE(with_free(0.05, reserve).is_tight);
  }
}

TEST_CASE("a refusal states the usable memory, the whole memory and the reserve") {
  Strings sets = on_devices("memory: 300 MiB, memory_reserve: 100 MiB");
  sets.emplace_back("plan={planner: balanced, stages: 4}");
  CHECK(refusal(sets).find("but has 200 MiB of 300 MiB (100 MiB reserved) (") != std::string::npos);
  sets.back() = "plan={planner: piper}";
  CHECK(refusal(sets).find("4 devices with 200 MiB of 300 MiB (100 MiB reserved) each") != std::string::npos);
  sets.back() = "plan={planner: graphpipe}";
  CHECK(refusal(sets).find("4 devices with 200 MiB of 300 MiB (100 MiB reserved) each") != std::string::npos);
  sets.back() = "plan={planner: 2bw}";
  CHECK(refusal(sets).find("but it has 200 MiB of 300 MiB (100 MiB reserved)") != std::string::npos);
}

TEST_CASE("the report has the whole memory, the reserve, and whether the rest is enough") {
  Strings sets = on_devices("memory: 300 MiB, memory_reserve: 1 MiB");
  sets.emplace_back("plan={planner: balanced, stages: 4}");
  sets.emplace_back("run.schedule=1f1b");
  const Experiment scenario = load_experiment(kFile, sets);
  const CompiledExperiment p = compile(scenario);
  const Outcome o = run(p, "ideal");
  const MemoryPeak& peak = o.report.devices.front().memory;
  CHECK(peak.capacity.value == 299 * 0x1p20);
  CHECK(peak.reserved.value == 0x1p20);
  CHECK(peak.fits());
}

}  // namespace stagecraft::reserve_test
