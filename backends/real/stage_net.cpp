// The width of the numbers of a stage, and what it is compiled to: a list of operations.

#include "backends/real/stage_net.hpp"

#include <fmt/core.h>

#include "backends/real/stage_compiler.hpp"
#include "sim/core/diagnostic.hpp"

namespace stagecraft::real {

std::size_t width_of(const Workload& workload) {
  const Precision& p = workload.precision;
  const bool equal = p.weight == p.activation && p.weight == p.gradient;
  if (!equal || (p.weight != kMixedWidth && p.weight != 4 && p.weight != 8))
    throw InputError(
        fmt::format("the model '{}' has numbers of {}, {} and {} bytes (weights, gradients, activations), which this "
                    "backend does not compute with",
                    workload.name, p.weight, p.gradient, p.activation),
        "--set model.precision=fp32, fp64 or mixed");
  return static_cast<std::size_t>(p.weight);
}

StageNet compile_stage(const Workload& workload, StageId stage, std::size_t width) {
  return StageCompiler(workload, stage, width, {}, {}, 1).run();
}

StageNet compile_part(const Workload& workload, StageId stage, const GroupPlace& place, std::size_t width) {
  return StageCompiler(workload, stage, width, workload.stages[stage].degrees, place, workload.vocabulary_ranks).run();
}

StageNet compile_rank(const Workload& workload, StageId stage, std::size_t width) {
  return StageCompiler(workload, stage, width, {}, {}, workload.vocabulary_ranks).run();
}

}  // namespace stagecraft::real
