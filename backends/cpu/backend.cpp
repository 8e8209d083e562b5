#include "backends/backend.hpp"

#include "backends/cpu/kernels.hpp"
#include "backends/cpu/matrix.hpp"
#include "backends/real/execute.hpp"
#include "backends/real/measure.hpp"
#include "backends/real/required_kernels.hpp"
#include "sim/core/diagnostic.hpp"

namespace stagecraft::backends {
namespace {

Timeline run(const Program& program, const Cluster&, const RunOptions& options) {
  real::ExecutorOptions executor_options;
  executor_options.one_thread = options.one_thread;
  if (options.timeout.value > 0) executor_options.timeout = options.timeout.value;
  if (options.emulated) return real::emulate(program, executor_options);
  if (!program.workload) throw InternalError("the cpu backend was not told what to compute");
  real::require_kernels(*program.workload, cpu::has_kernel);
  return real::execute(program, cpu::make_kernels, executor_options);
}

Profile profile(const ProfileRequest& request) {
  real::require_kernels(request.workload, cpu::has_kernel);
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
