// Any bytes as a scenario, and all that a command does with it: planned, compiled, run, exported to each framework and
// written as results that read back; or refused. The first byte chooses the backend. Larger scenarios are passed over,
// because planning them is work that a user asks for.

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <utility>

#include "sim/core/diagnostic.hpp"
#include "sim/experiment/limits.hpp"
#include "sim/interchange/chakra.hpp"
#include "sim/interchange/frameworks.hpp"
#include "sim/output/json_files.hpp"
#include "sim/schedule_file/csv.hpp"
#include "tests/fuzz/memory_file.hpp"
#include "tools/stagecraft/run_folder.hpp"

using namespace stagecraft;

namespace {

constexpr std::size_t kMostLayers = 50, kMostDevices = 16;
constexpr int kMostMicroBatches = 64;
constexpr double kMostInstructions = 20'000;

template <class Act>
void do_or_refuse(Act&& act) {
  try {
    act();
  } catch (const InputError& error) {
    if (error.problems().empty() || render(error.problems()).empty()) std::abort();
  } catch (const Infeasible& error) {
    if (error.problem().message.empty()) std::abort();
  }
}

bool is_small(const Experiment& e) {
  return e.model->layers.size() <= kMostLayers && e.cluster->devices.size() <= kMostDevices &&
         e.run.micro_batches <= kMostMicroBatches && e.run.lowering.iterations <= 4;
}

void check_exports(const CompiledExperiment& compiled) {
  for (const auto write : {megatron_arguments, torchtitan_config, deepspeed_config})
    do_or_refuse([&] {
      if (write(compiled).text.empty()) std::abort();
    });
  const ChakraTraces chakra = chakra_traces(compiled.program);
  if (chakra.traces.size() != chakra.devices.size()) std::abort();
  static_cast<void>(to_csv(compiled.schedule));
}

void check_run(const CompiledExperiment& compiled, const std::string& backend) {
  const Outcome outcome = run(compiled, backend);
  for (const double end : outcome.timeline.end)
    if (!std::isfinite(end) || end < 0) std::abort();
  for (const DeviceReport& device : outcome.report.devices)
    if (!(device.memory.total.value >= device.memory.resident.value)) std::abort();
  static_cast<void>(read_results(results_of(compiled, outcome), "results.json"));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  static fuzz::MemoryFile file;
  file.write({reinterpret_cast<const char*>(data) + 1, size - 1});
  do_or_refuse([&] {
    const Experiment experiment = load_experiment(file.path(), {});
    if (!is_small(experiment)) return;
    PlannedExperiment planned = plan_experiment(experiment);
    if (instructions_of(planned.plan, experiment.run.lowering.iterations, true) > kMostInstructions) return;
    const CompiledExperiment compiled = compile(std::move(planned));
    check_exports(compiled);
    check_run(compiled, data[0] % 2 == 0 ? "ideal" : "fluid");
  });
  return 0;
}
