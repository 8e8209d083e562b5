// Any bytes as the three files of PipeEdge, one after the other: a problem with finite numbers, or a refusal. The
// first byte chooses the batch and the device with the data.

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <set>

#include "sim/core/diagnostic.hpp"
#include "sim/planners/edgepipe/pipeedge_files.hpp"
#include "tests/fuzz/memory_file.hpp"
#include "tests/fuzz/tree.hpp"

using namespace stagecraft;

namespace {

void check(const pipeedge::SchedulerInput& profiles, const pipeedge::Request& request) {
  const auto layers = static_cast<std::size_t>(profiles.layers());
  if (layers == 0 || profiles.weights.size() != layers || profiles.types.empty()) std::abort();
  std::set<std::string> hosts;
  std::size_t with_data = 0, count = 0;
  for (const pipeedge::HostType& type : profiles.types) {
    if (type.seconds.size() != layers || type.hosts.empty() || !(type.memory > 0)) std::abort();
    hosts.insert(type.hosts.begin(), type.hosts.end());
    count += type.hosts.size();
    with_data += type.has_data;
  }
  if (hosts.size() != count || with_data > 1 || (with_data == 1 && request.data_host.empty())) std::abort();

  const edgepipe::ChainProblem problem = pipeedge::problem_of(profiles, 2, 2);
  for (std::size_t t = 0; t < problem.machines.size(); ++t) {
    const edgepipe::Chain chain{{0, profiles.layers(), static_cast<int>(t)}};
    const edgepipe::ChainFigures figures = edgepipe::figures_of(problem, chain);
    if (!std::isfinite(figures.latency) || !std::isfinite(figures.memory)) std::abort();
    if (pipeedge::to_schedule(chain, profiles).empty()) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  static fuzz::MemoryFile models, types, devices;
  std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  for (fuzz::MemoryFile* file : {&models, &types, &devices}) file->write(fuzz::next_file(text));
  const pipeedge::Request request{.model = "toy",
                                  .batch = data[0] & 1 ? 1 : 8,
                                  .dtype = "torch.float32",
                                  .data_host = data[0] & 2 ? "edge" : "",
                                  .binary = (data[0] & 4) != 0};
  try {
    check(pipeedge::read({models.path(), types.path(), devices.path()}, request), request);
  } catch (const InputError& error) {
    if (error.problems().empty()) std::abort();
  }
  return 0;
}
