// Any bytes as a scenario: resolved, with the files that it names in the tree, to a text that reads back as the same
// scenario, or refused. The first byte says whether model and cluster are built as well.

#include <cstdint>
#include <cstdlib>

#include "sim/core/diagnostic.hpp"
#include "sim/experiment/scenario.hpp"
#include "tests/fuzz/memory_file.hpp"
#include "tests/fuzz/tree.hpp"

using namespace stagecraft;

namespace {

void check(const Scenario& scenario) {
  static fuzz::MemoryFile resolved;
  resolved.write(config::to_yaml(scenario.tree, true));
  try {
    if (load_scenario(resolved.path(), {}).hash() != scenario.hash()) std::abort();
  } catch (const InputError&) {
    std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  static fuzz::MemoryFile file;
  file.write({reinterpret_cast<const char*>(data) + 1, size - 1});
  try {
    const Scenario scenario = load_scenario(file.path(), {});
    check(scenario);
    if ((data[0] & 1) == 0) return 0;
    if (build_model(scenario.tree.at("model")).layers.empty()) std::abort();
    if (build_cluster(scenario.tree.at("cluster")).devices.empty()) std::abort();
  } catch (const InputError& error) {
    if (error.problems().empty() || render(error.problems()).empty()) std::abort();
  } catch (const Infeasible& error) {
    if (error.problem().message.empty()) std::abort();
  }
  return 0;
}
