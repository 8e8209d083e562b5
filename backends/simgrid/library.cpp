// Loads the module in `engine/`, which alone is linked with SimGrid, and calls it.

#include <dlfcn.h>
#include <fmt/core.h>

#include "backends/simgrid/simulate.hpp"
#include "sim/core/diagnostic.hpp"

namespace stagecraft::sg {
namespace {

const Tasks& find_tasks() {
  void* const module = dlopen(STAGECRAFT_SIMGRID_MODULE, RTLD_NOW | RTLD_LOCAL);
  const void* const tasks = module == nullptr ? nullptr : dlsym(module, "stagecraft_simgrid_tasks");
  if (tasks == nullptr) throw BackendError(fmt::format("simgrid: cannot load its module: {}", dlerror()));
  return *static_cast<const Tasks*>(tasks);
}

}  // namespace

const Tasks& load_library() {
  static const Tasks& tasks = find_tasks();
  return tasks;
}

void simulate(const Program& program, const Cluster& cluster, std::span<const Route> routes, std::span<double> start,
              std::span<double> end) {
  load_library().simulate(program, cluster, routes, start, end);
}

std::string library_version() { return load_library().version(); }

}  // namespace stagecraft::sg
