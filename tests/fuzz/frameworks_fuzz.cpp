// Any bytes as a configuration of a training framework or of a model of Hugging Face: a scenario or a model that is
// YAML, or refused with a place. The first byte chooses, also whether the scenario is planned.

#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include "sim/config/value.hpp"
#include "sim/core/diagnostic.hpp"
#include "sim/experiment/run.hpp"
#include "sim/interchange/imports/huggingface.hpp"
#include "sim/interchange/imports/training_setup.hpp"
#include "tests/fuzz/memory_file.hpp"

using namespace stagecraft;

namespace {

/// Larger models are passed over: planning them is work that a user asks for.
void plan(const std::string& yaml) {
  static fuzz::MemoryFile file;
  file.write(yaml);
  constexpr std::size_t kMostLayers = 100;
  const Experiment experiment = load_experiment(file.path(), {});
  if (experiment.model->layers.size() <= kMostLayers && plan_experiment(experiment).plan.stages.size() == 0)
    std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string text(reinterpret_cast<const char*>(data) + 1, size - 1);
  const SetupOptions options{"gpt2-small", "dgx-h200-x2", data[0] % 2 == 0 ? 16 : 0, 0};
  try {
    if (data[0] % 4 == 3) {
      config::Problems problems;
      static_cast<void>(config::parse_yaml(read_huggingface(text, "f").yaml, "model", problems));
      if (!problems.empty()) std::abort();
      return 0;
    }
    const TrainingSetup setup = data[0] % 3 == 0   ? read_megatron(text, "f", options)
                                : data[0] % 3 == 1 ? read_torchtitan(text, "f", options)
                                                   : read_deepspeed(text, "f", options);
    if (setup.ranks < 1 || setup.tensor < 1 || setup.context < 1 || setup.chunks < 1) std::abort();
    static_cast<void>(notes_of(setup));
    const std::string yaml = scenario_yaml(setup, options, "f");
    config::Problems problems;
    static_cast<void>(config::parse_yaml(yaml, "scenario", problems));
    const bool plain =
        std::all_of(text.begin(), text.end(), [](char c) { return (c >= ' ' && c <= '~') || c == '\n'; });
    if (plain && !problems.empty()) std::abort();  // Other bytes are refused again.
    if (problems.empty() && (data[0] & 8) != 0) plan(yaml);
  } catch (const InputError& error) {
    if (error.problems().empty() || render(error.problems()).empty()) std::abort();
  } catch (const Infeasible& error) {
    if (error.problem().message.empty()) std::abort();
  }
  return 0;
}
