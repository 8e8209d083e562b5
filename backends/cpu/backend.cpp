// The catalog entry `cpu`: runs or emulates a Program and measures profiles, by backends/real with kernels on Eigen.

#include "backends/backend.hpp"

#include "backends/cpu/kernels.hpp"
#include "backends/cpu/matrix.hpp"
#include "backends/real/execute.hpp"
#include "backends/real/measure.hpp"
#include "backends/real/required_kernels.hpp"
#include "backends/real/stage_net.hpp"
#include "sim/core/diagnostic.hpp"

namespace stagecraft::backends {
namespace {

void require_kernels(const Workload& workload) {
  real::require_kernels(workload, cpu::has_kernel, cpu::has_mixed_kernel);
}

Timeline run(const Program& program, const Cluster& cluster, const RunOptions& options) {
  real::ExecutorOptions executor_options;
  executor_options.one_thread = options.one_thread;
  if (options.timeout.value > 0) executor_options.timeout = options.timeout.value;
  if (options.emulated) return real::emulate(program, cluster, options.time_dilation, executor_options);
  if (!program.workload) throw InternalError("the cpu backend was not told what to compute");
  require_kernels(*program.workload);
  return real::execute(program, cpu::make_kernels, executor_options);
}

Profile profile(const ProfileRequest& request) {
  require_kernels(request.workload);
  return real::measure(request, cpu::make_kernels);
}

}  // namespace

extern const BackendDef cpu;
const BackendDef cpu{
    .name = "cpu",
    .summary = "Really runs it: one thread a device, kernels on Eigen",
    .source = "Guennebaud, Jacob et al., Eigen v3, 2010",
    .clock = Clock::Host,
    .version = stagecraft::cpu::eigen_version,
    .why_not = [] { return std::string(); },
    .run = run,
    .profile = profile,
};

}  // namespace stagecraft::backends
