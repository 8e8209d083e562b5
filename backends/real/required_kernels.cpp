// Refuses a workload with an operation that a backend has no kernel for; backends call it before a run.

#include "backends/real/required_kernels.hpp"

#include <fmt/core.h>

#include "backends/real/stage_net.hpp"
#include "sim/core/diagnostic.hpp"

namespace stagecraft::real {

void require_kernels(const Workload& workload, bool (*has_kernel)(const Operation&),
                     bool (*has_mixed_kernel)(const Operation&)) {
  const bool is_mixed = width_of(workload) == kMixedWidth;
  for (const WorkloadLayer& layer : workload.layers)
    for (const Operation& op : layer.operations)
      if (!(is_mixed ? has_mixed_kernel : has_kernel)(op))
        throw InputError(fmt::format("the layer '{}' of the model '{}' has the operation '{}', for which this backend "
                                     "has no kernel {}",
                                     layer.name, workload.name, to_text(op), is_mixed ? "in mixed precision" : "yet"),
                         is_mixed && has_kernel(op)
                             ? "--set model.precision=fp32; or simulate it; or run.compute: emulated"
                             : "simulate it, take a model without such operations, or run.compute: emulated");
}

}  // namespace stagecraft::real
